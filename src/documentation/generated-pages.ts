import { scopes } from "../account/keys/scopes.ts";
import { directiveTable } from "../inference/sandbox/directives.ts";
import type { Tool } from "../mcp/tool.ts";
import { errorCatalog, type ErrorCode } from "../platform/lib/errors.ts";
import { metricTable } from "../platform/telemetry/metric-families.ts";
import { apiPages } from "./api-pages.ts";
import type { PageEntry } from "./contents.ts";
import { errorTexts } from "./error-texts.ts";
import { eventsPage, limitsPage, scopeTexts } from "./fixed-pages.ts";
import { headerTexts } from "./header-texts.ts";
import { table } from "./markdown-table.ts";
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
provider's own words; \`upstream_attempts\` lists everybody who was asked.

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
