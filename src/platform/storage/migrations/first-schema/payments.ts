import type { SchemaPart } from "./schema-part.ts";

/** Card top-ups: orders, receipts, refunds and disputes, invoices, and automatic top-ups. */
export const paymentsSchema: SchemaPart = {
  tables: [
    // A workspace is one customer at the payment provider, and another one in its test mode.
    {
      name: "payment_customers",
      columns: {
        workspace_id: "text not null",
        live: "integer not null",
        customer_id: "text not null unique",
        created_at_ms: "integer not null",
      },
      constraints: ["primary key (workspace_id, live)"],
    },
    // The sequence keeps two gateways from both adding an order to the same month.
    {
      name: "payment_orders",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        live: "integer not null",
        kind: "text not null",
        state: "text not null",
        failure: "text",
        created_at_ms: "integer not null",
        created_by: "text not null",
        buyer: "text not null",
        credit_cents: "integer not null check (credit_cents > 0)",
        fee_cents: "integer not null check (fee_cents >= 0)",
        currency: "text not null",
        customer_id: "text not null",
        payment_method_id: "text",
        session_id: "text unique",
        payment_intent_id: "text unique",
        month: "text",
        month_sequence: "integer",
      },
      constraints: ["unique (workspace_id, month, month_sequence)"],
    },
    {
      name: "payment_receipts",
      columns: {
        payment_intent_id: "text not null primary key",
        order_id: "text not null unique",
        workspace_id: "text not null",
        credited_at_ms: "integer not null",
      },
    },
    {
      name: "payment_events",
      columns: {
        id: "text not null primary key",
        type: "text not null",
        order_id: "text",
        outcome: "text not null",
        created_at_ms: "integer not null",
        received_at_ms: "integer not null",
      },
    },
    // Refunds and disputes in every state that they had. They are identified by their payment,
    // which may be credited after they arrive.
    {
      name: "payment_claims",
      columns: {
        claim_id: "text not null",
        state: "text not null",
        kind: "text not null",
        payment_intent_id: "text not null",
        amount_cents: "integer not null",
        at_ms: "integer not null",
      },
      constraints: ["primary key (claim_id, state)"],
    },
    // What was taken of a workspace's credits for a refunded or disputed payment; negative where it
    // was given back.
    {
      name: "payment_movements",
      columns: {
        order_id: "text not null",
        step: "integer not null",
        workspace_id: "text not null",
        transfer_id: "text not null unique",
        taken_nano: "integer not null check (taken_nano <> 0)",
        at_ms: "integer not null",
      },
      constraints: ["primary key (order_id, step)"],
    },
    // Invoices, whose reference is empty, and credit notes, whose reference is the refund.
    {
      name: "payment_documents",
      columns: {
        series: "text not null",
        number: "integer not null",
        order_id: "text not null",
        reference: "text not null",
        workspace_id: "text not null",
        issued_at_ms: "integer not null",
        credit_cents: "integer not null",
        fee_cents: "integer not null",
        currency: "text not null",
        seller: "text not null",
        buyer: "text not null",
      },
      constraints: ["primary key (series, number)", "unique (order_id, reference)"],
    },
    {
      name: "payment_automatic",
      columns: {
        workspace_id: "text not null primary key",
        live: "integer not null",
        enabled: "integer not null",
        threshold_cents: "integer not null",
        credit_cents: "integer not null",
        monthly_max_cents: "integer not null",
        payment_method_id: "text not null",
        card: "text not null",
        consented_at_ms: "integer not null",
        consented_by: "text not null",
        stopped_at_ms: "integer",
        stopped_reason: "text",
      },
    },
    // Every agreement; never changed.
    {
      name: "payment_consents",
      columns: {
        workspace_id: "text not null",
        at_ms: "integer not null",
        by_id: "text not null",
        terms: "text not null",
      },
    },
    {
      name: "payment_marks",
      columns: {
        name: "text not null primary key",
        value: "integer not null",
      },
    },
  ],
  indexes: [
    // Never two automatic top-ups at once.
    "create unique index payment_orders_one_automatic on payment_orders (workspace_id) where kind = 'automatic' and state = 'open'",
    "create index payment_orders_by_workspace on payment_orders (workspace_id)",
    "create index payment_receipts_by_workspace on payment_receipts (workspace_id)",
    "create index payment_claims_by_payment on payment_claims (payment_intent_id)",
    "create index payment_movements_by_workspace on payment_movements (workspace_id)",
    "create index payment_documents_by_workspace on payment_documents (workspace_id)",
  ],
};
