import type { Kysely } from "kysely";
import { mayBeId } from "../../platform/kernel/ids.ts";
import type { Month } from "../ledger/month.ts";
import { recordColumns } from "../../platform/storage/record-columns.ts";
import type { Order, OrderKind } from "./orders.ts";
import type { PaymentTables, OrderRow } from "./payment-tables.ts";

const columns = recordColumns<Omit<Order, "chargeCents" | "month">>({
  id: "plain",
  workspaceId: "plain",
  live: "flag",
  kind: "plain",
  state: "plain",
  failure: "plain",
  createdAtMs: "plain",
  createdBy: "plain",
  buyer: "json",
  creditCents: "plain",
  feeCents: "plain",
  currency: "plain",
  customerId: "plain",
  paymentMethodId: "plain",
  sessionId: "plain",
  paymentIntentId: "plain",
});

const fromRow = (row: OrderRow): Order => ({
  ...columns.fromRow(row),
  chargeCents: row.credit_cents + row.fee_cents,
  month:
    row.month === null || row.month_sequence === null
      ? null
      : { name: row.month as Month, sequence: row.month_sequence },
});

const toRow = (order: Order): OrderRow => ({
  ...columns.rowOf(order),
  month: order.month?.name ?? null,
  month_sequence: order.month?.sequence ?? null,
});

/** Stores orders, and the provider's ids of workspaces. An order's amounts never change. */
export class OrderStore {
  constructor(private readonly database: Kysely<PaymentTables>) {}

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
    offset = 0,
  }: {
    workspaceId: string;
    limit: number;
    before?: Order | undefined;
    /** The number of orders to leave out. */
    offset?: number;
  }): Promise<Order[]> {
    let query = this.database
      .selectFrom("payment_orders")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (before !== undefined) {
      const { createdAtMs, id } = before;
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple("created_at_ms", "id"), "<", tuple(createdAtMs, id)),
      );
    }
    const rows = await query
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .limit(limit)
      .offset(offset)
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
