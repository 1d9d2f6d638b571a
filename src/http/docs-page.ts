import { brand } from "../platform/lib/brand.ts";
import { errorCatalog } from "../platform/lib/errors.ts";
import { escapeHtml } from "./escape-html.ts";
import { pathsOf, type Endpoint } from "./endpoint.ts";

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
@media (prefers-color-scheme:dark){body{color:#e6e8ea;background:#14171a}a{color:#8ab4f8}th,td{border-color:#333}}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{overflow:auto;padding:.75rem;background:#8881;border-radius:6px}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}`;

function credentialText({ access }: Endpoint<never>): string {
  const families = [
    ...(access.llmKey ? ["LLM key"] : []),
    ...(access.managementScope === undefined ? [] : [`management key with ${access.managementScope}`]),
    ...(access.anyScope ? ["management key", "connected app"] : []),
    ...(access.session ? ["session"] : []),
    ...(access.anonymous ? ["none, or an LLM key"] : []),
    ...(access.open ? ["none"] : []),
  ];
  return families.join(" or ");
}

function endpointRows(endpoints: readonly Endpoint<never>[]): string {
  return endpoints.map((endpoint) => `<tr><td><code>${endpoint.method}</code></td>`
    + `<td><code>${escapeHtml(pathsOf(endpoint)[0] ?? "")}</code></td>`
    + `<td>${escapeHtml(endpoint.summary)}${endpoint.description === undefined ? "" : `<br>${escapeHtml(endpoint.description)}`}</td>`
    + `<td>${escapeHtml(credentialText(endpoint))}</td></tr>`).join("\n");
}

const errorRows = (): string => Object.entries(errorCatalog)
  .map(([code, { status, type, retry, fault }]) => `<tr><td>${status}</td><td><code>${code}</code></td><td>${type}</td><td>${fault}</td><td>${retry ? "yes" : "no"}</td></tr>`)
  .join("\n");

/** A page for people, made from the endpoint table and the error catalogue; no script, nothing loaded from elsewhere. */
export function docsPage(endpoints: readonly Endpoint<never>[], { publicUrl, exampleModel }: { publicUrl: string; exampleModel: string }): string {
  const example = `curl ${publicUrl}/api/v1/chat/completions \\
  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "${exampleModel}", "messages": [{"role": "user", "content": "Hello"}]}'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${brand.productName} API</title><style>${style}</style></head><body>
<h1>${brand.productName} API</h1>
<p>Every endpoint answers under <code>/api/v1</code> and <code>/v1</code>. The machine-readable form is <a href="/api/v1/openapi.json">OpenAPI 3.1</a>.</p>
<pre>${escapeHtml(example)}</pre>
<h2>Endpoints</h2>
<table><thead><tr><th>Method</th><th>Path</th><th>What it does</th><th>Credential</th></tr></thead><tbody>
${endpointRows(endpoints)}
</tbody></table>
<h2>Errors</h2>
<p>Every error has <code>{error: {code, message, type, param, metadata}}</code>; <code>metadata.fault</code> says who refused: client, gateway or upstream.</p>
<table><thead><tr><th>Status</th><th>Code</th><th>Type</th><th>Fault</th><th>Retry</th></tr></thead><tbody>
${errorRows()}
</tbody></table>
</body></html>
`;
}
