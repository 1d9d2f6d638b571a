import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Counts the answers in which a provider passed the output cap that it was sent. */
export const passedCaps: Migration = {
  name: "2026-11-28-passed-caps additive to 2026-11-23-first-schema",
  up: (database, kind) =>
    createTable(database, kind, {
      name: "passed_cap_days",
      clustered: true,
      columns: {
        day: "integer not null",
        provider: "text not null",
        requests: "integer not null",
        tokens: "integer not null",
        cost_nano: "integer not null",
      },
      constraints: ["primary key (day, provider)"],
    }),
};
