import { RateTiers } from "../access/rate-limiter.ts";
import { type Scope, scopes } from "../identity/keys/scopes.ts";
import type { PlanId } from "../identity/workspaces/workspace-store.ts";
import { directiveTable } from "../inference/sandbox/directives.ts";
import type { Tool } from "../mcp/tool.ts";
import { type ErrorCode, errorCatalog } from "../platform/kernel/errors.ts";
import { metricTable } from "../platform/telemetry/metric-families.ts";
import { apiPages, table } from "./api-pages.ts";
import type { PageEntry } from "./contents.ts";
import { errorTexts } from "./error-texts.ts";
import { headerTexts } from "./header-texts.ts";
import { settings, variables } from "./setting-texts.ts";

/** What pages are generated from, beside the tables of the program. */
export interface Facts {
  /** The OpenAPI document. */
  openApi: Readonly<Record<string, unknown>>;
  /** Tools of the MCP server. */
  tools: readonly Tool[];
  /** Text of `switchyard.example.yaml`, whose comments describe the settings. */
  exampleYaml: string;
  /** Where the gateway is reached, for examples. */
  publicUrl: string;
}

/** A page that is made from the program. */
export interface GeneratedPage extends PageEntry {
  markdown: string;
}

const code = (text: string): string => (text === "" ? "" : `\`${text}\``);

function errorsPage(): string {
  const codes = (Object.keys(errorCatalog) as ErrorCode[]).toSorted();
  const parts = codes.map((name) => {
    const { status, type, retry, fault } = errorCatalog[name];
    const [meaning, wayOut] = errorTexts[name];
    return (
      `## ${name}\n\n${meaning}\n\n**What to do:** ${wayOut}\n\n` +
      `Status ${status}, type \`${type}\`, fault \`${fault}\`, ` +
      (retry ? "the same request may succeed later." : "the same request fails again.")
    );
  });
  return `# Error codes

Every error is \`{"error": {"code", "message", "type", "param", "metadata"}}\`; the Messages endpoint wraps it as Anthropic
does. \`code\` is stable,
\`param\` names the field, \`metadata.fault\` says who refused (client, gateway or upstream), \`metadata.trace_id\` names the request, and
\`metadata.doc_url\` leads to the code below. Failures of providers add \`upstream_backend\`, \`upstream_status\` and
\`upstream_message\`, the
provider's own words; \`upstream_attempts\` lists every provider that was asked.

${parts.join("\n\n")}\n`;
}

const sides = {
  request: "Of requests.",
  answer: "Of answers.",
  both: "Of requests and answers.",
  webhook: "Of webhooks.",
} as const;

const headersPage = (): string => `# Headers

Names are compared without regard to case.

${headerTexts.map(({ name, side, text }) => `## ${name}\n\n${sides[side]} ${text}`).join("\n\n")}
`;

function configurationPage(exampleYaml: string): string {
  const parts = new Map<string, string[][]>();
  for (const { path, type, text, example } of settings(exampleYaml)) {
    const [top = ""] = path.split(/[.[]/);
    parts.set(top, [
      ...(parts.get(top) ?? []),
      [code(path), type.length > 160 ? `${type.slice(0, 157)}...` : type, text, code(example)],
    ]);
  }
  const tables = [...parts].map(
    ([top, rows]) => `## ${top}\n\n${table(["key", "type", "meaning", "example"], rows)}`,
  );
  return `# Configuration

Environment variables win over \`switchyard.yaml\`, and that over the defaults. Every key is optional, an unknown one is an error with its
line, and \`switchyard check\` reports every mistake without starting. \`\${NAME}\` in a value is an environment variable,
\`\${NAME:-value}\` gives it a default. Every secret may be given as a file: \`DATABASE_URL_FILE=/run/secrets/db\`.

## Environment variables

${table(
  ["variable", "default", "meaning"],
  variables.map(([name, standard, text]) => [code(name), standard, text]),
)}

The keys of providers are read from the vendors' usual variables; see [providers](/docs/operate/providers).

${tables.join("\n\n")}
`;
}

const metricsPage = (): string => `# Metrics

\`GET /metrics\` in Prometheus' format, on \`SWITCHYARD_METRICS_PORT\` where it is set. Metrics of the process (\`process_*\`,
\`nodejs_*\`) come with them.

${metricTable()
  .map(
    ({ name, kind, help, labels }) =>
      `## ${name}\n\nA ${kind}. ${help}${labels.length === 0 ? "" : ` Labels: ${labels.map(code).join(", ")}.`}`,
  )
  .join("\n\n")}
`;

const scopesPage = (): string => `# Scopes

Management keys, connected apps and the roles of people hold scopes; \`write:X\` includes \`read:X\`. LLM keys hold none.

${scopes.map((scope) => `## ${scope}\n\n${scopeTexts[scope]}`).join("\n\n")}
`;

const sandboxPage = (): string => `# Sandbox directives

While no provider has a key, or always with \`sandbox: { enabled: true }\`, a simulated provider serves \`sandbox/chat:free\`
and its like. It answers
without a network, the same to the same request, and costs nothing. \`sandbox:name=value\` in the last user message, or
\`sandbox:name\` for 1,
changes the answer, so that you can see how your client takes trouble.

${Object.entries(directiveTable)
  .map(([name, { most, meaning }]) => `## sandbox:${name}\n\n${meaning} At most ${most}.`)
  .join("\n\n")}
`;

const effects = {
  nothing: "Reads.",
  adds: "Makes something new.",
  destroys: "Changes or ends something.",
} as const;

const toolsPage = (tools: readonly Tool[]): string => `# MCP tools

The tools of \`/mcp\`; [the guide](/docs/guides/mcp) connects clients. LLM keys call tools without a scope; management keys and
connected apps those
whose scope they hold.

${tools
  .map(
    ({ name, description, scope, operators, endpoint, effect }) =>
      `## ${name}\n\n${description}\n\n` +
      `Scope: ${scope === null ? "none" : code(scope)}. ${operators ? "For operators. " : ""}${effects[effect]}` +
      `${endpoint === undefined ? "" : ` Stands for ${code(endpoint)}.`}`,
  )
  .join("\n\n")}
`;

/** Every page that is made from the program. */
export function generatedPages({ openApi, tools, exampleYaml, publicUrl }: Facts): GeneratedPage[] {
  return [
    ...apiPages(openApi, publicUrl),
    { slug: "errors", title: "Error codes", markdown: errorsPage() },
    { slug: "headers", title: "Headers", markdown: headersPage() },
    { slug: "events", title: "Events of streams", markdown: eventsPage },
    { slug: "configuration", title: "Configuration", markdown: configurationPage(exampleYaml) },
    { slug: "metrics", title: "Metrics", markdown: metricsPage() },
    { slug: "scopes", title: "Scopes", markdown: scopesPage() },
    { slug: "limits", title: "Limits", markdown: limitsPage() },
    { slug: "sandbox", title: "Sandbox directives", markdown: sandboxPage() },
    { slug: "mcp-tools", title: "MCP tools", markdown: toolsPage(tools) },
  ];
}

/** What each scope allows. */
const scopeTexts: Record<Scope, string> = {
  "read:llm-keys": "List LLM keys: `GET /keys`, `GET /key`.",
  "write:llm-keys": "Create, change, rotate and delete LLM keys.",
  "read:presets": "Read presets.",
  "write:presets": "Create, change and delete presets.",
  "read:byok": "List the workspace's own provider keys, masked.",
  "write:byok": "Add, change, donate, withdraw and delete provider keys.",
  "read:credits": "`GET /credits`, invoices and top-ups.",
  "read:analytics": "`GET /analytics/*` and records of generations.",
  "read:management-keys": "List management keys.",
  "write:management-keys":
    "Create and revoke management keys; of the first workspace's keys also everything of operators.",
  "read:security": "Read credentials, the IP allowlist, privacy and the audit log.",
  "write:security": "Change the IP allowlist and privacy.",
  "read:hub": "Read hubs, prompts and skills.",
  "write:hub": "Publish, star, fork and import them.",
  "read:connections": "List connected apps.",
  "write:connections": "End connected apps.",
  inference: "Ask models.",
};

const plans: readonly PlanId[] = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"];

/** Requests a minute by plan, and the other bounds of requests. */
function limitsPage(): string {
  const tiers = new RateTiers();
  const rows = plans.map(
    (plan) =>
      `| \`${plan}\` | ${tiers.tierFor(plan, "paid").perMinute} | ${tiers.tierFor(plan, "free-model").perMinute} ` +
      `| ${tiers.tierFor(plan, "decision").perMinute} | ${tiers.quotaFor(plan, "paid")?.requests ?? "-"} |`,
  );
  return `# Limits

## Requests a minute

Counted for each key in a sliding minute; \`X-RateLimit-*\` headers show the window, and 429 comes with \`Retry-After\`. Keys
may have a lower
\`rate_limit\` and \`tpm\` of their own; operators change plans under \`plans:\` of [the configuration](/docs/reference/configuration).

| plan | paid models | free models | decisions | in five hours |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

Requests without a credential, and wrong credentials, count by address: 300 a minute, an IPv6 /64 as one. MCP takes 120 calls a minute by
credential.

## Bounds of a request

| bound | value | beyond it |
| --- | --- | --- |
| a request's head | 16 KB | 431 |
| a body's size | by route, 32 MB for inference, also after decompression | 413 |
| a body's time | 10 seconds, and one for every 32 KB that came | 408 |
| JSON | 1,000 levels, 50,000 members, 50,000 texts, 400,000 entries of lists | 400 (levels) or 413 |
| all bodies in memory | \`server.body_memory_mb\`, 256 | 503 with \`Retry-After\` |
| a client that does not read its stream | 60 to 75 seconds | its provider is stopped, its connection closed |
| a connection between requests | 75 seconds of silence | closed |
`;
}

/** The events of each stream. */
const eventsPage = `# Events of streams

Every stream is server-sent events. After the first content another provider is no longer tried: a failure ends the stream with
one error event,
and a stream that was cut never looks complete.

## Chat completions

\`data:\` lines with \`chat.completion.chunk\` objects, then \`data: [DONE]\`. The chunk that carries \`usage\` has
\`usage.cost\` in USD; once you see it the
charge stands. Where another model served, the first chunk with usage has \`fallback: {used, reason, attempts}\`. A last chunk carries
\`service_metadata\` with timings and \`creditsCharged\`. A failure is a chunk with \`error\`.

## Messages

\`message_start\`, \`content_block_start\`, \`content_block_delta\`, \`content_block_stop\`, \`message_delta\` (with
\`usage.cost\`), \`message_stop\`, \`ping\`, and
\`error\` where it fails, as Anthropic names them.

## Responses

\`response.created\`, \`response.in_progress\`, \`response.output_item.added\`, \`response.content_part.added\`,
\`response.output_text.delta\`,
\`response.output_text.done\`, \`response.content_part.done\`, \`response.output_item.done\`, then \`response.completed\`,
\`response.incomplete\` or
\`response.failed\`. \`response.service.metadata\` follows with who served and what it cost. Clients whose reader refuses
unknown events send
\`X-Service-Metadata-Frame: inline\` and find it in \`response.completed\`. Each event has a \`sequence_number\`, from which
\`GET /responses/{id}?stream=true&starting_after=N\` goes on.

## Webhooks of budgets

\`budget.threshold_reached\` and its like are sent by \`POST\` with \`X-Service-Event\`, \`X-Service-Delivery\` and
\`X-Service-Signature\`; a delivery that is not
answered with 2xx is repeated. See [budgets](/docs/guides/budgets).
`;
