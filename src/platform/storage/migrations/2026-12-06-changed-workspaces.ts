import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** When each workspace was changed last, so that gateways on one database find what they have to read again. */
export const changedWorkspaces: Migration = {
  name: "2026-12-06-changed-workspaces",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "changed_workspaces",
      columns: { workspace_id: "text not null primary key", at_ms: "integer not null" },
    });
    await sql`create index changed_workspaces_by_time on changed_workspaces (at_ms)`.execute(
      database,
    );
  },
};
