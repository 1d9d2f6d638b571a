import type { Kysely } from "kysely";
import { auditEntry, auditOutcome } from "../../access/audit/audit-log.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { CommitUnit, InsertStatement } from "../../platform/storage/commit-queue.ts";
import { recordColumns } from "../../platform/storage/record-columns.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { PaymentSettings, Seller } from "./cents.ts";
import type { DocumentSeries, IssuedDocument } from "./orders.ts";
import type { OrderStore } from "./order-store.ts";
import type { PaymentTables, DocumentRow } from "./payment-tables.ts";
import type { PaymentEvent, ReversalKind, ReversalState, Reversal } from "./stripe-client.ts";

/** A reversal with every report of it. */
export interface KnownReversal {
  id: string;
  kind: ReversalKind;
  amountCents: number;
  states: readonly ReversalState[];
}

/** The outcome of an event. Those that begin with `refused` are logged and change nothing. */
export type EventOutcome =
  /** The order's credits count from now on. */
  | "credited"
  /** The event was recorded, and balances follow where necessary. */
  | "noted"
  /** The event repeated what was known. */
  | "already"
  /** The event does not concern this gateway. */
  | "ignored"
  | "refused_mode"
  | "refused_shape"
  | "refused_session"
  | "refused_amount"
  | "refused_currency"
  | "refused_customer"
  /** The order was paid by another payment before. */
  | "refused_second_payment";

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
  constructor(private readonly database: Kysely<PaymentTables>) {}

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
    offset = 0,
  }: {
    workspaceId: string;
    limit: number;
    before?: IssuedDocument | undefined;
    /** The number of documents to leave out. */
    offset?: number;
  }): Promise<IssuedDocument[]> {
    let query = this.database
      .selectFrom("payment_documents")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (before !== undefined) {
      const { issuedAtMs, number, series } = before;
      // Invoices and credit notes have separate numbers, so one moment may have the same number
      // twice.
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple("issued_at_ms", "number", "series"), "<", tuple(issuedAtMs, number, series)),
      );
    }
    const rows = await query
      .orderBy("issued_at_ms", "desc")
      .orderBy("number", "desc")
      .orderBy("series", "desc")
      .limit(limit)
      .offset(offset)
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

const documentColumns = recordColumns<Omit<IssuedDocument, "seller">>({
  series: "plain",
  number: "plain",
  orderId: "plain",
  reference: "plain",
  workspaceId: "plain",
  issuedAtMs: "plain",
  creditCents: "plain",
  feeCents: "plain",
  currency: "plain",
  buyer: "json",
});

const documentFromRow = (row: DocumentRow): IssuedDocument => ({
  ...documentColumns.fromRow(row),
  seller: (JSON.parse(row.seller) as Seller | null) ?? undefined,
});

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

const documentInsert: InsertStatement = {
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

/** Returns the row of an invoice or credit note. */
export const documentRow = (document: IssuedDocument): Insert => ({
  statement: documentInsert,
  values: [
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
  ],
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
