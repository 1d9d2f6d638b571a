/** The meaning of a key, with its unit, and its default; null means that there is none. */
type Meaning = readonly [text: string, standard: string | null];

const server: Readonly<Record<string, Meaning>> = {
  server: ["Where and how the gateway listens.", null],
  "server.host": ["The address to listen on; 0.0.0.0 means every address.", "127.0.0.1"],
  "server.port": ["The port to listen on; 0 picks a free one.", "8787"],
  "server.public_url": [
    "The URL at which clients reach the gateway: for links, OAuth metadata, cookies and callbacks.",
    "the address it listens on",
  ],
  "server.trust_proxy": [
    "The proxies whose X-Forwarded-For names the client: none, every sender, or a list of ranges.",
    "false",
  ],
  "server.tls": ["The certificate with which the gateway serves HTTPS itself.", "plain HTTP"],
  "server.tls.cert": ["The path of the certificate with its chain, in PEM.", null],
  "server.tls.key": ["The path of the certificate's key, in PEM.", null],
  "server.body_memory_mb": [
    "Memory in MiB for all request bodies together; requests beyond it answer 503 with Retry-After.",
    "256, or less in a small container",
  ],
  "server.spool_mb": [
    "Disk space in MiB for uploads while their requests are served; requests beyond it answer 503.",
    "4096",
  ],
  "server.processes": [
    "Processes that share the port; auto is one per processor. More than 1 need Postgres and Valkey.",
    "1",
  ],
  "server.drain_delay_ms": [
    "Milliseconds between the signal to stop, which makes /readyz answer 503, and the end of listening.",
    "250",
  ],
  "server.drain_grace_ms": [
    "Milliseconds that running requests get to end after that; later ones are cut off and charged.",
    "30000",
  ],
};

const storage: Readonly<Record<string, Meaning>> = {
  storage: ["The database.", null],
  "storage.url": [
    "sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE.",
    "SQLite in the data directory",
  ],
  "storage.replica_url": ["A replica of that Postgres, for lists, usage and analytics.", "none"],
  "storage.durability": [
    "What a charge survives before it is answered: power (a power cut), or process (a crash of the process).",
    "power",
  ],
  "storage.wait_s": ["Seconds that a start waits for Postgres and the shared state.", "30"],
  "storage.pool_size": [
    "Connections to Postgres for queries; three more are opened for commits and sums.",
    "10",
  ],
  shared: ["The state that several gateways on one Postgres share.", null],
  "shared.url": [
    "memory:, or redis:// or rediss:// of a Valkey or Redis server or cluster.",
    "memory:",
  ],
  "shared.sentinels": [
    "Sentinels' URLs; the host of shared.url is then the primary's name.",
    "none",
  ],
  archive: ["The archive of generation records in ClickHouse.", "none"],
  "archive.url": ["clickhouse+http(s)://USER:PASSWORD@HOST:PORT/DATABASE, or none.", "none"],
  "archive.reads": [
    "Which records are read from it: those older than the database keeps, or always.",
    "older",
  ],
  "archive.days": ["Days for which it keeps records.", "for good"],
  "archive.content_days": [
    "Days for which prompts and answers of workspaces that ask for that are kept: in the archive, or in the database without one.",
    "7",
  ],
  "archive.content_media_mb": [
    "Megabytes of pictures and sound that are kept of each request and of each answer; 0 keeps their sizes alone.",
    "4",
  ],
  retention: ["How long the database keeps what is not money.", null],
  "retention.generations_days": ["Days for which generation records are kept.", "90"],
  "retention.responses_days": ["Days for which stored responses are kept.", "30"],
  "retention.log_budget_gb": [
    "Gigabytes for generation records; beyond it, the oldest are deleted early.",
    "10",
  ],
  disconnect: [
    "What happens upstream when a client leaves: abort charges what was delivered, drain reads on to the provider's own count.",
    "abort",
  ],
  access_log: [
    "Where a line for each request goes: stdout, a file's path, or otlp for the collector of OTEL_EXPORTER_OTLP_ENDPOINT. Never content.",
    "off",
  ],
  telemetry: ["Traces that are exported.", null],
  "telemetry.trace_context": [
    "What a caller's traceparent becomes: a link, or the trace that the request continues.",
    "link",
  ],
  "telemetry.usage_labels": [
    "Labels by which metrics count requests, tokens and charges: workspace, key, model. Each value makes series of its own.",
    "none",
  ],
  "telemetry.usage_series": [
    "The most combinations of these labels; requests of further ones are counted as other.",
    "1000",
  ],
  stream: ["Streams towards clients.", null],
  "stream.keepalive_before_content_s": [
    "Seconds after which a stream without content begins with a ping; failures are then events of the stream.",
    "off",
  ],
};

const provider: Readonly<Record<string, Meaning>> = {
  providers: ["Providers and models in addition to those of the catalog.", "none"],
  "providers[].id": ["The name in provider.order, only and ignore of a request.", null],
  "providers[].name": ["The name that people see.", "the id"],
  "providers[].description": ["One sentence about it.", "none"],
  "providers[].base_url": [
    "The address of its API, up to the version.",
    "that of the provider it is like",
  ],
  "providers[].dialect": ["The wire format of chat, or one for each surface.", "openai-chat"],
  "providers[].dialect.chat": ["The wire format of chat.", "openai-chat"],
  "providers[].dialect.embeddings": ["The wire format of embeddings.", "openai-embeddings"],
  "providers[].dialect.rerank": ["The wire format of rerank.", "cohere-rerank"],
  "providers[].dialect.moderations": ["The wire format of moderations.", "openai-moderations"],
  "providers[].dialect.decisions": ["The wire format of decisions.", "decisions"],
  "providers[].dialect.documents": ["The wire format of document jobs.", "documents-parse"],
  "providers[].dialect.images": ["The wire format of images.", "openai-images"],
  "providers[].dialect.transcriptions": ["The wire format of transcriptions.", "openai-audio"],
  "providers[].dialect.speech": ["The wire format of speech.", "openai-audio"],
  "providers[].dialect.realtime": [
    "The wire format of realtime sessions: openai-realtime, azure-realtime (the beta) or google-live.",
    "openai-realtime",
  ],
  "providers[].api_key": [
    "The platform's key there; without it, only callers with a key of their own are served.",
    "none",
  ],
  "providers[].like": ["A known provider that it deviates from its dialect like.", "none"],
  "providers[].deviations": ["Further deviations from its dialect, by name.", "none"],
  "providers[].headers": ["Headers that are sent with every request.", "none"],
  "providers[].headers.<id>": ["The value of this header.", null],
  "providers[].data_policy": [
    "What it does with inputs; requests can demand the opposite.",
    "unknown",
  ],
  "providers[].data_policy.zdr": ["Whether it keeps nothing (zero data retention).", "false"],
  "providers[].data_policy.data_collection": ["Whether it may collect inputs.", "allow"],
  "providers[].data_policy.distillable_text": ["Whether answers may train other models.", "false"],
  "providers[].timeouts_ms": ["How long requests to it may take, in milliseconds.", null],
  "providers[].timeouts_ms.connect": ["Milliseconds to connect.", "5000"],
  "providers[].timeouts_ms.first_token": [
    "Milliseconds to the first sign of life of a stream, or to a whole answer.",
    "60000",
  ],
  "providers[].timeouts_ms.idle": ["Milliseconds of silence between two signs of life.", "60000"],
  "providers[].timeouts_ms.total": ["Milliseconds for the whole answer.", "600000"],
  "providers[].passthrough": [
    "Routes of its own API that keys with the scope passthrough may call below /p/ID.",
    "none",
  ],
  "providers[].passthrough[].path": ["A path, or all below one, as in /v1/files/*.", null],
  "providers[].passthrough[].methods": ["Methods that may be used.", "all of them"],
  "providers[].passthrough[].price": ["USD for each request, as a text.", null],
  "providers[].batch_api": [
    "Whose API for batches it offers: openai, anthropic, google or none.",
    "that of the built-in provider",
  ],
  "providers[].files_api": [
    "Whose API for files it offers, so that large files are uploaded once: openai, anthropic, google or none.",
    "that of the built-in provider",
  ],
  "providers[].proxy": ["The HTTP proxy for it, or none.", "that of the environment"],
  "providers[].budget_usd_per_day": [
    "USD of answers in a day (UTC), after which it is not used until the next day.",
    "none",
  ],
};

const model: Readonly<Record<string, Meaning>> = {
  "providers[].models": ["The models that it serves.", "those of the catalog"],
  "providers[].models[].id": [
    "The id that clients use; several providers may serve the same.",
    null,
  ],
  "providers[].models[].upstream_model": ["The name at the provider.", "the part after the slash"],
  "providers[].models[].surface": ["The kind of inference.", "chat"],
  "providers[].models[].display_name": ["The name that people see.", "from the id"],
  "providers[].models[].context_length": [
    "Tokens of prompt and answer together.",
    "that of the catalog",
  ],
  "providers[].models[].max_completion_tokens": [
    "Tokens of one answer at most.",
    "that of the catalog",
  ],
  "providers[].models[].quantization": ["The precision of the weights, such as fp8.", "unknown"],
  "providers[].models[].pricing": ["What the provider charges.", "that of the catalog"],
  "providers[].models[].capabilities": ["What it takes and can, such as tools or images.", "text"],
  "providers[].models[].supported_parameters": [
    "Request fields that it takes.",
    "those of its dialect",
  ],
  "providers[].models[].reasoning": ["How it reasons.", "that of the catalog"],
  "providers[].models[].reasoning.levels": ["The efforts that it takes.", null],
  "providers[].models[].reasoning.default": ["The effort where a request names none.", "its own"],
  "providers[].models[].data_policy": ["The policy where this model's differs.", "the provider's"],
  "providers[].models[].data_policy.zdr": ["Whether nothing is kept.", "the provider's"],
  "providers[].models[].data_policy.data_collection": [
    "Whether inputs are collected.",
    "the provider's",
  ],
  "providers[].models[].data_policy.distillable_text": [
    "Whether answers may train other models.",
    "the provider's",
  ],
  "providers[].models[].coming_soon": ["Lists the model as announced; calls answer 404.", "false"],
};

const perMillion = (what: string): Meaning => [`USD per million ${what}.`, "not charged"];

/** Meanings of prices, by their name below `pricing`. */
const prices: Readonly<Record<string, Meaning>> = {
  prompt: perMillion("input tokens"),
  completion: perMillion("output tokens"),
  cache_read: perMillion("input tokens read from the prompt cache"),
  cache_write: perMillion("input tokens written to the prompt cache"),
  cache_write_1h: perMillion("input tokens written to a cache of one hour"),
  reasoning: ["USD per million reasoning tokens.", "the price of completion"],
  audio: ["USD per million audio tokens, in and out.", "the price of text"],
  image_input: ["USD per million tokens of pictures in the input.", "the price of prompt"],
  image_output: ["USD per million tokens of pictures in the answer.", "the price of completion"],
  image_cache_read: ["USD per million cached tokens of pictures.", "the price of cache_read"],
  audio_input: ["USD per million audio tokens in the input.", "the price of prompt"],
  audio_output: ["USD per million audio tokens in the answer.", "the price of completion"],
  audio_cache_read: ["USD per million cached audio tokens.", "the price of cache_read"],
  image: ["USD for each picture, or by size and quality.", "not charged"],
  "image.<id>": ["USD for each picture of this size, or by quality.", null],
  "image.<id>.<id>": ["USD for each picture of this size and quality.", null],
  audio_input_minute: ["USD for each minute of sound in the input.", "not charged"],
  audio_output_minute: ["USD for each minute of sound in the answer.", "not charged"],
  characters: ["USD per million characters of text that is spoken.", "not charged"],
  video_second: ["USD for each second of video.", "not charged"],
  minimum_ms: ["The least milliseconds of sound that are charged.", "what was sent"],
  request: ["USD for each request.", "0"],
  search: ["USD for each search of the web.", "refused on the platform's key"],
  tools: ["USD for each call of a tool that the provider runs.", "refused on the platform's key"],
  "tools.<id>": ["USD for each call of this tool.", null],
  service_tier: ["Prices by service_tier; a number is a factor of the token prices.", "refused"],
  speed: ["Prices by speed; a number is a factor of the token prices.", "refused"],
  inference_geo: ["Prices by region; a number is a factor of the token prices.", "refused"],
  "service_tier.<id>": ["A factor, or the prices at this tier.", null],
  "speed.<id>": ["A factor, or the prices at this speed.", null],
  "inference_geo.<id>": ["A factor, or the prices in this region.", null],
};

const catalog: Readonly<Record<string, Meaning>> = {
  sandbox: ["The simulated provider that is built in.", null],
  "sandbox.enabled": ["Whether it runs; auto means while no provider has a platform key.", "auto"],
  tls: ["Certificates that the gateway trusts when it calls providers.", null],
  "tls.ca_files": ["Paths of certificates in PEM, in addition to the platform's.", "none"],
  catalog: ["The facts about models and their prices.", null],
  "catalog.facts": [
    "The path of a facts file, as npm run catalog:refresh writes it.",
    "that of this release",
  ],
  "catalog.models": [
    "The models that are offered: all of a provider's, or only those that providers list.",
    "all",
  ],
  "catalog.unknown_models": [
    "What happens to a model that is not known: refuse, or pass_through to its maker.",
    "refuse",
  ],
  "catalog.unknown_model_pricing": ["The prices of such models.", null],
  "catalog.unknown_model_pricing.prompt": ["USD per million input tokens.", null],
  "catalog.unknown_model_pricing.completion": ["USD per million output tokens.", null],
  "catalog.unknown_model_pricing.cache_read": [
    "USD per million cached input tokens.",
    "the price of prompt",
  ],
  "catalog.unknown_model_pricing.cache_write": [
    "USD per million tokens written to a cache.",
    "the price of prompt",
  ],
  "catalog.unknown_model_pricing.request": ["USD for each request.", "0"],
  ocr: ["Files to text.", null],
  "ocr.model": ["The model that reads pages in place of the built-in converter.", "the converter"],
  audio: ["Sound that is transcribed.", null],
  "audio.max_mb": ["The largest file, in MiB.", "200"],
  files: ["Where files of workspaces are stored, encrypted.", null],
  "files.url": ["A directory, or s3://BUCKET/PREFIX.", "a folder of the data directory"],
  "files.endpoint": ["The address of the S3 server.", "that of the region"],
  "files.region": ["The region of the bucket.", "us-east-1"],
  "files.access_key_id": ["The access key of the bucket.", "that of the environment"],
  "files.secret_access_key": ["Its secret.", "that of the environment"],
  "files.quota_gb": ["Gigabytes of files for each workspace, or by plan.", "10"],
  "files.quota_gb.<id>": ["Gigabytes for workspaces of this plan.", null],
  "files.upload_from_mb": [
    "MiB from which a file that requests use again is stored at the provider that serves them, or never.",
    "1",
  ],
  batch: ["Batches.", null],
  "batch.concurrency": ["Lines that run at once, over all batches.", "8"],
  "batch.native": [
    "Whether a provider's own batch API is used where all lines go to one provider that has one: auto, or never.",
    "auto",
  ],
  "batch.poll_s": ["Seconds between looks at a provider's batch.", "60"],
  aliases: ["Names of your own for models, listed in /models.", "none"],
  "aliases.<id>": [
    "The model, or a list of models with weights or conditions, first match first.",
    null,
  ],
  "aliases.<id>[].model": ["The id of the model.", null],
  "aliases.<id>[].weight": [
    "Its share of the conversations, beside the other weights.",
    "fallback order",
  ],
  "aliases.<id>[].when": ["Conditions, all of which have to hold.", "always"],
  "aliases.<id>[].when.key": ["The name or id of the key.", null],
  "aliases.<id>[].when.tag": ["A tag of the request.", null],
  "aliases.<id>[].when.header": ["Request headers with their values.", null],
  "aliases.<id>[].when.header.<id>": ["The value of this header.", null],
  "aliases.<id>[].when.metadata": ["Members of metadata with their values.", null],
  "aliases.<id>[].when.metadata.<id>": ["The value of this member.", null],
  doors: ["APIs of other programs that need settings of their own.", null],
  "doors.ollama": ["Requests to Ollama's API without a credential.", "a bearer key is needed"],
  "doors.ollama.key": ["The LLM key that such requests are made with.", null],
  "doors.ollama.networks": ["The networks that they may come from.", "loopback"],
  sockets: ["Whether WebSockets are offered; false answers 426, and {lanes} bounds them.", "true"],
  "sockets.lanes": ["Responses that run at once on one socket.", "8"],
  routers: [
    "Pools of the routing presets service/auto, free, cowork, hermes and latest.",
    "from the catalog",
  ],
  "routers.<id>": ["The pool of this preset.", null],
  "routers.<id>.members": ["Model ids in the order in which they are tried.", null],
  "routers.<id>.quality": ["Members for difficult requests.", "none"],
  plans: ["Changes of the plans' limits.", null],
  "plans.<id>": ["The limits of this plan.", null],
  "plans.<id>.per_minute": ["Requests in a minute.", "that of the plan"],
  "plans.<id>.five_hour": ["Requests in five hours.", "that of the plan"],
  "plans.<id>.monthly_credits": ["USD of credits that are given each month.", "that of the plan"],
  customers: ["What end customers may use that have no plan of their own.", null],
  "customers.default_limit": [
    "USD that each customer may use in a period, counted at its price. Each one is created by the first request that names it.",
    "customers are counted only where POST /customers made them",
  ],
  "customers.per": ["The period of that limit: day, week or month (UTC).", "month"],
  "customers.markup": ["The share that is added to the cost of each request, such as 0.2.", "0"],
  "customers.most": ["The most customers of a workspace.", "100000"],
  "customers.stripe_meter": [
    "The event name of the Stripe meter that postpaid use is reported to, in millionths of a USD.",
    "nothing is reported",
  ],
  search: ["The search of the web for models whose own provider has none.", null],
  "search.provider": ["searxng, brave, tavily or exa.", null],
  "search.url": ["The address of the search provider; searxng needs it.", "that of the provider"],
  "search.api_key": ["The key at the search provider; all but searxng need it.", null],
  "search.price": ["USD for a search.", "0"],
  "search.results": ["Pages of a search that a model is sent, at most.", "5"],
  "search.timeout_ms": ["Milliseconds that a search may take.", "10000"],
  mcp: ["MCP servers for agents and models.", null],
  "mcp.allowed_networks": ["Networks of your own in which servers of workspaces may be.", "none"],
  "mcp.max_rounds": ["Rounds of tool calls in one request.", "16"],
  mcp_servers: ["MCP servers of the operator, for every workspace.", "none"],
  "mcp_servers[].id": ["The name in /mcp/{id}, and the server_label of a tool.", null],
  "mcp_servers[].name": ["The name that people see.", "the id"],
  "mcp_servers[].transport": [
    "streamable_http, or stdio for a process of this machine.",
    "by url or command",
  ],
  "mcp_servers[].url": ["The address of a server over Streamable HTTP.", null],
  "mcp_servers[].command": ["The program of a server over stdio.", null],
  "mcp_servers[].args": ["Its arguments.", "none"],
  "mcp_servers[].env": ["Its environment variables.", "none"],
  "mcp_servers[].env.<id>": ["The value of this variable.", null],
  "mcp_servers[].auth": ["How the gateway signs in there.", "none"],
  "mcp_servers[].auth.type": [
    "none, headers, oauth (one consent for all) or oauth_per_person.",
    "none",
  ],
  "mcp_servers[].auth.client_id": ["The OAuth client.", "one that the gateway registers"],
  "mcp_servers[].auth.client_secret": ["The secret of that client.", null],
  "mcp_servers[].auth.scope": [
    "The scopes to ask for, separated by spaces.",
    "those of the server",
  ],
  "mcp_servers[].auth.headers": ["Headers that are sent with every request.", null],
  "mcp_servers[].auth.headers.<id>": ["The value of this header.", null],
  "mcp_servers[].allowed_tools": ["The tools that are offered.", "all of them"],
  "mcp_servers[].price_per_call": ["USD for each call.", "0"],
  "mcp_servers[].timeout_ms": ["Milliseconds for one call.", "60000"],
  "mcp_servers[].result_bytes_max": ["Bytes of one result; more is cut, with a notice.", "262144"],
};

const people: Readonly<Record<string, Meaning>> = {
  auth: ["How people sign in and sign up.", null],
  "auth.sign_up": ["Who may create an account: closed, invitation or open.", "invitation"],
  "auth.plan": ["The plan of workspaces that people create.", "free"],
  "auth.breached_passwords_url": [
    "A service that knows breached passwords by a part of their hash.",
    "none",
  ],
  "auth.client_document_networks": [
    "Networks of your own from which descriptions of OAuth clients may be read.",
    "none",
  ],
  "auth.oidc": ["OpenID providers, in addition to passwords and passkeys.", "none"],
  "auth.oidc[].id": ["The name in the callback URL, PUBLIC_URL/api/auth/callback/ID.", null],
  "auth.oidc[].name": ["The name on the sign-in page.", "the id"],
  "auth.oidc[].issuer": ["Its address; .well-known/openid-configuration is read below it.", null],
  "auth.oidc[].client_id": ["The id of this gateway there.", null],
  "auth.oidc[].client_secret": ["The secret of this gateway there.", "none, with PKCE"],
  "auth.oidc[].scopes": ["Scopes that are asked for.", "openid, profile, email"],
  "auth.oidc[].sign_up": ["Whether everyone who signs in there gets an account.", "false"],
  mail: ["The mail server, for alerts, invitations and password resets.", "none"],
  "mail.url": ["smtp:// or smtps://USER:PASSWORD@HOST.", null],
  "mail.from": ["The sender.", "noreply at the public URL's host"],
  webhooks: ["Webhooks of workspaces.", null],
  "webhooks.allowed_networks": ["Networks of your own that webhooks may reach.", "none"],
  hub: ["Prompts and skills.", null],
  "hub.import_networks": ["Networks of your own from which skills may be imported.", "none"],
  claude_code: ["People who sign in with /login in Claude Code.", null],
  "claude_code.login_notice": ["A line that is shown with the code.", "none"],
  "claude_code.managed_settings": ["Settings that Claude Code applies.", "none"],
  payments: ["Card payments through Stripe.", "off"],
  "payments.stripe": ["The account at Stripe.", "that of the environment"],
  "payments.stripe.secret_key": ["Its secret key.", "STRIPE_SECRET_KEY"],
  "payments.stripe.webhook_secret": ["The secret of its webhook.", "STRIPE_WEBHOOK_SECRET"],
  "payments.fee": ["What is added to the price of credits.", "5 % and 0.50 USD"],
  "payments.fee.percent": ["Per cent of the credits.", "5"],
  "payments.fee.fixed": ["USD for each payment.", "0.5"],
  "payments.top_up": ["Bounds of one payment.", null],
  "payments.top_up.min": ["USD of credits at least.", "5"],
  "payments.top_up.max": ["USD of credits at most.", "5000"],
  "payments.seller": ["The seller on invoices.", "none"],
  "payments.seller.name": ["The name.", null],
  "payments.seller.address": ["The lines of the address.", null],
  "payments.seller.tax_id": ["The tax number.", "none"],
  "payments.seller.tax_note": ["A sentence about tax.", "none"],
  referrals: ["Credits for people who bring others.", "off"],
  "referrals.referrer_usd": ["USD for the workspace that referred.", "0"],
  "referrals.referred_usd": ["USD for the new person.", "0"],
  "referrals.after": ["When they are given: first_top_up or sign_up.", "first_top_up"],
  "referrals.maximum_per_workspace": ["Referrals for which one workspace receives credits.", "20"],
  dashboard: ["Whether the pages for people are served at /.", "true"],
};

const meanings: Readonly<Record<string, Meaning>> = {
  ...server,
  ...storage,
  ...provider,
  ...model,
  ...catalog,
  ...people,
};

const levelPrices = /^(?:service_tier|speed|inference_geo)\.<id>\./;
const pricing = "providers[].models[].pricing.";

/** Returns the meaning of a key by its path, such as `providers[].id`; undefined for none. */
export function settingMeaning(path: string): Meaning | undefined {
  if (!path.startsWith(pricing)) return meanings[path];
  return prices[path.slice(pricing.length).replace(levelPrices, "")];
}

/** Returns every path that has a meaning of its own. */
export const settingPaths = (): string[] => [
  ...Object.keys(meanings),
  ...Object.keys(prices).map((name) => pricing + name),
];
