import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** What could not be collected, by day, workspace and model; begun with what the books hold already. */
export const uncollected: Migration = {
  name: "2026-12-08-uncollected",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "uncollected_days",
      clustered: true,
      columns: {
        day: "integer not null",
        workspace_id: "text not null",
        model: "text not null",
        requests: "integer not null",
        uncollected_nano: "integer not null",
      },
      constraints: ["primary key (day, workspace_id, model)"],
    });
    await sql`insert into uncollected_days (day, workspace_id, model, requests, uncollected_nano)
      select generations.created_at_ms / 86400000, generations.workspace_id, generations.model, count(*), sum(transfers.amount_nano)
      from transfers inner join generations on generations.id = transfers.reference
      where transfers.kind = 'uncollected'
      group by generations.created_at_ms / 86400000, generations.workspace_id, generations.model`.execute(
      database,
    );
  },
};
