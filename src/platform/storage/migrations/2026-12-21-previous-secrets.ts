import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** The secret that a rotated key had before, for as long as it is still accepted. */
export const previousSecrets: Migration = {
  name: "2026-12-21-previous-secrets",
  async up(database, kind) {
    await sql`alter table llm_keys add column previous_hash text`.execute(database);
    await sql`alter table llm_keys add column previous_until_ms ${sql.raw(kind === "postgres" ? "bigint" : "integer")}`.execute(
      database,
    );
  },
};
