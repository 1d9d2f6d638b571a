import { html } from "hono/html";
import { brand } from "../platform/lib/brand.ts";
import { errorCatalog } from "../platform/lib/errors.ts";
import type { Html, Page } from "./page.ts";

/** One endpoint as the documentation shows it. */
export interface DocumentedEndpoint {
  method: string;
  path: string;
  summary: string;
  description: string | undefined;
  /** Who may call it. */
  credential: string;
}

const errorRows = (): Html[] =>
  Object.entries(errorCatalog).map(([code, { status, type, retry, fault }]) =>
    html`<tr><td>${status}</td><td><code>${code}</code></td><td>${type}</td><td>${fault}</td><td>${retry ? "yes" : "no"}</td></tr>
`);

const endpointRow = ({ method, path, summary, description, credential }: DocumentedEndpoint): Html =>
  html`<tr><td><code>${method}</code></td><td><code>${path}</code></td>
<td>${summary}${description === undefined ? "" : html`<br><span class="hint">${description}</span>`}</td><td>${credential}</td></tr>
`;

/** A table that scrolls by itself where the window is narrow, with the keyboard too. */
const tableHtml = ({ label, columns, rows }: { label: string; columns: readonly string[]; rows: readonly Html[] }): Html =>
  html`<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table><thead><tr>${columns.map(
    (column) => html`<th scope="col">${column}</th>`,
  )}</tr></thead><tbody>${rows}</tbody></table></div>`;

/** The documentation of the API, made from the endpoint table and the error catalogue. */
export function docsPage(
  endpoints: readonly DocumentedEndpoint[], { publicUrl, exampleModel }: { publicUrl: string; exampleModel: string },
): Page {
  const example = `curl ${publicUrl}/api/v1/chat/completions \\
  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "${exampleModel}", "messages": [{"role": "user", "content": "Hello"}]}'`;
  return {
    title: "API",
    width: "widest",
    body: html`<div class="card"><h1>${brand.productName} API</h1>
<p>Every endpoint answers under <code>/api/v1</code> and <code>/v1</code>. The machine-readable form is
<a href="/api/v1/openapi.json">OpenAPI 3.1</a>.</p>
<pre class="code" tabindex="0">${example}</pre>
<h2>Endpoints</h2>
${tableHtml({ label: "Endpoints", columns: ["Method", "Path", "What it does", "Credential"], rows: endpoints.map(endpointRow) })}
<h2>Errors</h2>
<p>Every error has <code>{error: {code, message, type, param, metadata}}</code>; <code>metadata.fault</code> says who refused: client,
gateway or upstream.</p>
${tableHtml({ label: "Errors", columns: ["Status", "Code", "Type", "Fault", "Retry"], rows: errorRows() })}</div>`,
  };
}
