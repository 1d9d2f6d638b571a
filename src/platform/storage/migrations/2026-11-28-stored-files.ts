import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Files of workspaces, the bytes that each workspace stores, and uploads in parts. */
export const storedFiles: Migration = {
  name: "2026-11-28-stored-files additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "files",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        key_id: "text",
        created_at_ms: "integer not null",
        expires_at_ms: "integer",
        filename: "text not null",
        mime_type: "text not null",
        purpose: "text not null",
        is_output: "integer not null",
        bytes: "integer not null",
        object: "text not null",
        sealed_key: "text not null",
        holds: "integer not null default 0",
        deleted_at_ms: "integer",
      },
    });
    await createTable(database, kind, {
      name: "file_usage",
      columns: { workspace_id: "text not null primary key", bytes: "integer not null" },
    });
    await createTable(database, kind, {
      name: "uploads",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        key_id: "text",
        created_at_ms: "integer not null",
        expires_at_ms: "integer not null",
        filename: "text not null",
        mime_type: "text not null",
        purpose: "text not null",
        bytes: "integer not null",
        received_bytes: "integer not null",
        file_expires_s: "integer",
        status: "text not null",
        file_id: "text",
      },
    });
    await createTable(database, kind, {
      name: "upload_parts",
      columns: {
        id: "text not null primary key",
        upload_id: "text not null references uploads (id) on delete cascade",
        workspace_id: "text not null",
        bytes: "integer not null",
        object: "text not null",
        sealed_key: "text not null",
      },
    });
    for (const statement of [
      "create index files_of_workspace on files (workspace_id, id)",
      "create index files_by_expiry on files (expires_at_ms) where expires_at_ms is not null",
      "create index files_deleted on files (id) where deleted_at_ms is not null",
      "create unique index files_by_object on files (object)",
      "create unique index upload_parts_by_object on upload_parts (object)",
      "create index upload_parts_of_upload on upload_parts (upload_id)",
      "create index uploads_pending on uploads (expires_at_ms) where status = 'pending'",
    ])
      await sql.raw(statement).execute(database);
  },
};
