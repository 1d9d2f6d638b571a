import { html } from "hono/html";
import { facts, linkButton } from "./message-page.ts";
import type { Page } from "./page.ts";

/** A model as it is shown publicly. */
export interface CatalogEntry {
  id: string;
  name: string;
  category: string;
  contextLength: number;
  description: string | undefined;
  capabilities: readonly string[];
  parameters: readonly string[];
  inputPrice: number | undefined;
  outputPrice: number | undefined;
  providers: readonly {
    id: string;
    inputPrice: number | undefined;
    outputPrice: number | undefined;
    zdr: boolean;
  }[];
}

const count = new Intl.NumberFormat("en-US");
const dollars = new Intl.NumberFormat("en-US", {
  style: "currency",
  currency: "USD",
  maximumFractionDigits: 6,
});

/** Returns a price per million tokens, with cents and no more places than it needs. */
const price = (usd: number | undefined): string =>
  usd === undefined ? "–" : usd === 0 ? "free" : dollars.format(usd);
const unitPrice = (usd: number | undefined): string =>
  usd === undefined || usd === 0 ? price(usd) : `${price(usd)} per million`;
const pathOf = (id: string): string =>
  `/catalog/${id.split("/").map(encodeURIComponent).join("/")}`;

/** Returns the page of all reachable models, each with a link to its own page. */
export const catalogPage = (entries: readonly CatalogEntry[]): Page => ({
  title: "Models",
  width: "wide",
  body: html`<div class="card"><h1>Models</h1><p>${entries.length} models can be reached here. <a href="/status">Status</a>.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Models and prices"><table><thead><tr><th scope="col">Model</th>
<th scope="col" class="amount">Input, 1M tokens</th><th scope="col" class="amount">Output, 1M tokens</th></tr></thead>
<tbody>${entries.map(
    ({ id, name, inputPrice, outputPrice }) =>
      html`<tr><td><a href="${pathOf(id)}">${name}</a><br><code>${id}</code></td><td class="amount">${price(inputPrice)}</td>
<td class="amount">${price(outputPrice)}</td></tr>`,
  )}</tbody></table></div></div>`,
});

/** Returns the page of one model: prices by provider, context, parameters and privacy. */
export const catalogModelPage = (entry: CatalogEntry): Page => ({
  title: entry.name,
  width: "wide",
  body: html`<div class="card"><h1>${entry.name}</h1>${entry.description === undefined ? "" : html`<p>${entry.description}</p>`}${facts(
    [
      ["Id", entry.id],
      ["Kind", entry.category],
      ["Context", `${count.format(entry.contextLength)} tokens`],
      ["Input", unitPrice(entry.inputPrice)],
      ["Output", unitPrice(entry.outputPrice)],
      ["Capabilities", entry.capabilities.join(", ") || "–"],
      ["Parameters", entry.parameters.join(", ") || "–"],
    ],
  )}<div class="actions">${linkButton({ href: `/dashboard/playground?model=${encodeURIComponent(entry.id)}`, label: "Try it" })}${linkButton(
    { href: "/catalog", label: "All models", plain: true },
  )}</div></div>
<div class="card"><h2>Providers</h2><dl>${entry.providers.map(
    ({ id, inputPrice, outputPrice, zdr }) =>
      html`<dt>${id}</dt><dd>In ${unitPrice(inputPrice)}, out ${unitPrice(outputPrice)}${zdr ? ", zero data retention" : ""}</dd>`,
  )}</dl></div>`,
});
