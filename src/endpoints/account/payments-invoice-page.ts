import { createHash } from "node:crypto";
import { centsText } from "../../account/payments/cents.ts";
import { documentId, type IssuedDocument } from "../../account/payments/document.ts";
import { escapeHtml } from "../../http/escape-html.ts";

const style = `body{font:15px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1.5rem;color:#1b1f24;background:#fff}
header,section{display:flex;justify-content:space-between;gap:2rem;margin-bottom:2rem}
h1{margin:0;font-size:1.6rem}h2{margin:0 0 .25rem;font-size:.8rem;text-transform:uppercase;letter-spacing:.05em;color:#667}
p{margin:0}table{width:100%;border-collapse:collapse}td,th{padding:.5rem 0;border-bottom:1px solid #ccd;text-align:left}
td:last-child,th:last-child{text-align:right;font-variant-numeric:tabular-nums}tfoot td{font-weight:600;border-bottom:0}
footer{margin-top:2.5rem;color:#667;font-size:.85rem}@media print{body{margin:0}}`;

const linesHtml = (lines: readonly (string | undefined)[]): string =>
  lines.filter((line) => line !== undefined).map((line) => `<p>${escapeHtml(line)}</p>`).join("");

const rowHtml = (label: string, amount: string): string => `<tr><td>${escapeHtml(label)}</td><td>${escapeHtml(amount)}</td></tr>`;

/** A document as a page to print; of a credit note with the invoice that it corrects. */
export function invoicePageHtml(document: IssuedDocument, corrected: IssuedDocument | undefined): string {
  const { seller, buyer, creditCents, feeCents, currency } = document;
  const kind = corrected === undefined ? "Invoice" : "Credit note";
  const id = documentId(document);
  const money = (cents: number): string => centsText(cents, currency);
  const rows = [["Prepaid credits", creditCents], ["Processing fee", feeCents]] as const;
  const taxId = seller?.taxId === undefined ? undefined : `Tax id ${seller.taxId}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${kind} ${id}</title><style>${style}</style></head><body>
<header><h1>${kind} ${id}</h1><p>${new Date(document.issuedAtMs).toISOString().slice(0, "2026-11-30".length)}</p></header>
<section><div><h2>From</h2>${linesHtml([seller?.name, ...seller?.address ?? [], taxId])}</div>
<div><h2>To</h2>${linesHtml([buyer.name, buyer.email])}</div></section>
<table><thead><tr><th>${corrected === undefined ? "Paid by card" : "Given back"}</th><th>Amount</th></tr></thead>
<tbody>${rows.map(([label, cents]) => rowHtml(label, money(cents))).join("")}</tbody>
<tfoot>${rowHtml("Total", money(creditCents + feeCents))}</tfoot></table>
<footer>${linesHtml([
    `Top-up ${document.orderId}`, corrected && `Corrects invoice ${documentId(corrected)}`, seller?.taxNote,
    document.series.startsWith("test_") ? "Test mode: no money was moved." : undefined,
  ])}</footer>
</body></html>
`;
}

/** Headers of such pages: no script, nothing loaded from elsewhere, kept by nobody. */
export const invoicePageHeaders = (): Record<string, string> => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; `
    + "frame-ancestors 'none'; base-uri 'none'",
  "cache-control": "private, no-store",
  "x-content-type-options": "nosniff",
});
