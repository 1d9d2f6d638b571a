import type { Kysely } from "kysely";
import { auditEntry, auditOutcome } from "../../access/audit/audit-log.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CommitUnit, InsertStatement } from "../../platform/storage/commit-queue.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { PaymentSettings } from "./cents.ts";
import type { Reversal, ReversalKind, ReversalState, KnownReversal } from "./reversal-follower.ts";
import { documentFromRow, type DocumentSeries, type IssuedDocument } from "./orders.ts";
import type { OrderStore } from "./order-store.ts";
import type { EventOutcome, PaymentEvent } from "./payment-events.ts";

/** The reversals of a paid order, and how far its balance and documents have followed them. */
export interface OrderFacts {
  orderId: string;
  /** Reversals in the order in which they were reported. */
  reversals: readonly KnownReversal[];
  creditNotes: readonly IssuedDocument[];
  /** The amount taken from the workspace's credits, less the amount given back. */
  takenNano: bigint;
  movementCount: number;
}

/** Reads what payments recorded. It is written through the commit queue only. */
export class PaymentStore {
  private readonly database: Kysely<PaymentTables>;

  constructor(database: Kysely<PaymentTables>) {
    this.database = database;
  }

  /** Returns whether an event was handled before. */
  async hasEvent(id: string): Promise<boolean> {
    return (
      (await this.database
        .selectFrom("payment_events")
        .select("id")
        .where("id", "=", id)
        .executeTakeFirst()) !== undefined
    );
  }

  /** Returns whether a reversal was reported in this state before. */
  async hasReversal({ id, state }: { id: string; state: ReversalState }): Promise<boolean> {
    const row = await this.database
      .selectFrom("payment_claims")
      .select("claim_id")
      .where("claim_id", "=", id)
      .where("state", "=", state)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Returns the receipts of an order and of a payment: none, one for both, or others. */
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

  /** Returns the order that a payment was credited to, and its workspace. */
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

  /** Returns the number of a series' next document. */
  async nextNumber(series: DocumentSeries): Promise<number> {
    const row = await this.database
      .selectFrom("payment_documents")
      .select(({ fn }) => fn.max("number").as("last"))
      .where("series", "=", series)
      .executeTakeFirst();
    return (row?.last ?? 0) + 1;
  }

  /** Returns documents of a workspace, newest first. */
  async documents({
    workspaceId,
    limit,
    before,
  }: {
    workspaceId: string;
    limit: number;
    before?: IssuedDocument | undefined;
  }): Promise<IssuedDocument[]> {
    let query = this.database
      .selectFrom("payment_documents")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (before !== undefined) {
      const { issuedAtMs, number, series } = before;
      // Invoices and credit notes have separate numbers, so one moment may have the same number
      // twice.
      query = query.where(({ eb, and, or }) =>
        or([
          eb("issued_at_ms", "<", issuedAtMs),
          and([eb("issued_at_ms", "=", issuedAtMs), eb("number", "<", number)]),
          and([
            eb("issued_at_ms", "=", issuedAtMs),
            eb("number", "=", number),
            eb("series", "<", series),
          ]),
        ]),
      );
    }
    const rows = await query
      .orderBy("issued_at_ms", "desc")
      .orderBy("number", "desc")
      .orderBy("series", "desc")
      .limit(limit)
      .execute();
    return rows.map(documentFromRow);
  }

  /** Returns a document of a workspace; undefined where it has none of that number. */
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

  /** Returns the invoice of an order; undefined until it is paid. */
  async invoiceOf(orderId: string): Promise<IssuedDocument | undefined> {
    const row = await this.database
      .selectFrom("payment_documents")
      .selectAll()
      .where("order_id", "=", orderId)
      .where("reference", "=", "")
      .executeTakeFirst();
    return row && documentFromRow(row);
  }

  /** Returns the workspaces with any reversed payment. */
  async workspacesWithReversals(): Promise<string[]> {
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

  /** Returns the facts of a workspace's orders that had reversals, oldest order first. */
  async factsOf(workspaceId: string): Promise<OrderFacts[]> {
    const reversals = await this.database
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
    if (reversals.length === 0) return [];
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
    return [...Map.groupBy(reversals, (row) => row.order_id)].map(([orderId, rows]): OrderFacts => {
      const moved = movements.filter((row) => row.order_id === orderId);
      return {
        orderId,
        reversals: knownReversals(rows),
        creditNotes: documents.filter((row) => row.order_id === orderId).map(documentFromRow),
        takenNano: moved.reduce((sum, row) => sum + BigInt(row.taken_nano), 0n),
        movementCount: moved.length,
      };
    });
  }

  /** Returns the wall time that was stored under a name; undefined before the first. */
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

const knownReversals = (rows: readonly PaymentTables["payment_claims"][]): KnownReversal[] =>
  [...Map.groupBy(rows, (row) => row.claim_id)].map(([id, reversals]) => ({
    id,
    kind: reversals[0]?.kind as ReversalKind,
    amountCents: reversals[0]?.amount_cents ?? 0,
    states: reversals.map(({ state }) => state as ReversalState),
  }));

/** The stores that payments are read from and written with. */
export interface PaymentBooks {
  ledger: LedgerPort;
  orders: OrderStore;
  store: PaymentStore;
  settings: PaymentSettings;
  clock: Clock;
  /** Serialises writes under the key `books`, since documents have numbers without gaps. */
  mutex: KeyedMutex;
}

/** A row of a commit. */
export type Insert = CommitUnit["inserts"][number];

/** The insert of a receipt: an order has one payment, and a payment is credited once. */
export const receiptInsert: InsertStatement = {
  name: "payment-receipt",
  table: "payment_receipts",
  columns: ["payment_intent_id", "order_id", "workspace_id", "credited_at_ms"],
};

const eventInsert: InsertStatement = {
  name: "payment-event",
  table: "payment_events",
  columns: ["id", "type", "order_id", "outcome", "created_at_ms", "received_at_ms"],
};

const reversalInsert: InsertStatement = {
  name: "payment-reversal",
  table: "payment_claims",
  columns: ["claim_id", "state", "kind", "payment_intent_id", "amount_cents", "at_ms"],
};

/** The insert of a movement: credits taken for refunds and disputes, or given back. */
export const movementInsert: InsertStatement = {
  name: "payment-movement",
  table: "payment_movements",
  columns: ["order_id", "step", "workspace_id", "transfer_id", "taken_nano", "at_ms"],
};

/** The insert of an invoice or credit note. */
export const documentInsert: InsertStatement = {
  name: "payment-document",
  table: "payment_documents",
  columns: [
    "series",
    "number",
    "order_id",
    "reference",
    "workspace_id",
    "issued_at_ms",
    "credit_cents",
    "fee_cents",
    "currency",
    "seller",
    "buyer",
  ],
};

/** Every payment statement that commits may contain. */
export const paymentInserts: readonly InsertStatement[] = [
  receiptInsert,
  eventInsert,
  reversalInsert,
  movementInsert,
  documentInsert,
];

/** Returns the row of a handled event. */
export const eventRow = (
  event: PaymentEvent,
  { orderId, outcome, atMs }: { orderId: string | null; outcome: EventOutcome; atMs: number },
): Insert => ({
  statement: eventInsert,
  values: [event.id, event.type, orderId, outcome, event.createdAtMs, atMs],
});

/** Returns the row of a reversal in this state. */
export const reversalRow = (
  { id, state, kind, paymentIntentId, amountCents }: Reversal,
  atMs: number,
): Insert => ({
  statement: reversalInsert,
  values: [id, state, kind, paymentIntentId, amountCents, atMs],
});

/** The provider as the audit log names it. */
const actor = { kind: "payment-provider", id: "stripe", label: "Stripe" };

/** Returns the audit log rows of the workspace for a change that a payment made. */
export function auditRows(
  { workspaceId, action, target }: { workspaceId: string; action: string; target: string },
  atMs: number,
): Insert[] {
  const id = newId("aud", atMs);
  return [
    auditEntry.rowOf({ id, workspaceId, atMs, actor, address: "", action, target, fields: [] }),
    auditOutcome.rowOf({ id, workspaceId, atMs, status: 200, target }),
  ];
}

/** Rows of payments; `migrations/first-schema/payments.ts` describes them. */
export interface PaymentTables {
  payment_customers: {
    workspace_id: string;
    live: number;
    customer_id: string;
    created_at_ms: number;
  };
  payment_orders: OrderRow;
  payment_receipts: {
    payment_intent_id: string;
    order_id: string;
    workspace_id: string;
    credited_at_ms: number;
  };
  payment_events: {
    id: string;
    type: string;
    order_id: string | null;
    outcome: string;
    created_at_ms: number;
    received_at_ms: number;
  };
  payment_claims: {
    claim_id: string;
    state: string;
    kind: string;
    payment_intent_id: string;
    amount_cents: number;
    at_ms: number;
  };
  payment_movements: {
    order_id: string;
    step: number;
    workspace_id: string;
    transfer_id: string;
    taken_nano: number | bigint;
    at_ms: number;
  };
  payment_documents: DocumentRow;
  payment_automatic: AutomaticRow;
  payment_consents: { workspace_id: string; at_ms: number; by_id: string; terms: string };
  payment_marks: { name: string; value: number };
}

/** A row of `payment_orders`. */
export interface OrderRow {
  id: string;
  workspace_id: string;
  live: number;
  kind: string;
  state: string;
  failure: string | null;
  created_at_ms: number;
  created_by: string;
  buyer: string;
  credit_cents: number;
  fee_cents: number;
  currency: string;
  customer_id: string;
  payment_method_id: string | null;
  session_id: string | null;
  payment_intent_id: string | null;
  month: string | null;
  month_sequence: number | null;
}

/** A row of `payment_documents`. */
export interface DocumentRow {
  series: string;
  number: number;
  order_id: string;
  reference: string;
  workspace_id: string;
  issued_at_ms: number;
  credit_cents: number;
  fee_cents: number;
  currency: string;
  seller: string;
  buyer: string;
}

/** A row of `payment_automatic`. */
export interface AutomaticRow {
  workspace_id: string;
  live: number;
  enabled: number;
  threshold_cents: number;
  credit_cents: number;
  monthly_max_cents: number;
  payment_method_id: string;
  card: string;
  consented_at_ms: number;
  consented_by: string;
  stopped_at_ms: number | null;
  stopped_reason: string | null;
}
