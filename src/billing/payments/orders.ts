import type { Kysely } from "kysely";
import { mayBeId } from "../../platform/kernel/ids.ts";
import type { Month } from "../ledger/month.ts";
import type { Quote, Seller } from "./cents.ts";
import type { OrderRow, PaymentTables, DocumentRow } from "./payment-store.ts";
import type { SqlValue } from "../../platform/storage/commit-queue.ts";

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

/** Returns the values of `documentInsert`. */
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

/** Returns the document of a row. */
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

/** The way an order is paid: by a person at the provider's checkout, or from a saved card. */
type OrderKind = "checkout" | "automatic";

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

/** Stores orders, and the provider's ids of workspaces. An order's amounts never change. */
export class OrderStore {
  private readonly database: Kysely<PaymentTables>;

  constructor(database: Kysely<PaymentTables>) {
    this.database = database;
  }

  /**
   * Inserts an order. Rejects with a unique violation for a second open automatic order, and for a
   * number that its month already has.
   */
  async insert(order: Order): Promise<void> {
    await this.database.insertInto("payment_orders").values(toRow(order)).execute();
  }

  /** Returns the order with this id, of any workspace. */
  async find(id: string): Promise<Order | undefined> {
    if (!mayBeId(id)) return undefined;
    const row = await this.database
      .selectFrom("payment_orders")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /**
   * Returns orders of a workspace, newest first; only those before a given one, where it is named.
   */
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

  /** Returns automatic orders with an unknown outcome. */
  openAutomatic(live: boolean): Promise<Order[]> {
    return this.open("automatic", live);
  }

  /** Returns checkouts with an unknown outcome. */
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

  /** Returns automatic orders of a workspace that count in a month. */
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

  /** Returns when the oldest order was created; undefined where there is none. */
  async oldestMs(): Promise<number | undefined> {
    const row = await this.database
      .selectFrom("payment_orders")
      .select(({ fn }) => fn.min("created_at_ms").as("oldest"))
      .executeTakeFirst();
    return row?.oldest ?? undefined;
  }

  /** Stores the checkout that an order is paid at. */
  async setSession(id: string, sessionId: string): Promise<void> {
    await this.database
      .updateTable("payment_orders")
      .set({ session_id: sessionId })
      .where("id", "=", id)
      .execute();
  }

  /**
   * Ends an open order without a payment. One that was paid meanwhile stays paid. Returns whether
   * it was open.
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

  /** Marks an order paid, from any state: the money has arrived. */
  async setPaid(id: string, paymentIntentId: string): Promise<void> {
    await this.database
      .updateTable("payment_orders")
      .set({ state: "paid", failure: null, payment_intent_id: paymentIntentId })
      .where("id", "=", id)
      .execute();
  }

  /** Returns the provider's id of a workspace; undefined before its first order. */
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

  /** Stores the provider's id of a workspace, unless it already has one. */
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
  readonly kind: PaymentErrorKind;
  /** The id under which the provider logged the request. */
  readonly requestId: string | undefined;

  constructor(kind: PaymentErrorKind, reason: string, requestId?: string) {
    super(reason);
    this.kind = kind;
    this.requestId = requestId;
  }
}
