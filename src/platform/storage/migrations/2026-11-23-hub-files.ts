import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** Files beside a skill's document, in base64; all of a skill's belong to one bundle. */
export const hubFiles: Migration = {
  name: "2026-11-23-hub-files",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "hub_files",
      columns: {
        bundle_id: "text not null",
        path: "text not null",
        entry_id: "text not null",
        workspace_id: "text not null",
        bytes: "integer not null",
        data: "text not null",
      },
      constraints: ["primary key (bundle_id, path)"],
    });
    await sql.raw("create index hub_files_by_entry on hub_files (entry_id)").execute(database);
    await sql
      .raw("create index hub_files_by_workspace on hub_files (workspace_id, bytes)")
      .execute(database);
  },
};
