import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const tables: readonly TableDefinition[] = [
  {
    name: "workspaces",
    columns: {
      id: "text primary key",
      name: "text not null",
      plan: "text not null",
      created_at_ms: "integer not null",
    },
  },
  {
    name: "llm_keys",
    columns: {
      id: "text primary key",
      hash: "text not null unique",
      workspace_id: "text not null references workspaces (id)",
      name: "text not null",
      label: "text not null",
      created_at_ms: "integer not null",
      updated_at_ms: "integer",
      expires_at_ms: "integer",
      disabled: "integer not null",
      deleted_at_ms: "integer",
      limit_nano: "integer",
      limit_reset: "text",
      include_byok_in_limit: "integer not null",
      rate_limit_per_minute: "integer",
      tokens_per_minute: "integer",
      allowed_models: "text",
      allowed_endpoints: "text",
      creator_user_id: "text not null",
    },
  },
  {
    name: "management_keys",
    columns: {
      id: "text primary key",
      hash: "text not null unique",
      workspace_id: "text not null references workspaces (id)",
      name: "text not null",
      description: "text",
      scopes: "text not null",
      label: "text not null",
      created_at_ms: "integer not null",
      expires_at_ms: "integer",
      revoked_at_ms: "integer",
      revocation_reason: "text",
    },
  },
  {
    name: "transfers",
    clustered: true,
    columns: {
      id: "text not null primary key",
      debit_account: "text not null",
      credit_account: "text not null",
      amount_nano: "integer not null check (amount_nano > 0)",
      kind: "text not null",
      reference: "text",
      created_at_ms: "integer not null",
    },
  },
  {
    name: "ledger_accounts",
    columns: { id: "text primary key", balance_nano: "integer not null" },
  },
  {
    name: "key_spend_hours",
    clustered: true,
    columns: {
      key_id: "text not null",
      workspace_id: "text not null",
      hour: "integer not null",
      spend_nano: "integer not null",
      requests: "integer not null",
    },
    constraints: ["primary key (key_id, workspace_id, hour)"],
  },
  {
    name: "generations",
    clustered: true,
    constraints: ["primary key (workspace_id, id)"],
    columns: {
      id: "text not null",
      created_at_ms: "integer not null",
      workspace_id: "text not null",
      key_id: "text not null",
      surface: "text not null",
      requested_model: "text not null",
      model: "text not null",
      provider: "text not null",
      upstream_model: "text not null",
      upstream_id: "text",
      status: "text not null",
      finish_reason: "text",
      streamed: "integer not null",
      prompt_tokens: "integer not null",
      completion_tokens: "integer not null",
      cost_nano: "integer not null",
      latency_ms: "integer not null",
      first_token_ms: "integer",
      detail: "text not null",
    },
  },
];

/** The first schema: workspaces, keys, the ledger and generation records. */
export const firstSchema: Migration = {
  name: "2026-11-21-first-schema",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    await sql`create index llm_keys_by_workspace on llm_keys (workspace_id, created_at_ms)`.execute(
      database,
    );
  },
};
