import { sql } from "kysely";
import { createTable } from "../../create-table.ts";
import type { Migration } from "../../storage.ts";

const indexes = [
  "create index runs_by_owner on runs (owner_id, released_at_ms)",
  "create index runs_open on runs (expires_at_ms) where released_at_ms is null",
  "create index runs_by_name on runs (owner_id, joined_name, id)",
  "create index runs_by_workspace on runs (workspace_id, id)",
  "create index runs_by_root on runs (root_id)",
  "create unique index runs_by_hash on runs (hash)",
  // A name opens one run of its owner at a time, however many requests name it at once.
  "create unique index runs_by_joined_name on runs (owner_id, joined_name) where joined_name is not null and ended_at_ms is null",
] as const;

/** Stores runs: budgets with keys of their own, carved out of a key or of another run. */
export const runs: Migration = {
  name: "2026-11-28-runs additive to 2026-11-23-first-schema",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "runs",
      columns: {
        id: "text not null primary key",
        workspace_id: "text not null",
        // The run, the key or the workspace whose limit holds this run's limit.
        owner_id: "text not null",
        // The key that the tree of runs began with; the workspace where a person began it.
        root_id: "text not null",
        name: "text not null",
        joined_name: "text",
        hash: "text not null",
        label: "text not null",
        limit_nano: "integer not null",
        max_requests: "integer",
        depth: "integer not null",
        max_depth: "integer not null",
        expires_at_ms: "integer not null",
        degrade: "text",
        loop_guard: "text",
        paused: "integer not null default 0",
        version: "integer not null default 1",
        creator_user_id: "text not null",
        created_at_ms: "integer not null",
        updated_at_ms: "integer",
        ended_at_ms: "integer",
        // When the rest of the limit went back to the owner, and what the run had spent by then.
        released_at_ms: "integer",
        settled_nano: "integer not null default 0",
        alerted_percent: "integer not null default 0",
      },
    });
    for (const index of indexes) await sql.raw(index).execute(database);
    const type = kind === "postgres" ? "bigint" : "integer";
    await sql.raw(`alter table llm_keys add column run_limit_nano ${type}`).execute(database);
  },
};
