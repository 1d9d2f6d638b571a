import { centsText } from "../../account/payments/cents.ts";
import { documentId, type IssuedDocument } from "../../account/payments/document.ts";
import { invoicePage } from "../../pages/invoice-page.ts";
import type { Page } from "../../pages/page.ts";

const present = (texts: readonly (string | undefined)[]): string[] =>
  texts.filter((text) => text !== undefined);

/** A document as a page to print; of a credit note with the invoice that it corrects. */
export function issuedPage(document: IssuedDocument, corrected: IssuedDocument | undefined): Page {
  const { seller, buyer, creditCents, feeCents, currency } = document;
  const kind = corrected === undefined ? "Invoice" : "Credit note";
  const money = (cents: number): string => centsText(cents, currency);
  return invoicePage({
    title: `${kind} ${documentId(document)}`,
    date: new Date(document.issuedAtMs).toISOString().slice(0, "2026-11-30".length),
    seller: present([
      seller?.name,
      ...(seller?.address ?? []),
      seller?.taxId === undefined ? undefined : `Tax id ${seller.taxId}`,
    ]),
    buyer: present([buyer.name, buyer.email]),
    heading: corrected === undefined ? "Paid by card" : "Given back",
    rows: [
      ["Prepaid credits", money(creditCents)],
      ["Processing fee", money(feeCents)],
    ],
    total: money(creditCents + feeCents),
    notes: present([
      `Top-up ${document.orderId}`,
      corrected && `Corrects invoice ${documentId(corrected)}`,
      seller?.taxNote,
      document.series.startsWith("test_") ? "Test mode: no money was moved." : undefined,
    ]),
  });
}
