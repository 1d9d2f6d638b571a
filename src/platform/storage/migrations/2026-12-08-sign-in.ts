import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

const tables: readonly TableDefinition[] = [
  // The library's, for codes of authenticator apps; secrets and backup codes are encrypted.
  {
    name: "two_factors",
    columns: {
      id: "text not null primary key",
      user_id: "text not null unique references users (id) on delete cascade",
      secret: "text not null",
      backup_codes: "text not null",
      verified: "integer not null default 0",
      failed_verification_count: "integer not null default 0",
      locked_until: "text",
    },
  },
  // Attempts to sign in, counted where every gateway and every start sees them; names are hashes.
  {
    name: "sign_in_windows",
    columns: {
      name: "text not null primary key",
      started_at_ms: "integer not null",
      ends_at_ms: "integer not null",
      count: "integer not null",
    },
  },
  // Accounts whose address nobody has confirmed yet.
  {
    name: "pending_sign_ups",
    columns: {
      token_hash: "text not null primary key",
      email: "text not null",
      name: "text not null",
      password: "text not null",
      referral_code: "text",
      created_at_ms: "integer not null",
      expires_at_ms: "integer not null",
    },
  },
];

/** Who made each management key, second factors, and what signing in and up has to remember. */
export const signIn: Migration = {
  name: "2026-12-08-sign-in",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    const integer = kind === "postgres" ? sql`bigint` : sql`integer`;
    const text = kind === "postgres" ? sql`text collate "C"` : sql`text`;
    await sql`create index sign_in_windows_by_end on sign_in_windows (ends_at_ms)`.execute(
      database,
    );
    await sql`create index pending_sign_ups_by_email on pending_sign_ups (email)`.execute(database);
    await sql`alter table users add column two_factor_enabled ${integer} not null default 0`.execute(
      database,
    );
    await sql`alter table management_keys add column creator_user_id ${text}`.execute(database);
    // The audit log knows who made those that are there.
    await sql`update management_keys set creator_user_id = (
      select entry.actor_id from audit_outcomes as outcome
      inner join audit_log as entry on entry.id = outcome.audit_id and entry.workspace_id = outcome.workspace_id
      where outcome.target = management_keys.id and outcome.workspace_id = management_keys.workspace_id
        and entry.action = 'POST /management-keys' and entry.actor_kind = 'user' limit 1
    )`.execute(database);
  },
};
