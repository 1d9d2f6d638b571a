import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** What is counted of requests, in each of the tables below. */
const counts = {
  requests: "integer not null",
  errors: "integer not null",
  prompt_tokens: "integer not null",
  completion_tokens: "integer not null",
  cached_tokens: "integer not null",
  reasoning_tokens: "integer not null",
};

const usageTable = (name: string, bucket: string): TableDefinition => ({
  name,
  clustered: true,
  columns: {
    workspace_id: "text not null",
    [bucket]: "integer not null",
    key_id: "text not null",
    model: "text not null",
    provider: "text not null",
    ...counts,
    cost_nano: "integer not null",
  },
  constraints: [`primary key (workspace_id, ${bucket}, key_id, model, provider)`],
});

const tables: readonly TableDefinition[] = [
  usageTable("usage_hours", "hour"),
  usageTable("usage_days", "day"),
  {
    name: "network_hours",
    clustered: true,
    columns: {
      hour: "integer not null primary key",
      requests: "integer not null",
      tokens: "integer not null",
    },
  },
  {
    name: "network_days",
    clustered: true,
    columns: {
      day: "integer not null",
      model: "text not null",
      provider: "text not null",
      ...counts,
      cost_nano: "integer not null",
      attempts: "integer not null",
      failures: "integer not null",
    },
    constraints: ["primary key (day, model, provider)"],
  },
  {
    name: "health_events",
    columns: {
      id: "text not null primary key",
      at_ms: "integer not null",
      upstream_id: "text not null",
      from_status: "text not null",
      to_status: "text not null",
      message: "text",
    },
  },
  {
    name: "smoke_results",
    columns: {
      provider_id: "text not null primary key",
      at_ms: "integer not null",
      outcome: "text not null",
      latency_ms: "integer",
      message: "text",
    },
  },
];

/** Counters of usage by hour and day, status changes of providers, and the last smoke test of each. */
export const insights: Migration = {
  name: "2026-11-24-insights",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
  },
};
