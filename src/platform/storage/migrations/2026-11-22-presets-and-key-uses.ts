import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const tables: readonly TableDefinition[] = [
  {
    name: "presets",
    columns: {
      id: "text primary key",
      workspace_id: "text not null references workspaces (id)",
      slug: "text not null",
      name: "text not null",
      description: "text",
      config: "text not null",
      created_at_ms: "integer not null",
      updated_at_ms: "integer not null",
    },
    constraints: ["unique (workspace_id, slug)"],
  },
  {
    name: "credential_uses",
    columns: { credential_id: "text primary key", last_used_at_ms: "integer not null" },
  },
];

/** Presets, and when each key was used last; what is known of older uses is the hour of their last charge. */
export const presetsAndKeyUses: Migration = {
  name: "2026-11-22-presets-and-key-uses",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    await sql`insert into credential_uses (credential_id, last_used_at_ms)
      select key_id, max(hour) * 3600000 from key_spend_hours group by key_id`.execute(database);
  },
};
