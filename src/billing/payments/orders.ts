import type { Month } from "../ledger/month.ts";
import type { Quote, Seller } from "./cents.ts";

/**
 * The series of invoices and credit notes. Payments in the provider's test mode have numbers of
 * their own.
 */
export type DocumentSeries = "invoice" | "credit_note" | "test_invoice" | "test_credit_note";

const prefixes: Readonly<Record<DocumentSeries, string>> = {
  invoice: "INV",
  credit_note: "CN",
  test_invoice: "TEST-INV",
  test_credit_note: "TEST-CN",
};

/** An invoice or a credit note as it was issued; it never changes afterwards. */
export interface IssuedDocument {
  series: DocumentSeries;
  /** Counted from 1 without gaps, in the order of issue. */
  number: number;
  orderId: string;
  /** Empty for invoices; for credit notes the provider's id of the refund. */
  reference: string;
  workspaceId: string;
  issuedAtMs: number;
  /** The amount that was credited or refunded; negative on a credit note whose refund failed. */
  creditCents: number;
  feeCents: number;
  currency: string;
  seller: Seller | undefined;
  buyer: Buyer;
}

/** Returns the series of a document, for live payments or those in test mode. */
export const seriesOf = (
  kind: "invoice" | "credit_note",
  { live }: Pick<Order, "live">,
): DocumentSeries => (live ? kind : `test_${kind}`);

/** Returns the number of a document that people see, such as `INV-000012`. */
export const documentId = ({ series, number }: Pick<IssuedDocument, "series" | "number">): string =>
  `${prefixes[series]}-${String(number).padStart(6, "0")}`;

const idPattern = /^((?:TEST-)?(?:INV|CN))-(\d{6,15})$/;

/** Parses the id of a document; undefined where it is malformed. */
export function documentOf(id: string): Pick<IssuedDocument, "series" | "number"> | undefined {
  const [, prefix, digits] = idPattern.exec(id) ?? [];
  const series = (Object.keys(prefixes) as DocumentSeries[]).find(
    (each) => prefixes[each] === prefix,
  );
  if (series === undefined) return undefined;
  const found = { series, number: Number(digits) };
  return documentId(found) === id ? found : undefined;
}

/** The way an order is paid: by a person at the provider's checkout, or from a saved card. */
export type OrderKind = "checkout" | "automatic";

/** The state of an order. A paid one also has a receipt. */
type OrderState = "open" | "paid" | "failed" | "expired";

/** The payer, as printed on the invoice. */
export interface Buyer {
  /** The name of the workspace. */
  name: string;
  /** The address of the person who ordered; absent where a key did. */
  email?: string;
}

/**
 * A top-up as it was ordered. Its price is fixed here, and nothing that the provider reports
 * changes it.
 */
export interface Order extends Quote {
  /** A `top_` id. */
  id: string;
  workspaceId: string;
  /** Whether it is for real money, as opposed to test mode. */
  live: boolean;
  kind: OrderKind;
  state: OrderState;
  /** The reason for which it failed; null unless it did. */
  failure: string | null;
  createdAtMs: number;
  /** The id of the user or key that ordered; `automatic` for orders of the gateway itself. */
  createdBy: string;
  buyer: Buyer;
  /** The ISO 4217 code in lower case, as Stripe writes it. */
  currency: string;
  /** The provider's id of the workspace. */
  customerId: string;
  /** The saved card that an automatic order is charged to; null for others. */
  paymentMethodId: string | null;
  /** Null until the provider's checkout was opened, and always for automatic orders. */
  sessionId: string | null;
  /** Null until it is known. */
  paymentIntentId: string | null;
  /** The UTC month that an automatic order counts in, and its number in that month. */
  month: { name: Month; sequence: number } | null;
}

/** Returns the id of the transfer that credits an order, which the ledger accepts once. */
export const creditTransferId = (orderId: string): string => `txn_${orderId}`;

/** The kind of failure of a request to the payment provider. */
type PaymentErrorKind =
  /** The card's bank refused it, or asks for the cardholder. */
  | "declined"
  /** The provider refused it, and nothing was done. */
  | "refused"
  /** The provider may have executed it, or it may be tried again. */
  | "unknown";

/**
 * A failed request to the payment provider. `message` is the provider's reason, such as
 * `card_declined: insufficient_funds`.
 */
export class PaymentError extends Error {
  override name = "PaymentError";
  /** The id under which the provider logged the request. */
  readonly requestId: string | undefined;

  constructor(
    readonly kind: PaymentErrorKind,
    reason: string,
    requestId?: string,
  ) {
    super(reason);
    this.requestId = requestId;
  }
}
