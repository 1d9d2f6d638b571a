import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const ofResponse = "text not null references stored_responses (id) on delete cascade";

const tables: readonly TableDefinition[] = [
  {
    // The long texts stand last: a walk along a conversation reads what is before them and no more.
    name: "stored_responses",
    columns: {
      id: "text not null primary key",
      workspace_id: "text not null",
      key_id: "text not null",
      created_at_ms: "integer not null",
      completed_at_ms: "integer",
      status: "text not null",
      model: "text not null",
      background: "integer not null",
      previous_response_id: "text",
      size_bytes: "integer not null",
      record: "text not null",
      input_items: "text not null",
      request: "text",
    },
  },
  {
    name: "stored_response_items",
    clustered: true,
    columns: { workspace_id: "text not null", item_id: "text not null", response_id: ofResponse },
    constraints: ["primary key (workspace_id, item_id, response_id)"],
  },
  {
    name: "stored_response_events",
    columns: {
      response_id: ofResponse,
      last_sequence: "integer not null",
      events: "text not null",
    },
    constraints: ["primary key (response_id, last_sequence)"],
  },
];

/** Stored responses, where their output items are found, and the events of background streams. */
export const storedResponses: Migration = {
  name: "2026-11-21-stored-responses",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    await sql`create index stored_response_items_by_response on stored_response_items (response_id)`.execute(
      database,
    );
    await sql`create index stored_responses_under_way on stored_responses (id) where status in ('queued', 'in_progress')`.execute(
      database,
    );
  },
};
