import { newId } from "../../platform/lib/ids.ts";
import type { CommitUnit, InsertStatement } from "../../platform/storage/commit-queue.ts";
import { auditInsert, auditOutcomeInsert } from "../security/audit-log.ts";
import type { Claim } from "./claim.ts";
import type { EventOutcome, PaymentEvent } from "./payment-event.ts";

/** One row of a commit. */
export type Insert = CommitUnit["inserts"][number];

/** Which payment an order was credited for; an order has one, and a payment credits once. */
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

const claimInsert: InsertStatement = {
  name: "payment-claim",
  table: "payment_claims",
  columns: ["claim_id", "state", "kind", "payment_intent_id", "amount_cents", "at_ms"],
};

/** What was taken of credits for refunds and disputes, or given back. */
export const movementInsert: InsertStatement = {
  name: "payment-movement",
  table: "payment_movements",
  columns: ["order_id", "step", "workspace_id", "transfer_id", "taken_nano", "at_ms"],
};

/** Invoices and credit notes as they were issued. */
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

/** Every statement of payments that commits may carry. */
export const paymentInserts: readonly InsertStatement[] = [
  receiptInsert,
  eventInsert,
  claimInsert,
  movementInsert,
  documentInsert,
];

/** The row that an event was dealt with. */
export const eventRow = (
  event: PaymentEvent,
  { orderId, outcome, atMs }: { orderId: string | null; outcome: EventOutcome; atMs: number },
): Insert => ({
  statement: eventInsert,
  values: [event.id, event.type, orderId, outcome, event.createdAtMs, atMs],
});

/** The row that a claim has this state. */
export const claimRow = (
  { id, state, kind, paymentIntentId, amountCents }: Claim,
  atMs: number,
): Insert => ({
  statement: claimInsert,
  values: [id, state, kind, paymentIntentId, amountCents, atMs],
});

/** The provider as the audit log names it. */
const actor = { kind: "payment-provider", id: "stripe", label: "Stripe" };

/** What the workspace's audit log tells of a change that a payment made. */
export function auditRows(
  { workspaceId, action, target }: { workspaceId: string; action: string; target: string },
  atMs: number,
): Insert[] {
  const id = newId("aud", atMs);
  return [
    {
      statement: auditInsert,
      values: [id, workspaceId, atMs, actor.kind, actor.id, actor.label, "", action, target, "[]"],
    },
    { statement: auditOutcomeInsert, values: [id, workspaceId, atMs, 200, target] },
  ];
}
