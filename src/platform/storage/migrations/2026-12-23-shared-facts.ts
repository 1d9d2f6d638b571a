import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/**
 * What gateways on one database agree on, such as its epoch and the fingerprints of their keys, and the last beat of each gateway:
 * one that is missing, or older than its gateway knows, tells that the database was set back.
 */
export const sharedFacts: Migration = {
  name: "2026-12-23-shared-facts",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "gateway_facts",
      columns: { name: "text not null primary key", value: "text not null" },
    });
    await createTable(database, kind, {
      name: "gateway_beats",
      columns: {
        node_id: "text not null primary key",
        beat: "integer not null",
        at_ms: "integer not null",
      },
    });
  },
};
