import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const text = "text not null";
const count = "integer not null";

/** Conversations of people, with their messages; and which workspaces keep none. */
export const conversations: Migration = {
  name: "2026-12-16-conversations",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "conversations",
      columns: {
        id: "text not null primary key",
        workspace_id: text,
        person_id: text,
        title: text,
        starred: count,
        source: text,
        model: "text",
        created_at_ms: count,
        updated_at_ms: count,
      },
    });
    await createTable(database, kind, {
      name: "conversation_messages",
      columns: {
        conversation_id: text,
        position: count,
        role: text,
        content: text,
        model: "text",
        response_id: "text",
        created_at_ms: count,
      },
      constraints: ["primary key (conversation_id, position)"],
    });
    await createTable(database, kind, {
      name: "conversation_settings",
      columns: { workspace_id: "text not null primary key", keep: count, updated_at_ms: count },
    });
    await sql`create index conversations_by_person on conversations (workspace_id, person_id, updated_at_ms)`.execute(
      database,
    );
    await sql`create index conversations_by_age on conversations (updated_at_ms)`.execute(database);
    await sql`create index conversation_messages_by_age on conversation_messages (created_at_ms)`.execute(
      database,
    );
    await sql`create index conversation_messages_by_response on conversation_messages (response_id) where response_id is not null`.execute(
      database,
    );
  },
};
