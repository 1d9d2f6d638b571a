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

const price = (usd: number | undefined): string =>
  usd === undefined ? "–" : usd === 0 ? "free" : `$${usd} per million`;
const pathOf = (id: string): string =>
  `/catalog/${id.split("/").map(encodeURIComponent).join("/")}`;

/** Returns the page of all reachable models, each with a link to its own page. */
export const catalogPage = (entries: readonly CatalogEntry[]): Page => ({
  title: "Models",
  width: "wide",
  body: html`<div class="card"><h1>Models</h1><p>${entries.length} models can be reached here. <a href="/status">Status</a>.</p>
<ul>${entries.map(
    ({ id, name, inputPrice, outputPrice }) =>
      html`<li><a href="${pathOf(id)}">${name}</a> <code>${id}</code> in ${price(inputPrice)}, out ${price(outputPrice)}</li>`,
  )}</ul></div>`,
});

/** Returns the page of one model: prices by provider, context, parameters and privacy. */
export const catalogModelPage = (entry: CatalogEntry): Page => ({
  title: entry.name,
  width: "wide",
  body: html`<div class="card"><h1>${entry.name}</h1>${entry.description === undefined ? "" : html`<p>${entry.description}</p>`}${facts(
    [
      ["Id", entry.id],
      ["Kind", entry.category],
      ["Context", `${entry.contextLength} tokens`],
      ["Input", price(entry.inputPrice)],
      ["Output", price(entry.outputPrice)],
      ["Capabilities", entry.capabilities.join(", ") || "–"],
      ["Parameters", entry.parameters.join(", ") || "–"],
    ],
  )}<div class="actions">${linkButton({ href: `/dashboard/playground?model=${encodeURIComponent(entry.id)}`, label: "Try it" })}${linkButton(
    { href: "/catalog", label: "All models", plain: true },
  )}</div></div>
<div class="card"><h2>Providers</h2><dl>${entry.providers.map(
    ({ id, inputPrice, outputPrice, zdr }) =>
      html`<dt>${id}</dt><dd>In ${price(inputPrice)}, out ${price(outputPrice)}${zdr ? ", zero data retention" : ""}</dd>`,
  )}</dl></div>`,
});
