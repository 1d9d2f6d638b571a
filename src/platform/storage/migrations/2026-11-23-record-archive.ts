import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/**
 * Generation records that wait for the archive. Folded from what commits append; `batch` names the
 * insert that a record belongs to once that is settled.
 */
export const recordArchive: Migration = {
  name: "2026-11-23-record-archive",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "archive_outbox",
      clustered: true,
      columns: {
        generation_id: "text not null",
        workspace_id: "text not null",
        records: "integer not null",
        batch: "text",
      },
      constraints: ["primary key (generation_id, workspace_id)"],
    });
    await sql
      .raw(
        "create index archive_outbox_by_batch on archive_outbox (batch, generation_id) where batch is not null",
      )
      .execute(database);
  },
};
