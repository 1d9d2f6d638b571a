import type { Kysely } from "kysely";
import { documentFromRow, type DocumentSeries, type IssuedDocument } from "./document.ts";
import type { DisputeState } from "./dispute-state.ts";
import type { PaymentTables } from "./payment-tables.ts";

/** What was paid, refunded and disputed of an order, and what of that the balance has followed. */
export interface OrderFacts {
  orderId: string;
  creditCents: number;
  /** Null until the order is credited. */
  paymentIntentId: string | null;
  /** How much was refunded after each step. */
  refundedToCents: readonly number[];
  disputes: readonly { id: string; state: DisputeState; amountCents: number }[];
  /** Taken of the workspace's credits, less what was given back. */
  takenNano: bigint;
  movementCount: number;
}

/** Reads of what payments did; it is written through the commit queue only. */
export class PaymentStore {
  private readonly database: Kysely<PaymentTables>;

  constructor(database: Kysely<PaymentTables>) {
    this.database = database;
  }

  async hasEvent(id: string): Promise<boolean> {
    return await this.database.selectFrom("payment_events").select("id").where("id", "=", id).executeTakeFirst() !== undefined;
  }

  /** The receipts of an order and of a payment: none, one that is both's, or those of others. */
  async receiptsOf({ orderId, paymentIntentId }: { orderId: string; paymentIntentId: string }) {
    const rows = await this.database.selectFrom("payment_receipts").selectAll()
      .where((where) => where.or([where("order_id", "=", orderId), where("payment_intent_id", "=", paymentIntentId)])).execute();
    return rows.map((row) => ({ orderId: row.order_id, paymentIntentId: row.payment_intent_id }));
  }

  /** The number that a series' next document has. */
  async nextNumber(series: DocumentSeries): Promise<number> {
    const row = await this.database.selectFrom("payment_documents").select(({ fn }) => fn.max("number").as("last"))
      .where("series", "=", series).executeTakeFirst();
    return (row?.last ?? 0) + 1;
  }

  /** Documents of a workspace, the newest first. */
  async documents({ workspaceId, limit }: { workspaceId: string; limit: number }): Promise<IssuedDocument[]> {
    const rows = await this.database.selectFrom("payment_documents").selectAll().where("workspace_id", "=", workspaceId)
      .orderBy("issued_at_ms", "desc").orderBy("number", "desc").limit(limit).execute();
    return rows.map(documentFromRow);
  }

  /** A document of a workspace; undefined where it has none of that number. */
  async document(
    { workspaceId, series, number }: { workspaceId: string; series: DocumentSeries; number: number },
  ): Promise<IssuedDocument | undefined> {
    const row = await this.database.selectFrom("payment_documents").selectAll()
      .where("series", "=", series).where("number", "=", number).where("workspace_id", "=", workspaceId).executeTakeFirst();
    return row && documentFromRow(row);
  }

  /** The invoice of an order; undefined until it is paid. */
  async invoiceOf(orderId: string): Promise<IssuedDocument | undefined> {
    const row = await this.database.selectFrom("payment_documents").selectAll()
      .where("order_id", "=", orderId).where("series", "in", ["invoice", "test_invoice"]).executeTakeFirst();
    return row && documentFromRow(row);
  }

  /** Workspaces of which a payment was refunded or disputed at any time. */
  async claimedWorkspaces(): Promise<string[]> {
    const rows = await this.database.selectFrom("payment_refunds").select("workspace_id")
      .union(this.database.selectFrom("payment_disputes").select("workspace_id")).execute();
    return rows.map((row) => row.workspace_id);
  }

  /** The facts of a workspace's orders that were paid, refunded or disputed, the oldest order first. */
  async factsOf(workspaceId: string): Promise<Map<string, OrderFacts>> {
    const rowsOf = <Name extends "payment_receipts" | "payment_disputes">(table: Name) =>
      this.database.selectFrom(table as "payment_receipts").selectAll().where("workspace_id", "=", workspaceId).execute();
    const [orders, receipts, refunds, disputes, movements] = await Promise.all([
      this.database.selectFrom("payment_orders").select(["id", "credit_cents"]).where("workspace_id", "=", workspaceId)
        .orderBy("id").execute(),
      rowsOf("payment_receipts"),
      this.database.selectFrom("payment_refunds").selectAll().where("workspace_id", "=", workspaceId).orderBy("step").execute(),
      this.database.selectFrom("payment_disputes").selectAll().where("workspace_id", "=", workspaceId).execute(),
      this.database.selectFrom("payment_movements").selectAll().where("workspace_id", "=", workspaceId).execute(),
    ]);
    return new Map(orders.map(({ id, credit_cents: creditCents }): [string, OrderFacts] => {
      const own = <Row extends { order_id: string }>(rows: readonly Row[]): Row[] => rows.filter((row) => row.order_id === id);
      const moved = own(movements);
      return [id, {
        orderId: id, creditCents, paymentIntentId: own(receipts)[0]?.payment_intent_id ?? null,
        refundedToCents: own(refunds).map((row) => row.to_cents),
        disputes: own(disputes).map((row) => ({ id: row.dispute_id, state: row.state as DisputeState, amountCents: row.amount_cents })),
        takenNano: moved.reduce((sum, row) => sum + BigInt(row.taken_nano), 0n),
        movementCount: moved.length,
      }];
    }));
  }

  /** A wall time that was noted under a name; undefined before the first. */
  async mark(name: string): Promise<number | undefined> {
    const row = await this.database.selectFrom("payment_marks").select("value").where("name", "=", name).executeTakeFirst();
    return row?.value;
  }

  async setMark(name: string, value: number): Promise<void> {
    await this.database.insertInto("payment_marks").values({ name, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value })).execute();
  }
}
