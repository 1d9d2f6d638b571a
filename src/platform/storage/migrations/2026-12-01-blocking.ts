import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** Who is shut out, which workspaces with them, and when somebody signed in last. */
export const blocking: Migration = {
  name: "2026-12-01-blocking",
  async up(database, kind) {
    const type = kind === "postgres" ? sql`bigint` : sql`integer`;
    await sql`alter table users add column blocked_at_ms ${type}`.execute(database);
    await sql`alter table users add column last_signed_in_at_ms ${type}`.execute(database);
    await sql`alter table workspaces add column blocked_at_ms ${type}`.execute(database);
  },
};
