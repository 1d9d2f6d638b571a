import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../storage.ts";

/** Copies of files that a provider stores, by the account in which they are. */
export const filesAtProviders: Migration = {
  name: "2026-11-29-files-at-providers additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "provider_files",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        file_id: "text not null",
        provider: "text not null",
        account: "text not null",
        upstream_id: "text",
        created_at_ms: "integer not null",
        used_at_ms: "integer not null",
        expires_at_ms: "integer not null",
      },
    });
    for (const statement of [
      "create unique index provider_files_of_file on provider_files (file_id, provider, account)",
      "create index provider_files_by_use on provider_files (used_at_ms)",
    ])
      await sql.raw(statement).execute(database);
  },
};
