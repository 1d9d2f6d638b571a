import type { Kysely } from "kysely";
import type { ClaimKind, ClaimState, KnownClaim } from "./claim.ts";
import { documentFromRow, type DocumentSeries, type IssuedDocument } from "./document.ts";
import type { PaymentTables } from "./payment-tables.ts";

/** What was claimed back of an order that was paid, and what its balance and its documents have followed of that. */
export interface OrderFacts {
  orderId: string;
  /** In the order in which they were told of. */
  claims: readonly KnownClaim[];
  creditNotes: readonly IssuedDocument[];
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

  /** Whether an event was dealt with before. */
  async hasEvent(id: string): Promise<boolean> {
    return (
      (await this.database
        .selectFrom("payment_events")
        .select("id")
        .where("id", "=", id)
        .executeTakeFirst()) !== undefined
    );
  }

  /** Whether a claim was told of in this state before. */
  async hasClaim({ id, state }: { id: string; state: ClaimState }): Promise<boolean> {
    const row = await this.database
      .selectFrom("payment_claims")
      .select("claim_id")
      .where("claim_id", "=", id)
      .where("state", "=", state)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** The receipts of an order and of a payment: none, one that is both's, or those of others. */
  async receiptsOf({ orderId, paymentIntentId }: { orderId: string; paymentIntentId: string }) {
    const rows = await this.database
      .selectFrom("payment_receipts")
      .selectAll()
      .where((where) =>
        where.or([
          where("order_id", "=", orderId),
          where("payment_intent_id", "=", paymentIntentId),
        ]),
      )
      .execute();
    return rows.map((row) => ({
      orderId: row.order_id,
      paymentIntentId: row.payment_intent_id,
      workspaceId: row.workspace_id,
    }));
  }

  /** The order that a payment was credited to, and whose it is. */
  async receiptOf(
    paymentIntentId: string,
  ): Promise<{ orderId: string; workspaceId: string } | undefined> {
    const row = await this.database
      .selectFrom("payment_receipts")
      .selectAll()
      .where("payment_intent_id", "=", paymentIntentId)
      .executeTakeFirst();
    return row && { orderId: row.order_id, workspaceId: row.workspace_id };
  }

  /** The number that a series' next document has. */
  async nextNumber(series: DocumentSeries): Promise<number> {
    const row = await this.database
      .selectFrom("payment_documents")
      .select(({ fn }) => fn.max("number").as("last"))
      .where("series", "=", series)
      .executeTakeFirst();
    return (row?.last ?? 0) + 1;
  }

  /** Documents of a workspace, the newest first. */
  async documents({
    workspaceId,
    limit,
  }: {
    workspaceId: string;
    limit: number;
  }): Promise<IssuedDocument[]> {
    const rows = await this.database
      .selectFrom("payment_documents")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .orderBy("issued_at_ms", "desc")
      .orderBy("number", "desc")
      .limit(limit)
      .execute();
    return rows.map(documentFromRow);
  }

  /** A document of a workspace; undefined where it has none of that number. */
  async document({
    workspaceId,
    series,
    number,
  }: {
    workspaceId: string;
    series: DocumentSeries;
    number: number;
  }): Promise<IssuedDocument | undefined> {
    const row = await this.database
      .selectFrom("payment_documents")
      .selectAll()
      .where("series", "=", series)
      .where("number", "=", number)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && documentFromRow(row);
  }

  /** The invoice of an order; undefined until it is paid. */
  async invoiceOf(orderId: string): Promise<IssuedDocument | undefined> {
    const row = await this.database
      .selectFrom("payment_documents")
      .selectAll()
      .where("order_id", "=", orderId)
      .where("reference", "=", "")
      .executeTakeFirst();
    return row && documentFromRow(row);
  }

  /** Workspaces of which a payment was claimed back at any time. */
  async claimedWorkspaces(): Promise<string[]> {
    const rows = await this.database
      .selectFrom("payment_receipts")
      .innerJoin(
        "payment_claims",
        "payment_claims.payment_intent_id",
        "payment_receipts.payment_intent_id",
      )
      .select("payment_receipts.workspace_id")
      .distinct()
      .execute();
    return rows.map((row) => row.workspace_id);
  }

  /** The facts of a workspace's orders of which anything was claimed back, the oldest order first. */
  async factsOf(workspaceId: string): Promise<OrderFacts[]> {
    const claims = await this.database
      .selectFrom("payment_receipts")
      .innerJoin(
        "payment_claims",
        "payment_claims.payment_intent_id",
        "payment_receipts.payment_intent_id",
      )
      .selectAll("payment_claims")
      .select("payment_receipts.order_id")
      .where("payment_receipts.workspace_id", "=", workspaceId)
      .orderBy("payment_receipts.order_id")
      .orderBy("payment_claims.at_ms")
      .orderBy("payment_claims.claim_id")
      .execute();
    if (claims.length === 0) return [];
    const [movements, documents] = await Promise.all([
      this.database
        .selectFrom("payment_movements")
        .selectAll()
        .where("workspace_id", "=", workspaceId)
        .execute(),
      this.database
        .selectFrom("payment_documents")
        .selectAll()
        .where("workspace_id", "=", workspaceId)
        .where("reference", "!=", "")
        .execute(),
    ]);
    return [...Map.groupBy(claims, (row) => row.order_id)].map(([orderId, rows]): OrderFacts => {
      const moved = movements.filter((row) => row.order_id === orderId);
      return {
        orderId,
        claims: knownClaims(rows),
        creditNotes: documents.filter((row) => row.order_id === orderId).map(documentFromRow),
        takenNano: moved.reduce((sum, row) => sum + BigInt(row.taken_nano), 0n),
        movementCount: moved.length,
      };
    });
  }

  /** A wall time that was noted under a name; undefined before the first. */
  async mark(name: string): Promise<number | undefined> {
    const row = await this.database
      .selectFrom("payment_marks")
      .select("value")
      .where("name", "=", name)
      .executeTakeFirst();
    return row?.value;
  }

  async setMark(name: string, value: number): Promise<void> {
    await this.database
      .insertInto("payment_marks")
      .values({ name, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
      .execute();
  }
}

const knownClaims = (rows: readonly PaymentTables["payment_claims"][]): KnownClaim[] =>
  [...Map.groupBy(rows, (row) => row.claim_id)].map(([id, told]) => ({
    id,
    kind: told[0]?.kind as ClaimKind,
    amountCents: told[0]?.amount_cents ?? 0,
    states: told.map(({ state }) => state as ClaimState),
  }));
