import { RateTiers } from "../access/rate-tiers.ts";
import { type Scope, scopes } from "../identity/keys/scopes.ts";
import type { PlanId } from "../identity/workspaces/workspace-store.ts";
import { directiveTable } from "../inference/sandbox/directives.ts";
import type { Tool } from "../mcp/tool.ts";
import { type ErrorCode, errorCatalog } from "../platform/kernel/errors.ts";
import { metricTable } from "../platform/telemetry/metric-families.ts";
import { table } from "./api-pages.ts";
import type { PageEntry } from "./contents.ts";
import { deviationsPage } from "./deviation-texts.ts";
import { errorTexts } from "./error-texts.ts";
import { headerTexts } from "./header-texts.ts";
import { settings, variables } from "./setting-texts.ts";

/** The sources of generated pages, beside the tables of the program. */
export interface Facts {
  /** The OpenAPI document. */
  openApi: Readonly<Record<string, unknown>>;
  /** The tools of the MCP server. */
  tools: readonly Tool[];
  /** The text of `switchyard.example.yaml`, whose comments describe the settings. */
  exampleYaml: string;
  /** The gateway's address, for examples. */
  publicUrl: string;
}

/** A page that is generated from the program. */
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

Every error has the form \`{"error": {"code", "message", "type", "param", "metadata"}}\`. The Messages endpoint wraps it in
Anthropic's form.

- \`code\` is stable. This page describes each code.
- \`param\` names the field that caused the error.
- \`metadata.fault\` names the party that caused the failure: client, gateway or upstream.
- \`metadata.trace_id\` identifies the request.
- \`metadata.doc_url\` links to the code on this page.

Provider failures also have \`upstream_backend\`, \`upstream_status\` and \`upstream_message\`, which is the provider's own message.
\`upstream_attempts\` lists every provider that the gateway tried.

${parts.join("\n\n")}\n`;
}

const sides = {
  request: "Request header.",
  answer: "Answer header.",
  both: "Request and answer header.",
  webhook: "Webhook header.",
} as const;

const headersPage = (): string => `# Headers

These are the request and answer headers of the gateway. Header names are not case-sensitive.

${headerTexts.map(({ name, side, text }) => `## ${name}\n\n${sides[side]} ${text}`).join("\n\n")}
`;

function configurationPage(exampleYaml: string): string {
  const parts = new Map<string, string[][]>();
  for (const { path, type, text, standard, example } of settings(exampleYaml)) {
    const [top = ""] = path.split(/[.[]/);
    parts.set(top, [
      ...(parts.get(top) ?? []),
      [
        code(path),
        type.length > 160 ? `${type.slice(0, 157)}...` : type,
        standard,
        text,
        code(example),
      ],
    ]);
  }
  const tables = [...parts].map(
    ([top, rows]) =>
      `## ${top}\n\n${table(["key", "type", "default", "meaning", "example"], rows)}`,
  );
  return `# Configuration

Environment variables take precedence over \`switchyard.yaml\`, which takes precedence over the defaults.

- Every key is optional. An unknown key is an error, which names its line.
- \`switchyard check\` reports every mistake without starting the gateway, and \`switchyard check --explain KEY\` explains one key.
- \`\${NAME}\` in a value inserts an environment variable. \`\${NAME:-value}\` gives it a default.
- Every secret can come from a file: \`DATABASE_URL_FILE=/run/secrets/db\`.

## Environment variables

${table(
  ["variable", "default", "meaning"],
  variables.map(([name, standard, text]) => [code(name), standard, text]),
)}

The gateway reads provider keys from the vendors' usual variables; see [providers](/docs/operate/providers).

${tables.join("\n\n")}
`;
}

const metricsPage = (): string => `# Metrics

\`GET /metrics\` returns these metrics in Prometheus' format, on \`SWITCHYARD_METRICS_PORT\` if it is set. It also returns metrics of
the process (\`process_*\`, \`nodejs_*\`).

${metricTable()
  .map(
    ({ name, kind, help, labels }) =>
      `## ${name}\n\nA ${kind}. ${help}${labels.length === 0 ? "" : ` Labels: ${labels.map(code).join(", ")}.`}`,
  )
  .join("\n\n")}
`;

const scopesPage = (): string => `# Scopes

Management keys, connected apps and people's roles have scopes. \`write:X\` includes \`read:X\`. LLM keys have no scopes.

${scopes.map((scope) => `## ${scope}\n\n${scopeTexts[scope]}`).join("\n\n")}
`;

const sandboxPage = (): string => `# Sandbox directives

The sandbox is a simulated provider that serves \`sandbox/chat:free\` and similar models. It is on while no provider has a key, and
always with \`sandbox: { enabled: true }\`. It uses no network, gives the same answer to the same request, and costs nothing.

To test how your client handles failures, change the answer with a directive in the last user message: \`sandbox:name=value\`, or
\`sandbox:name\` for the value 1.

${Object.entries(directiveTable)
  .map(([name, { most, meaning }]) => `## sandbox:${name}\n\n${meaning} At most ${most}.`)
  .join("\n\n")}
`;

const effects = {
  nothing: "Read-only.",
  adds: "Creates something.",
  destroys: "Changes or deletes something.",
} as const;

const toolsPage = (tools: readonly Tool[]): string => `# MCP tools

These are the tools of the MCP server at \`/mcp\`. To connect a client, see [the guide](/docs/guides/mcp). LLM keys can call the tools
that need no scope. Management keys and connected apps can call the tools whose scope they have.

${tools
  .map(
    ({ name, description, scope, operators, endpoint, effect }) =>
      `## ${name}\n\n${description}\n\n` +
      `Scope: ${scope === null ? "none" : code(scope)}. ${operators ? "For operators. " : ""}${effects[effect]}` +
      `${endpoint === undefined ? "" : ` Calls ${code(endpoint)}.`}`,
  )
  .join("\n\n")}
`;

/** Returns the pages of the reference that are generated from the program, beside those of the API. */
export function generatedPages({
  tools,
  exampleYaml,
}: Pick<Facts, "tools" | "exampleYaml">): GeneratedPage[] {
  return [
    { slug: "errors", title: "Error codes", markdown: errorsPage() },
    { slug: "headers", title: "Headers", markdown: headersPage() },
    { slug: "events", title: "Events of streams", markdown: eventsPage },
    { slug: "configuration", title: "Configuration", markdown: configurationPage(exampleYaml) },
    { slug: "deviations", title: "Deviations of servers", markdown: deviationsPage() },
    { slug: "metrics", title: "Metrics", markdown: metricsPage() },
    { slug: "scopes", title: "Scopes", markdown: scopesPage() },
    { slug: "limits", title: "Limits", markdown: limitsPage() },
    { slug: "sandbox", title: "Sandbox directives", markdown: sandboxPage() },
    { slug: "mcp-tools", title: "MCP tools", markdown: toolsPage(tools) },
  ];
}

/** The requests that each scope allows. */
const scopeTexts: Record<Scope, string> = {
  "read:llm-keys": "List LLM keys: `GET /keys`, `GET /key`.",
  "write:llm-keys": "Create, change, rotate and delete LLM keys.",
  "read:presets": "Read presets and aliases.",
  "write:presets": "Create, change and delete presets and aliases.",
  "read:byok": "List the workspace's own provider keys, masked.",
  "write:byok": "Add, change, donate, withdraw and delete provider keys.",
  "read:credits": "Read `GET /credits`, invoices and top-ups.",
  "read:analytics": "Read `GET /analytics/*` and generation records.",
  "read:management-keys": "List management keys.",
  "write:management-keys":
    "Create and revoke management keys. Keys of the first workspace also get all operator endpoints.",
  "read:security": "Read credentials, the IP allowlist, privacy and the audit log.",
  "write:security": "Change the IP allowlist and privacy.",
  "read:hub": "Read hubs, prompts and skills.",
  "write:hub": "Publish, star, fork and import them.",
  "read:connections": "List connected apps.",
  "write:connections": "Disconnect connected apps.",
  inference: "Call models.",
};

const plans: readonly PlanId[] = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"];

/** Returns the page of limits: requests per minute by plan, and the other bounds of requests. */
function limitsPage(): string {
  const tiers = new RateTiers();
  const rows = plans.map(
    (plan) =>
      `| \`${plan}\` | ${tiers.tierFor(plan, "paid").perMinute} | ${tiers.tierFor(plan, "free-model").perMinute} ` +
      `| ${tiers.tierFor(plan, "decision").perMinute} | ${tiers.quotaFor(plan, "paid")?.requests ?? "-"} |`,
  );
  return `# Limits

## Requests per minute

The gateway counts requests for each key in a sliding minute. \`X-RateLimit-*\` headers show the window, and a 429 answer has
\`Retry-After\`. A key can have its own lower \`rate_limit\` and \`tpm\`. Operators change the plans under \`plans:\` in
[the configuration](/docs/reference/configuration).

| plan | paid models | free models | decisions | in five hours |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

Requests without a credential and requests with an invalid one are limited to 300 per minute and address; an IPv6 /64 counts as one
address. MCP is limited to 120 calls per minute and credential.

## Limits of a request

| limit | value | beyond it |
| --- | --- | --- |
| size of a request's head | 16 KB | 431 |
| size of a body | by route, 32 MB for inference, also after decompression | 413 |
| time to send a body | 10 seconds, plus one for every 32 KB received; a pause in a body above 2 MB, 20 seconds | 408 |
| JSON | 1,000 levels, 50,000 members, 50,000 strings, 400,000 array entries | 400 (levels) or 413 |
| all bodies in memory | \`server.body_memory_mb\`, ≤ 256; then, bodies up to 2 MB give way after 10 seconds | 503 with \`Retry-After\` |
| a client that does not read its stream | 60 to 75 seconds | its upstream request is stopped, its connection closed |
| silence on a connection between requests | 75 seconds | closed |
`;
}

/** The events of each stream. */
const eventsPage = `# Events of streams

Every stream consists of server-sent events. After the first content, the gateway no longer tries another provider. A failure then
ends the stream with one error event, so an interrupted stream never looks complete.

## Chat completions

The stream has \`data:\` lines with \`chat.completion.chunk\` objects, then \`data: [DONE]\`.

- The chunk with \`usage\` has \`usage.cost\` in USD. When you see it, the charge is committed.
- If another model served, the first chunk with usage has \`fallback: {used, reason, attempts}\`.
- The last chunk has \`service_metadata\` with timings and \`creditsCharged\`.
- A failure is a chunk with \`error\`.

## Messages

The events have Anthropic's names: \`message_start\`, \`content_block_start\`, \`content_block_delta\`, \`content_block_stop\`,
\`message_delta\` (with \`usage.cost\`), \`message_stop\`, \`ping\`, and \`error\` for a failure.

## Responses

The events are \`response.created\`, \`response.in_progress\`, \`response.output_item.added\`, \`response.content_part.added\`,
\`response.output_text.delta\`, \`response.output_text.done\`, \`response.content_part.done\`, \`response.output_item.done\`, then
\`response.completed\`, \`response.incomplete\` or \`response.failed\`.

After the last event, \`response.service.metadata\` reports the provider that served and the cost. If your client rejects unknown
events, send \`X-Service-Metadata-Frame: inline\`; the same data is then in \`response.completed\`.

Each event has a \`sequence_number\`. To resume a stream after event N, call \`GET /responses/{id}?stream=true&starting_after=N\`.

## Budget webhooks

The gateway sends \`budget.threshold_reached\` and similar events by \`POST\`, with \`X-Service-Event\`, \`X-Service-Delivery\` and
\`X-Service-Signature\`. It repeats a delivery that is not answered with 2xx. See [budgets](/docs/guides/budgets).
`;
