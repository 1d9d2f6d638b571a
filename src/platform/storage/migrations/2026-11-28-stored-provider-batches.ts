import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Batches that a provider's own batch API runs, and what is reserved for their lines. */
export const storedProviderBatches: Migration = {
  name: "2026-11-28-stored-provider-batches additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "provider_batches",
      columns: {
        batch_id: "text not null primary key",
        state: "text not null",
        reason: "text",
        provider: "text",
        upstream_id: "text",
        upstream_file: "text",
        input_file_id: "text",
        key: "text",
        submitted_at_ms: "integer",
        next_poll_ms: "integer not null",
        tries: "integer not null",
      },
    });
    for (const statement of [
      "alter table batch_lines add column model text",
      "alter table batch_lines add column upstream_model text",
      `alter table batch_lines add column reserved_nano ${kind === "sqlite" ? "integer" : "bigint"} not null default 0`,
    ])
      await sql.raw(statement).execute(database);
  },
};
