import { sql } from "kysely";
import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

const indexes = [
  "create unique index customers_by_external_id on customers (workspace_id, external_id)",
  "create index customers_by_creation on customers (workspace_id, created_at_ms, id)",
  "create index customers_by_change on customers (updated_at_ms)",
  "create index customer_credits_by_customer on customer_credits (customer_id, id)",
  "create unique index meter_events_by_place on meter_events (customer_id, period_start_ms, place)",
  "create index meter_events_unsent on meter_events (next_at_ms) where ended_at_ms is null",
] as const;

/** Stores end customers of workspaces: plans, credits, use by day, and what was reported of it. */
export const customers: Migration = {
  name: "2026-11-28-customers additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "customers",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        external_id: "text not null",
        name: "text not null",
        email: "text",
        // JSON; null takes the rule of the configuration.
        plan: "text",
        credits_nano: "integer not null default 0",
        suspended: "integer not null default 0",
        stripe_customer_id: "text",
        link_version: "integer not null default 0",
        created_at_ms: "integer not null",
        updated_at_ms: "integer not null",
        removed_at_ms: "integer",
      },
    });
    await createTable(database, kind, {
      name: "customer_credits",
      columns: {
        id: "text not null primary key",
        customer_id: "text not null",
        workspace_id: "text not null",
        amount_nano: "integer not null",
        note: "text",
        created_at_ms: "integer not null",
      },
    });
    await createTable(database, kind, {
      name: "customer_days",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        customer: "text not null",
        day: "integer not null",
        model: "text not null",
        requests: "integer not null",
        prompt_tokens: "integer not null",
        completion_tokens: "integer not null",
        cost_nano: "integer not null",
        price_nano: "integer not null",
      },
      constraints: ["primary key (workspace_id, customer, day, model)"],
    });
    await createTable(database, kind, {
      name: "meter_events",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        customer_id: "text not null",
        stripe_customer_id: "text not null",
        event_name: "text not null",
        period_start_ms: "integer not null",
        // The events of a customer's period are counted, so that gateways make each of them once.
        place: "integer not null",
        units: "integer not null",
        at_ms: "integer not null",
        attempts: "integer not null default 0",
        next_at_ms: "integer not null",
        ended_at_ms: "integer",
        error: "text",
      },
    });
    for (const index of indexes) await sql.raw(index).execute(database);
    await sql.raw("alter table llm_keys add column customer text").execute(database);
  },
};
