import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const tables: readonly TableDefinition[] = [
  {
    name: "budgets",
    columns: {
      id: "text primary key",
      workspace_id: "text not null references workspaces (id)",
      name: "text not null",
      scope: "text not null",
      subject: "text",
      period: "text not null",
      limit_nano: "integer not null",
      thresholds: "text not null",
      emails: "text not null",
      webhook_url: "text",
      secret_version: "integer not null",
      created_at_ms: "integer not null",
      updated_at_ms: "integer",
    },
  },
  {
    // A threshold that was reached; the key makes it one alert a period, unless the limit is another one since.
    name: "budget_alerts",
    columns: {
      id: "text not null unique",
      budget_id: "text not null references budgets (id) on delete cascade",
      period_start_ms: "integer not null",
      threshold: "integer not null",
      limit_nano: "integer not null",
      spent_nano: "integer not null",
      at_ms: "integer not null",
    },
    constraints: ["primary key (budget_id, period_start_ms, threshold, limit_nano)"],
  },
  {
    name: "budget_deliveries",
    columns: {
      id: "text primary key",
      alert_id: "text not null references budget_alerts (id) on delete cascade",
      budget_id: "text not null references budgets (id) on delete cascade",
      channel: "text not null",
      target: "text not null",
      status: "text not null",
      attempts: "integer not null",
      next_attempt_ms: "integer",
      last_status: "integer",
      last_error: "text",
      created_at_ms: "integer not null",
      ended_at_ms: "integer",
    },
  },
];

/** Budgets, the alerts that they gave, and what became of each message. */
export const budgets: Migration = {
  name: "2026-12-02-budgets",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    await sql`create index budgets_by_workspace on budgets (workspace_id, id)`.execute(database);
    await sql`create index budget_deliveries_by_budget on budget_deliveries (budget_id, created_at_ms)`.execute(
      database,
    );
    await sql`create index budget_deliveries_due on budget_deliveries (next_attempt_ms) where status = 'pending'`.execute(
      database,
    );
  },
};
