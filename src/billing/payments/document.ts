import type { SqlValue } from "../../platform/storage/commit-queue.ts";
import type { Seller } from "./cents.ts";
import type { Buyer, Order } from "./orders.ts";
import type { DocumentRow } from "./payment-store.ts";

/**
 * Invoices and what corrects them; payments of the provider's test mode have numbers of their own.
 */
export type DocumentSeries = "invoice" | "credit_note" | "test_invoice" | "test_credit_note";

const prefixes: Readonly<Record<DocumentSeries, string>> = {
  invoice: "INV",
  credit_note: "CN",
  test_invoice: "TEST-INV",
  test_credit_note: "TEST-CN",
};

/** An invoice or a credit note as it was issued; nothing of it changes afterwards. */
export interface IssuedDocument {
  series: DocumentSeries;
  /** Counted from 1 without a gap, in the order of issue. */
  number: number;
  orderId: string;
  /** Empty for invoices; for credit notes the provider's id of the refund. */
  reference: string;
  workspaceId: string;
  issuedAtMs: number;
  /** What was credited, or refunded of it; below zero on a credit note whose refund failed. */
  creditCents: number;
  feeCents: number;
  currency: string;
  seller: Seller | undefined;
  buyer: Buyer;
}

/** The series of a document about a payment that is in earnest, or of the test mode. */
export const seriesOf = (
  kind: "invoice" | "credit_note",
  { live }: Pick<Order, "live">,
): DocumentSeries => (live ? kind : `test_${kind}`);

/** What people call a document, such as `INV-000012`. */
export const documentId = ({ series, number }: Pick<IssuedDocument, "series" | "number">): string =>
  `${prefixes[series]}-${String(number).padStart(6, "0")}`;

const idPattern = /^((?:TEST-)?(?:INV|CN))-(\d{6,15})$/;

/** The document that an id means; undefined where it is none. */
export function documentOf(id: string): Pick<IssuedDocument, "series" | "number"> | undefined {
  const [, prefix, digits] = idPattern.exec(id) ?? [];
  const series = (Object.keys(prefixes) as DocumentSeries[]).find(
    (each) => prefixes[each] === prefix,
  );
  if (series === undefined) return undefined;
  const found = { series, number: Number(digits) };
  return documentId(found) === id ? found : undefined;
}

/** Values of `documentInsert`. */
export const documentValues = (document: IssuedDocument): SqlValue[] => [
  document.series,
  document.number,
  document.orderId,
  document.reference,
  document.workspaceId,
  document.issuedAtMs,
  document.creditCents,
  document.feeCents,
  document.currency,
  JSON.stringify(document.seller ?? null),
  JSON.stringify(document.buyer),
];

/** A document as it is kept. */
export const documentFromRow = (row: DocumentRow): IssuedDocument => ({
  series: row.series as DocumentSeries,
  number: row.number,
  orderId: row.order_id,
  reference: row.reference,
  workspaceId: row.workspace_id,
  issuedAtMs: row.issued_at_ms,
  creditCents: row.credit_cents,
  feeCents: row.fee_cents,
  currency: row.currency,
  seller: (JSON.parse(row.seller) as Seller | null) ?? undefined,
  buyer: JSON.parse(row.buyer) as Buyer,
});
