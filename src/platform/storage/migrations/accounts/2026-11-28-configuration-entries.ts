import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

/** Stores what operators configure in the page; the file takes precedence. */
export const configurationEntries: Migration = {
  name: "2026-11-28-configuration-entries additive to 2026-11-23-first-schema",
  up: (database, kind) =>
    createTable(database, kind, {
      name: "configuration_entries",
      columns: {
        section: "text not null",
        id: "text not null",
        sealed: "text not null",
        updated_at_ms: "integer not null",
        updated_by: "text not null",
      },
      constraints: ["primary key (section, id)"],
    }),
};
