import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Who is notified of the end of a batch, until they were, and the failures of its lines by code. */
export const watchedBatches: Migration = {
  name: "2026-11-28-watched-batches additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "batch_watchers",
      columns: {
        id: "text not null primary key",
        batch_id: "text not null",
        workspace_id: "text not null",
        channel: "text not null",
        target: "text not null",
        pause_noticed: "integer not null",
        attempts: "integer not null",
        next_attempt_ms: "integer not null",
      },
    });
    await sql.raw("alter table batches add column failures text").execute(database);
  },
};
