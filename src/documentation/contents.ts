/** A page of the site. */
export interface PageEntry {
  /** Its address below the section, and its file without `.md`. */
  slug: string;
  title: string;
  /** A shorter title for the navigation. */
  label?: string;
  /** Words by which people search for it and which its text does not stress. */
  keywords?: string;
}

/** One of the four kinds of documentation. */
export interface Section {
  slug: string;
  title: string;
  pages: readonly PageEntry[];
}

/** The groups of the guides, in the order of the navigation, with the pages of each. */
const guideGroups: readonly (readonly [title: string, slugs: string])[] = [
  [
    "Clients",
    "openai-sdk anthropic-sdk ai-sdk langchain pydantic-ai openai-agents claude-code codex opencode aider editors mcp command",
  ],
  ["Routing", "routing presets local-models privacy troubleshooting"],
  [
    "Keys and money",
    "team-keys budgets own-provider-keys charges customers agent-runs card-payments",
  ],
  ["Apps", "build tools images-and-audio documents sockets other-surfaces batches app-keys"],
  ["Migrate", "from-openai from-openrouter from-litellm from-portkey"],
];

/** Pages of a section below a heading of their own; the heading is empty where there is one group. */
interface PageGroup {
  title: string;
  pages: readonly PageEntry[];
}

/**
 * Returns the pages of a section in groups. A guide that no group names is among those of
 * migrations if its address begins with `from-`, otherwise among those of apps.
 */
export function groupsOf({ slug, pages }: Section): readonly PageGroup[] {
  if (slug !== "guides") return [{ title: "", pages }];
  const groupFor = (page: PageEntry): string =>
    guideGroups.find(([, slugs]) => slugs.split(" ").includes(page.slug))?.[0] ??
    (page.slug.startsWith("from-") ? "Migrate" : "Apps");
  return guideGroups.map(([title, slugs]) => {
    const order = slugs.split(" ");
    const rank = (page: PageEntry): number =>
      order.includes(page.slug) ? order.indexOf(page.slug) : order.length;
    const found = pages.filter((page) => groupFor(page) === title);
    return { title, pages: found.toSorted((one, other) => rank(one) - rank(other)) };
  });
}

/** Every hand-written page, in the order of the navigation. */
export const writtenSections: readonly Section[] = [
  {
    slug: "start",
    title: "Start",
    pages: [
      {
        slug: "quickstart",
        title: "Quickstart",
        keywords: "get started install first request npm start try",
      },
      {
        slug: "for-developers",
        title: "For developers",
        keywords: "overview developer api key base url",
      },
      { slug: "for-teams", title: "For teams", keywords: "overview team organization" },
      {
        slug: "for-operators",
        title: "For operators",
        keywords: "overview self-host admin operator",
      },
      {
        slug: "glossary",
        title: "Glossary",
        keywords: "terms definitions words meaning vocabulary what is",
      },
    ],
  },
  {
    slug: "guides",
    title: "Guides",
    pages: [
      {
        slug: "openai-sdk",
        title: "OpenAI SDK",
        keywords: "openai python node typescript client base_url chat completions responses",
      },
      {
        slug: "anthropic-sdk",
        title: "Anthropic SDK",
        keywords: "anthropic python typescript messages claude client",
      },
      {
        slug: "google-genai",
        title: "Google Gen AI SDK",
        keywords: "google gemini genai python typescript generateContent client vertex",
      },
      {
        slug: "ai-sdk",
        title: "AI SDK",
        keywords: "vercel ai sdk generateText streamText next.js",
      },
      { slug: "langchain", title: "LangChain", keywords: "langchain langgraph python chatopenai" },
      { slug: "pydantic-ai", title: "pydantic-ai" },
      { slug: "openai-agents", title: "OpenAI Agents SDK" },
      {
        slug: "claude-code",
        title: "Claude Code",
        keywords: "claude code anthropic_base_url agent terminal",
      },
      { slug: "gemini-cli", title: "Gemini CLI", keywords: "gemini cli google agent terminal" },
      { slug: "codex", title: "Codex", keywords: "codex cli agent config.toml" },
      { slug: "opencode", title: "opencode", keywords: "opencode agent" },
      { slug: "aider", title: "aider", keywords: "aider agent" },
      {
        slug: "editors",
        title: "Cursor and VS Code",
        keywords: "cursor vs code vscode continue zed cline copilot editor ide",
      },
      {
        slug: "mcp",
        title: "Tools for agents (MCP)",
        keywords: "mcp model context protocol tools server agent",
      },
      {
        slug: "other-surfaces",
        title: "Embeddings, rerank and more",
        keywords: "embeddings rerank moderation ocr vector rag",
      },
      {
        slug: "images-and-audio",
        title: "Pictures and sound",
        keywords:
          "images pictures generate edit dall-e gpt-image imagen audio sound speech tts " +
          "transcribe whisper stt voice translate",
      },
      {
        slug: "sockets",
        title: "WebSockets and voice",
        keywords: "websocket realtime voice responses socket wss ephemeral client secret",
      },
      {
        slug: "documents",
        title: "Pictures and documents",
        keywords: "pdf pictures images files vision upload ocr document",
      },
      {
        slug: "batches",
        title: "Batches and files",
        keywords: "batch batches bulk overnight jsonl files upload message batches file id",
      },
      {
        slug: "build",
        title: "Tools, schemas, reasoning, caching",
        keywords:
          "tool calling function calling structured output json schema json mode reasoning " +
          "thinking effort prompt caching streaming sse errors retries build with it",
      },
      {
        slug: "tools",
        title: "Tools of MCP servers, and searches",
        keywords:
          "mcp gateway upstream server tools approval web search searxng brave tavily exa online plugin citations file-parser",
      },
      {
        slug: "team-keys",
        title: "Keys and caps for a team",
        keywords:
          "api keys cap limit team invite member role organization colleague rotate revoke create key per user",
      },
      {
        slug: "budgets",
        title: "Budgets",
        keywords:
          "budget set a budget alert spending limit monthly cap block overspend customer end user tag metadata team",
      },
      {
        slug: "agent-runs",
        title: "Agents' runs",
        keywords: "agent run budget loop subagent session limit cost cap resume run_exhausted",
      },
      {
        slug: "customers",
        title: "Sell to customers of your own",
        keywords:
          "customer end user resell markup margin plan prepaid postpaid allowance statement invoice billing meter",
      },
      {
        slug: "own-provider-keys",
        title: "Own provider keys",
        keywords: "byok bring your own key own key provider credential",
      },
      {
        slug: "presets",
        title: "Presets and names",
        keywords:
          "preset prompt template system prompt saved settings alias model name canary weight",
      },
      {
        slug: "routing",
        title: "Routing recipes",
        keywords:
          "routing fallback failover load balancing load balancer retry order provider cheapest " +
          "fastest latency region router auto",
      },
      {
        slug: "local-models",
        title: "Local models",
        keywords: "ollama vllm llama.cpp lm studio local models self-hosted model gpu",
      },
      {
        slug: "charges",
        title: "Reading a charge",
        keywords:
          "price pricing cost charge billing tokens usage credits statement invoice cost of a " +
          "request prompt caching price",
      },
      {
        slug: "app-keys",
        title: "Give an app a key",
        keywords: "oauth app consent pkce sign in with device flow connect app key for users",
      },
      {
        slug: "privacy",
        title: "Privacy and zero retention",
        keywords: "zdr zero data retention gdpr privacy logging prompts stored content",
      },
      {
        slug: "card-payments",
        title: "Card payments",
        keywords: "stripe card payment top up credits checkout auto top-up refund",
      },
      {
        slug: "troubleshooting",
        title: "Troubleshooting",
        keywords:
          "problem error fix debug why 401 402 403 404 429 502 503 slow latency not working " +
          "insufficient balance model not found first paid call which provider",
      },
      {
        slug: "command",
        title: "The command switchyard",
        keywords: "cli command line terminal switchyard command check doctor",
      },
      {
        slug: "from-litellm",
        title: "Coming from LiteLLM",
        keywords: "litellm migrate import config.yaml virtual keys proxy",
      },
      {
        slug: "from-portkey",
        title: "Coming from Portkey",
        keywords: "portkey migrate import config",
      },
      {
        slug: "from-openrouter",
        title: "Coming from OpenRouter",
        keywords: "openrouter migrate import",
      },
      {
        slug: "from-tensorzero",
        title: "Coming from TensorZero",
        keywords: "tensorzero migrate import tensorzero.toml functions variants",
      },
      {
        slug: "from-helicone",
        title: "Coming from Helicone's AI gateway",
        keywords: "helicone migrate import ai-gateway router",
      },
      {
        slug: "from-bifrost",
        title: "Coming from Bifrost",
        keywords: "bifrost migrate import config.json virtual keys governance",
      },
      {
        slug: "from-openai",
        title: "Coming from a provider's API",
        keywords: "migrate openai azure environment variables",
      },
    ],
  },
  {
    slug: "operate",
    title: "Operate",
    pages: [
      {
        slug: "install",
        title: "Install and upgrade",
        keywords:
          "docker docker compose kubernetes k8s helm systemd container image install upgrade " +
          "update rollback deploy version",
      },
      {
        slug: "production",
        title: "Run in production",
        keywords:
          "production go-live checklist nginx caddy reverse proxy load balancer tls https " +
          "sizing public url systemd timeouts",
      },
      {
        slug: "people",
        title: "People and sign-in",
        keywords:
          "sso single sign-on oidc login entra azure ad okta google workspace passkey " +
          "two-factor 2fa mfa invite people roles owner lost password reset claim saml scim " +
          "users",
      },
      {
        slug: "providers",
        title: "Providers",
        keywords:
          "provider add a provider add a model custom model pricing switchyard.yaml anthropic " +
          "openai bedrock azure vertex gemini credentials reload",
      },
      {
        slug: "backup",
        title: "Backup and restore",
        keywords: "backup restore disaster recovery copy database dump",
      },
      {
        slug: "several-gateways",
        title: "Several gateways",
        keywords:
          "high availability ha cluster scale horizontally multiple instances postgres valkey " +
          "redis replicas several gateways",
      },
      {
        slug: "archive",
        title: "The archive",
        keywords: "clickhouse archive long-term analytics records",
      },
      {
        slug: "network",
        title: "Proxies and certificates",
        keywords: "proxy https_proxy certificate ca tls ssl ssrf firewall keepalive nginx timeout",
      },
      {
        slug: "observability",
        title: "Observability",
        keywords:
          "grafana prometheus metrics opentelemetry otel tracing traces logs langfuse datadog " +
          "dashboard alert alerting monitoring",
      },
      {
        slug: "outages",
        title: "Stops and outages",
        keywords: "outage shutdown sigterm drain database down postgres away disk full doctor",
      },
      {
        slug: "failure-modes",
        title: "Failure modes",
        keywords: "failure chaos what happens when 503",
      },
      {
        slug: "security",
        title: "Security",
        keywords:
          "security threat encryption secrets audit log vulnerability hardening ip allowlist hsts",
      },
      {
        slug: "capacity",
        title: "Capacity",
        keywords:
          "performance benchmark sizing memory cpu throughput latency overhead how fast requests per second",
      },
    ],
  },
];
