import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/**
 * What lists of requests look for: the few records that did not complete, by an index that costs completed ones nothing, and
 * how many requests were refused before a provider was asked.
 */
export const unfinishedGenerations: Migration = {
  name: "2026-12-16-unfinished-generations",
  async up(database, kind) {
    await sql`create index generations_unfinished on generations (workspace_id, id) where status <> 'completed'`.execute(
      database,
    );
    await createTable(database, kind, {
      name: "refused_hours",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        hour: "integer not null",
        key_id: "text not null",
        code: "text not null",
        requests: "integer not null",
      },
      constraints: ["primary key (workspace_id, hour, key_id, code)"],
    });
  },
};
