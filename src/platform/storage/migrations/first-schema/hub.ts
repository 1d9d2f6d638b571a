import { type Kysely, sql } from "kysely";
import { createTable } from "../../create-table.ts";
import type { StorageKind } from "../../storage.ts";
import type { SchemaPart } from "./schema-part.ts";

/**
 * Prompts, skills, knowledge documents and plugins with their versions and stars, and the hubs that
 * contain them.
 */
export const hubSchema: SchemaPart = {
  tables: [
    {
      name: "hubs",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        person_id: "text not null",
        slug: "text not null",
        name: "text not null",
        description: "text",
        visibility: "text not null",
        created_at_ms: "integer not null",
        updated_at_ms: "integer not null",
      },
      constraints: ["unique (workspace_id, slug)"],
    },
    {
      name: "hub_entries",
      columns: {
        id: "text not null primary key",
        kind: "text not null",
        workspace_id: "text not null",
        person_id: "text not null",
        hub_id: "text",
        slug: "text",
        visibility: "text not null",
        status: "text",
        version: "integer not null",
        public_version: "integer",
        stars: "integer not null",
        forks: "integer not null",
        forked_from: "text",
        source_ref: "text",
        review_note: "text",
        reviewed_by: "text",
        reviewed_at_ms: "integer",
        created_at_ms: "integer not null",
        updated_at_ms: "integer not null",
      },
    },
    {
      name: "hub_versions",
      columns: {
        entry_id: "text not null",
        version: "integer not null",
        person_id: "text not null",
        created_at_ms: "integer not null",
        title: "text not null",
        description: "text",
        category: "text",
        tags: "text not null",
        details: "text not null",
        body: "text not null",
      },
      constraints: ["primary key (entry_id, version)"],
    },
    {
      name: "hub_stars",
      clustered: true,
      columns: {
        person_id: "text not null",
        workspace_id: "text not null",
        entry_id: "text not null",
        created_at_ms: "integer not null",
      },
      constraints: ["primary key (person_id, workspace_id, entry_id)"],
    },
    // Files beside a skill's document, in base64; all of a skill's belong to one bundle.
    {
      name: "hub_files",
      columns: {
        bundle_id: "text not null",
        path: "text not null",
        entry_id: "text not null",
        workspace_id: "text not null",
        bytes: "integer not null",
        data: "text not null",
      },
      constraints: ["primary key (bundle_id, path)"],
    },
  ],
  indexes: [
    "create unique index hubs_by_public_slug on hubs (slug) where visibility = 'public'",
    "create index hub_entries_by_workspace on hub_entries (workspace_id, kind, created_at_ms)",
    "create index hub_entries_by_hub on hub_entries (hub_id, created_at_ms) where hub_id is not null",
    "create index hub_entries_public on hub_entries (kind, created_at_ms) where visibility = 'public'",
    "create index hub_entries_by_status on hub_entries (status, created_at_ms) where status is not null",
    "create unique index hub_entries_by_slug on hub_entries (hub_id, slug) where hub_id is not null",
    "create unique index hub_skills_by_slug on hub_entries (workspace_id, slug) where hub_id is null and slug is not null",
    "create index hub_stars_by_entry on hub_stars (entry_id)",
    "create index hub_files_by_entry on hub_files (entry_id)",
    "create index hub_files_by_workspace on hub_files (workspace_id, bytes)",
  ],
  createRest: createSearch,
};

/**
 * Creates the full-text search: FTS5 on SQLite, tsvector on Postgres. Both receive words that the
 * gateway has split, so that both find the same.
 */
async function createSearch(database: Kysely<unknown>, kind: StorageKind): Promise<void> {
  await createTable(database, kind, {
    name: "search_texts",
    columns: {
      ...(kind === "sqlite" ? { row_id: "integer primary key" } : {}),
      owner_id: "text not null",
      audience: "text not null",
    },
    constraints: ["unique (owner_id, audience)"],
  });
  if (kind === "sqlite") {
    await sql`create virtual table search_words using fts5(words, content='', contentless_delete=1, tokenize='ascii')`.execute(
      database,
    );
    return;
  }
  await sql`alter table search_texts add column words tsvector not null`.execute(database);
  await sql`create index search_texts_by_words on search_texts using gin (words)`.execute(database);
}
