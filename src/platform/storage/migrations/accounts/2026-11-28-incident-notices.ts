import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

/** Stores incidents that operators describe by hand on the status page. */
export const incidentNotices: Migration = {
  name: "2026-11-28-incident-notices additive to 2026-11-23-first-schema",
  up: (database, kind) =>
    createTable(database, kind, {
      name: "incident_notices",
      columns: {
        id: "text primary key",
        title: "text not null",
        state: "text not null",
        updates: "text not null",
        started_at_ms: "integer not null",
        resolved_at_ms: "integer",
      },
    }),
};
