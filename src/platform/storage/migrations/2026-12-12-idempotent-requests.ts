import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/** Requests that were sent with an idempotency key, and what was answered, sealed. Keys and requests are kept as keyed hashes. */
export const idempotentRequests: Migration = {
  name: "2026-12-12-idempotent-requests",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "idempotent_requests",
      columns: {
        workspace_id: "text not null",
        actor_id: "text not null",
        key_hash: "text not null",
        fingerprint: "text not null",
        started_at_ms: "integer not null",
        state: "text not null",
        answer: "text",
      },
      constraints: ["primary key (workspace_id, actor_id, key_hash)"],
    });
    await sql`create index idempotent_requests_by_age on idempotent_requests (started_at_ms)`.execute(
      database,
    );
  },
};
