import { html } from "hono/html";
import { countText } from "../platform/kernel/count-text.ts";
import { facts, linkButton } from "./message-page.ts";
import type { Html, Page } from "./page.ts";

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
    name: string;
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

/** What models can be sorted by: the value of each, and whether the largest is first. */
const orders = {
  name: { label: "Model", of: ({ name }: CatalogEntry) => name.toLowerCase(), isDown: false },
  context: {
    label: "Context",
    of: ({ contextLength }: CatalogEntry) => contextLength,
    isDown: true,
  },
  input: {
    label: "Input, 1M tokens",
    of: ({ inputPrice }: CatalogEntry) => inputPrice ?? Number.POSITIVE_INFINITY,
    isDown: false,
  },
  output: {
    label: "Output, 1M tokens",
    of: ({ outputPrice }: CatalogEntry) => outputPrice ?? Number.POSITIVE_INFINITY,
    isDown: false,
  },
} as const;
type Order = keyof typeof orders;

/** What the visitor looks for. */
interface CatalogSearch {
  /** Words of the name, the id, the kind or the capabilities. */
  words: string;
  order: Order | undefined;
}

/** Reads the search of an address; an order that does not exist is none. */
export const catalogSearch = (query: URLSearchParams): CatalogSearch => ({
  words: (query.get("q") ?? "").trim().slice(0, 100),
  order: Object.keys(orders).find((name): name is Order => name === query.get("sort")),
});

function found(entries: readonly CatalogEntry[], { words, order }: CatalogSearch): CatalogEntry[] {
  const wanted = words.toLowerCase().split(/\s+/);
  const matches = entries.filter(({ id, name, category, capabilities }) => {
    const text = [id, name, category, ...capabilities].join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  if (order === undefined) return matches;
  const { of, isDown } = orders[order];
  return matches.toSorted((one, other) => {
    const [left, right] = [of(one), of(other)];
    const compared =
      typeof left === "number" && typeof right === "number"
        ? left === right
          ? 0
          : left - right
        : String(left).localeCompare(String(right));
    return isDown ? -compared : compared;
  });
}

/** Returns the head of a column of some classes, as a link that sorts by it. */
function sortHead(order: Order, search: CatalogSearch, kind: string): Html {
  const { words } = search;
  const { label, isDown } = orders[order];
  const query = new URLSearchParams({ ...(words === "" ? {} : { q: words }), sort: order });
  const isSorted = search.order === order;
  const sorted = isSorted ? html` aria-sort="${isDown ? "descending" : "ascending"}"` : "";
  const classes = kind === "" ? "" : html` class="${kind}"`;
  const arrow = isSorted ? (isDown ? " ↓" : " ↑") : "";
  return html`<th scope="col"${classes}${sorted}><a href="/catalog?${String(query)}">${label}</a>${arrow}</th>`;
}

const tokens = (length: number): string => (length > 0 ? count.format(length) : "–");

/** Returns an id that a narrow column breaks after its separators instead of within a word. */
const breakable = (id: string): Html =>
  html`${id.split(/(?<=[/:._])/).map((part, index) => html`${index === 0 ? "" : html`<wbr>`}${part}`)}`;

const modelRow = ({ id, name, contextLength, inputPrice, outputPrice }: CatalogEntry): Html =>
  html`<tr><td><a href="${pathOf(id)}">${name}</a><br><code>${breakable(id)}</code></td>
<td class="amount further">${tokens(contextLength)}</td><td class="amount">${price(inputPrice)}</td>
<td class="amount">${price(outputPrice)}</td></tr>`;

const catalogTable = (entries: readonly CatalogEntry[], search: CatalogSearch): Html =>
  html`<div class="scroll" tabindex="0" role="region" aria-label="Models and prices"><table><thead><tr>
${sortHead("name", search, "")}${sortHead("context", search, "amount further")}
${sortHead("input", search, "amount")}${sortHead("output", search, "amount")}</tr></thead>
<tbody>${entries.map(modelRow)}</tbody></table></div>`;

/** Returns the field that searches, which keeps the order. */
const searchForm = ({ words, order }: CatalogSearch): Html =>
  html`<form method="get" action="/catalog" role="search" class="find"><label for="q">Find models</label>
<div><input id="q" name="q" type="search" maxlength="100" value="${words}" placeholder="Name, maker, kind or capability">
${order === undefined ? "" : html`<input type="hidden" name="sort" value="${order}">`}<button type="submit">Find</button></div></form>`;

/** Returns the page of the reachable models that a search finds, each with a link to its own page. */
export function catalogPage(entries: readonly CatalogEntry[], search: CatalogSearch): Page {
  const shown = found(entries, search);
  const matches =
    shown.length === 0 ? "No model matches." : `${shown.length} of ${entries.length} match.`;
  const result =
    search.words === ""
      ? ""
      : html`<p role="status">${matches} <a href="/catalog">Show all models</a></p>`;
  return {
    title: "Models",
    width: "wide",
    body: html`<div class="card"><h1>Models</h1>
<p>${countText(entries.length, "model")} can be reached here. <a href="/status">Status</a>.</p>
${searchForm(search)}${result}${shown.length === 0 ? "" : catalogTable(shown, search)}</div>`,
  };
}

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
    ({ name, inputPrice, outputPrice, zdr }) =>
      html`<dt>${name}</dt><dd>In ${unitPrice(inputPrice)}, out ${unitPrice(outputPrice)}${zdr ? ", zero data retention" : ""}</dd>`,
  )}</dl></div>`,
});
