import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** The last report of each gateway on a database, as JSON. */
export const nodeReports: Migration = {
  name: "2026-11-23-node-reports",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "gateway_nodes",
      columns: {
        node_id: "text not null primary key",
        about: "text not null",
        seen_at_ms: "integer not null",
      },
    });
  },
};
