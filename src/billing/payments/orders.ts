import type { Kysely } from "kysely";
import { mayBeId } from "../../platform/kernel/ids.ts";
import type { Month } from "../ledger/month.ts";
import type { Quote, Seller } from "./cents.ts";
import type { OrderRow, PaymentTables, DocumentRow } from "./payment-store.ts";
import type { SqlValue } from "../../platform/storage/commit-queue.ts";

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

/** How an order is paid: by a person at the provider's checkout, or from a saved card. */
type OrderKind = "checkout" | "automatic";

/** The state of an order; a paid one has a receipt as well. */
type OrderState = "open" | "paid" | "failed" | "expired";

/** Who pays, as it is printed on the invoice. */
export interface Buyer {
  /** Name of the workspace. */
  name: string;
  /** Who ordered; absent where that was a key. */
  email?: string;
}

/**
 * A top-up as it was ordered: what is to be paid is settled here, and nothing that the provider
 * says changes it.
 */
export interface Order extends Quote {
  /** `top_` id. */
  id: string;
  workspaceId: string;
  /** Whether real money is meant. */
  live: boolean;
  kind: OrderKind;
  state: OrderState;
  /** Why it failed; null unless it did. */
  failure: string | null;
  createdAtMs: number;
  /** Id of the user or key that ordered; `automatic` for what the gateway orders by itself. */
  createdBy: string;
  buyer: Buyer;
  /** ISO 4217 in lower case, as Stripe writes it. */
  currency: string;
  /** The provider's id of the workspace. */
  customerId: string;
  /** The saved card that an automatic order is charged to; null for others. */
  paymentMethodId: string | null;
  /** Null until the provider's checkout was opened; always for automatic orders. */
  sessionId: string | null;
  /** Null until it is known. */
  paymentIntentId: string | null;
  /** The UTC month that an automatic order counts in, and its number in it. */
  month: { name: Month; sequence: number } | null;
}

/** Id of the transfer that credits an order; the ledger has each transfer once. */
export const creditTransferId = (orderId: string): string => `txn_${orderId}`;

const fromRow = (row: OrderRow): Order => ({
  id: row.id,
  workspaceId: row.workspace_id,
  live: row.live === 1,
  kind: row.kind as OrderKind,
  state: row.state as OrderState,
  failure: row.failure,
  createdAtMs: row.created_at_ms,
  createdBy: row.created_by,
  buyer: JSON.parse(row.buyer) as Buyer,
  creditCents: row.credit_cents,
  feeCents: row.fee_cents,
  chargeCents: row.credit_cents + row.fee_cents,
  currency: row.currency,
  customerId: row.customer_id,
  paymentMethodId: row.payment_method_id,
  sessionId: row.session_id,
  paymentIntentId: row.payment_intent_id,
  month:
    row.month === null || row.month_sequence === null
      ? null
      : { name: row.month as Month, sequence: row.month_sequence },
});

const toRow = (order: Order): OrderRow => ({
  id: order.id,
  workspace_id: order.workspaceId,
  live: order.live ? 1 : 0,
  kind: order.kind,
  state: order.state,
  failure: order.failure,
  created_at_ms: order.createdAtMs,
  created_by: order.createdBy,
  buyer: JSON.stringify(order.buyer),
  credit_cents: order.creditCents,
  fee_cents: order.feeCents,
  currency: order.currency,
  customer_id: order.customerId,
  payment_method_id: order.paymentMethodId,
  session_id: order.sessionId,
  payment_intent_id: order.paymentIntentId,
  month: order.month?.name ?? null,
  month_sequence: order.month?.sequence ?? null,
});

/** Orders, and who workspaces are to the provider. An order's amounts never change. */
export class OrderStore {
  private readonly database: Kysely<PaymentTables>;

  constructor(database: Kysely<PaymentTables>) {
    this.database = database;
  }

  /**
   * Rejects with a unique violation for a second open automatic order, and for a number that its
   * month has already.
   */
  async insert(order: Order): Promise<void> {
    await this.database.insertInto("payment_orders").values(toRow(order)).execute();
  }

  /** The order with this id, of any workspace. */
  async find(id: string): Promise<Order | undefined> {
    if (!mayBeId(id)) return undefined;
    const row = await this.database
      .selectFrom("payment_orders")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Orders of a workspace, the newest first; those before one of them where it is given. */
  async list({
    workspaceId,
    limit,
    before,
  }: {
    workspaceId: string;
    limit: number;
    before?: Order | undefined;
  }): Promise<Order[]> {
    let query = this.database
      .selectFrom("payment_orders")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (before !== undefined) {
      const { createdAtMs, id } = before;
      query = query.where(({ eb, and, or }) =>
        or([
          eb("created_at_ms", "<", createdAtMs),
          and([eb("created_at_ms", "=", createdAtMs), eb("id", "<", id)]),
        ]),
      );
    }
    const rows = await query
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .limit(limit)
      .execute();
    return rows.map(fromRow);
  }

  /** Automatic orders whose outcome is unknown. */
  openAutomatic(live: boolean): Promise<Order[]> {
    return this.open("automatic", live);
  }

  /** Checkouts whose outcome is unknown. */
  openCheckouts(live: boolean): Promise<Order[]> {
    return this.open("checkout", live);
  }

  private async open(kind: OrderKind, live: boolean): Promise<Order[]> {
    const rows = await this.database
      .selectFrom("payment_orders")
      .selectAll()
      .where("kind", "=", kind)
      .where("state", "=", "open")
      .where("live", "=", live ? 1 : 0)
      .execute();
    return rows.map(fromRow);
  }

  /** Automatic orders of a workspace that count in a month. */
  async automaticIn({
    workspaceId,
    month,
  }: {
    workspaceId: string;
    month: Month;
  }): Promise<Order[]> {
    const rows = await this.database
      .selectFrom("payment_orders")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .where("month", "=", month)
      .execute();
    return rows.map(fromRow);
  }

  /** When the oldest order was made; undefined where there is none. */
  async oldestMs(): Promise<number | undefined> {
    const row = await this.database
      .selectFrom("payment_orders")
      .select(({ fn }) => fn.min("created_at_ms").as("oldest"))
      .executeTakeFirst();
    return row?.oldest ?? undefined;
  }

  /** Notes which checkout an order is paid at. */
  async setSession(id: string, sessionId: string): Promise<void> {
    await this.database
      .updateTable("payment_orders")
      .set({ session_id: sessionId })
      .where("id", "=", id)
      .execute();
  }

  /**
   * Ends an open order without a payment; one that was paid meanwhile stays so. Tells whether it
   * was open.
   */
  async end(
    id: string,
    { state, failure }: { state: "failed" | "expired"; failure: string | null },
  ): Promise<boolean> {
    const { numUpdatedRows } = await this.database
      .updateTable("payment_orders")
      .set({ state, failure })
      .where("id", "=", id)
      .where("state", "=", "open")
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  /** Marks an order paid, from any state: the money is there. */
  async setPaid(id: string, paymentIntentId: string): Promise<void> {
    await this.database
      .updateTable("payment_orders")
      .set({ state: "paid", failure: null, payment_intent_id: paymentIntentId })
      .where("id", "=", id)
      .execute();
  }

  /** The provider's id of a workspace; undefined before its first order. */
  async customerOf({
    workspaceId,
    live,
  }: {
    workspaceId: string;
    live: boolean;
  }): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("payment_customers")
      .select("customer_id")
      .where("workspace_id", "=", workspaceId)
      .where("live", "=", live ? 1 : 0)
      .executeTakeFirst();
    return row?.customer_id;
  }

  /** Keeps it; the first one stands. */
  async keepCustomer(customer: {
    workspaceId: string;
    live: boolean;
    customerId: string;
    createdAtMs: number;
  }): Promise<void> {
    await this.database
      .insertInto("payment_customers")
      .values({
        workspace_id: customer.workspaceId,
        live: customer.live ? 1 : 0,
        customer_id: customer.customerId,
        created_at_ms: customer.createdAtMs,
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** What became of a request that the payment provider did not grant. */
type PaymentErrorKind =
  /** The bank of the card refused it, or asks for its owner. */
  | "declined"
  /** The provider does not do it, and nothing was done. */
  | "refused"
  /** It may have been done, or it may be tried again. */
  | "unknown";

/**
 * A request that the payment provider did not grant; `message` is its reason, such as
 * `card_declined: insufficient_funds`.
 */
export class PaymentError extends Error {
  override name = "PaymentError";
  readonly kind: PaymentErrorKind;
  /** Under which the provider finds the request again. */
  readonly requestId: string | undefined;

  constructor(kind: PaymentErrorKind, reason: string, requestId?: string) {
    super(reason);
    this.kind = kind;
    this.requestId = requestId;
  }
}
