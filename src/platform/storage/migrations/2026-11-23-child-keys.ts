import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** Which key made a key, where one did; its spend counts against that one's limit too. */
export const childKeys: Migration = {
  name: "2026-11-23-child-keys",
  async up(database, kind) {
    const type = kind === "postgres" ? sql`text collate "C"` : sql`text`;
    await sql`alter table llm_keys add column parent_key_id ${type} references llm_keys (id)`.execute(
      database,
    );
    await sql`create index llm_keys_by_parent on llm_keys (parent_key_id) where parent_key_id is not null`.execute(
      database,
    );
  },
};
