import type { RowOf } from "../../platform/storage/record-columns.ts";
import type { IssuedDocument, Order } from "./orders.ts";

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
export interface OrderRow extends RowOf<Omit<Order, "chargeCents" | "month">> {
  month: string | null;
  month_sequence: number | null;
}

/** A row of `payment_documents`; its seller is the JSON `null` where none is named. */
export interface DocumentRow extends RowOf<Omit<IssuedDocument, "seller">> {
  seller: string;
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
