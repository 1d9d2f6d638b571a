import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Sums what requests cost by their customer or a tag of theirs, where a budget counts it. */
export const senderDays: Migration = {
  name: "2026-11-28-sender-days additive to 2026-11-23-first-schema",
  up: (database, kind) =>
    createTable(database, kind, {
      name: "sender_days",
      clustered: true,
      columns: {
        workspace_id: "text not null",
        scope: "text not null",
        subject: "text not null",
        day: "integer not null",
        requests: "integer not null",
        cost_nano: "integer not null",
      },
      constraints: ["primary key (workspace_id, scope, subject, day)"],
    }),
};
