import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const text = "text not null";
const count = "integer not null";

/** Settings of people for their clients, and the versions of presets; presets that exist begin with the one that they are. */
export const preferencesAndVersions: Migration = {
  name: "2026-12-21-preferences-and-versions",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "user_preferences",
      columns: { user_id: text, name: text, value: text, updated_at_ms: count },
      constraints: ["primary key (user_id, name)"],
    });
    await createTable(database, kind, {
      name: "preset_versions",
      columns: {
        preset_id: text,
        version: count,
        name: text,
        description: "text",
        config: text,
        author: "text",
        created_at_ms: count,
      },
      constraints: ["primary key (preset_id, version)"],
    });
    await sql`insert into preset_versions (preset_id, version, name, description, config, author, created_at_ms)
      select id, 1, name, description, config, null, updated_at_ms from presets`.execute(database);
    await sql`alter table presets add column version integer not null default 1`.execute(database);
  },
};
