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
