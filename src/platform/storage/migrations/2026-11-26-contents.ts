import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Prompts and answers that wait for the archive, and since when a workspace keeps them. */
export const contents: Migration = {
  name: "2026-11-26-contents additive to 2026-11-23-first-schema",
  async up(database, kind) {
    const type = kind === "sqlite" ? "integer" : "bigint";
    await sql
      .raw(`alter table privacy_settings add column contents_since_ms ${type} not null default 0`)
      .execute(database);
    await createTable(database, kind, {
      name: "content_outbox",
      columns: {
        generation_id: "text primary key",
        workspace_id: "text not null",
        key_id: "text not null",
        created_at_ms: "integer not null",
        surface: "text not null",
        streamed: "integer not null",
        request_cut: "integer not null",
        answer_cut: "integer not null",
        size: "integer not null",
        batch: "text",
        request: "text not null",
        answer: "text not null",
      },
    });
    // What waits is counted by size alone, without reading a text.
    for (const columns of ["batch, generation_id, size", "workspace_id, created_at_ms"])
      await sql
        .raw(
          `create index content_outbox_by_${columns.slice(0, columns.indexOf(","))} on content_outbox (${columns})`,
        )
        .execute(database);
  },
};
