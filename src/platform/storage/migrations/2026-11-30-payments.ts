import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const tables: readonly TableDefinition[] = [
  {
    // A workspace is one customer to the payment provider, in its test mode another one than in earnest.
    name: "payment_customers",
    columns: {
      workspace_id: "text not null",
      live: "integer not null",
      customer_id: "text not null unique",
      created_at_ms: "integer not null",
    },
    constraints: ["primary key (workspace_id, live)"],
  },
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
    // Two gateways that look at the same month at once cannot both add to it.
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
  {
    // Refunds and disputes in every state that they have had; known by their payment, which may be credited later than they come.
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
  {
    // What was taken of a workspace's credits for a refunded or disputed payment; below zero what was given back.
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
  {
    name: "payment_documents",
    columns: {
      series: "text not null",
      number: "integer not null",
      order_id: "text not null",
      // Empty for invoices; for credit notes the refund.
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
  {
    // What was agreed to, each time; never changed.
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
    columns: { name: "text not null primary key", value: "integer not null" },
  },
];

/** Card top-ups: orders, what was paid, refunded and disputed of them, invoices, and automatic top-ups. */
export const payments: Migration = {
  name: "2026-11-30-payments",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    // Never two automatic top-ups at once, whoever asks for them.
    await sql`create unique index payment_orders_one_automatic on payment_orders (workspace_id)
      where kind = 'automatic' and state = 'open'`.execute(database);
    await sql`create index payment_claims_by_payment on payment_claims (payment_intent_id)`.execute(
      database,
    );
    for (const table of ["orders", "receipts", "movements", "documents"]) {
      await sql
        .raw(`create index payment_${table}_by_workspace on payment_${table} (workspace_id)`)
        .execute(database);
    }
  },
};
