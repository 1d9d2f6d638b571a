import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** Links that work once: to choose another password, and to prove that an address is somebody's. The database has hashes of them. */
export const userLinks: Migration = {
  name: "2026-12-03-user-links",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "user_links",
      columns: {
        token_hash: "text primary key",
        purpose: "text not null",
        user_id: "text not null references users (id) on delete cascade",
        email: "text not null",
        by_mail: "integer not null",
        created_at_ms: "integer not null",
        expires_at_ms: "integer not null",
        used_at_ms: "integer",
      },
    });
    await sql`create index user_links_by_user on user_links (user_id, purpose)`.execute(database);
  },
};
