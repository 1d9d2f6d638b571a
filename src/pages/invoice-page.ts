import { html } from "hono/html";
import type { Html, Page } from "./page.ts";

/** The texts of an invoice or a credit note. */
export interface InvoicePage {
  /** A title such as `Invoice INV-000001`. */
  title: string;
  date: string;
  seller: readonly string[];
  buyer: readonly string[];
  /** The heading of the amounts, such as `Paid by card`. */
  heading: string;
  rows: readonly (readonly [label: string, amount: string])[];
  total: string;
  notes: readonly string[];
}

const lines = (texts: readonly string[]): Html[] => texts.map((text) => html`<p>${text}</p>`);

const rowHtml = (label: string, amount: string): Html =>
  html`<tr><td>${label}</td><td class="amount">${amount}</td></tr>`;

/** Returns an invoice or a credit note as a page to print. */
export const invoicePage = ({
  title,
  date,
  seller,
  buyer,
  heading,
  rows,
  total,
  notes,
}: InvoicePage): Page => ({
  title,
  width: "wide",
  body: html`<div class="card"><h1>${title}</h1><p>${date}</p>
<div class="parties"><div><h2>From</h2>${lines(seller)}</div><div><h2>To</h2>${lines(buyer)}</div></div>
<table><thead><tr><th scope="col">${heading}</th><th scope="col" class="amount">Amount</th></tr></thead>
<tbody>${rows.map(([label, amount]) => rowHtml(label, amount))}</tbody><tfoot>${rowHtml("Total", total)}</tfoot></table>
${notes.map((note) => html`<p class="hint">${note}</p>`)}</div>`,
});
