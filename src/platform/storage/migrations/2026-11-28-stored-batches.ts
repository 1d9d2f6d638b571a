import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Batches, their lines, and the results that are not in files yet. */
export const storedBatches: Migration = {
  name: "2026-11-28-stored-batches additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "batches",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        key_id: "text not null",
        form: "text not null",
        endpoint: "text not null",
        completion_window: "text not null",
        status: "text not null",
        created_at_ms: "integer not null",
        expires_at_ms: "integer not null",
        in_progress_at_ms: "integer",
        finalizing_at_ms: "integer",
        ended_at_ms: "integer",
        cancelling_at_ms: "integer",
        input_file_id: "text not null",
        output_file_id: "text",
        error_file_id: "text",
        output_expires_s: "integer",
        total: "integer not null",
        completed: "integer not null",
        failed: "integer not null",
        cost_nano: "integer not null",
        problems: "text",
        metadata: "text",
        usage: "text",
        pause_note: "text",
        paused_until_ms: "integer not null",
        sealed_key: "text not null",
        leased_by: "text",
        leased_until_ms: "integer not null",
      },
    });
    await createTable(database, kind, {
      name: "batch_lines",
      clustered: true,
      columns: {
        batch_id: "text not null",
        line: "integer not null",
        custom_id: "text not null",
        start_byte: "integer not null",
        bytes: "integer not null",
        leased_by: "text",
        leased_until_ms: "integer not null",
        not_before_ms: "integer not null",
        tries: "integer not null",
        done: "integer not null",
      },
      constraints: ["primary key (batch_id, line)"],
    });
    await createTable(database, kind, {
      name: "batch_results",
      columns: {
        batch_id: "text not null",
        line: "integer not null",
        status: "integer not null",
        cost_nano: "integer not null",
        result: "text not null",
      },
      constraints: ["primary key (batch_id, line)"],
    });
    for (const statement of [
      "create index batches_of_workspace on batches (workspace_id, id)",
      "create index batches_open on batches (id) where status in ('validating', 'in_progress', 'finalizing', 'cancelling')",
      "create index batch_lines_undone on batch_lines (batch_id, line) where done = 0",
    ])
      await sql.raw(statement).execute(database);
  },
};
