import { sql } from "kysely";
import { createTable } from "../create-table.ts";
import type { Migration } from "../migrate.ts";

/**
 * Who brought whom. A person is brought once, by the user and by the mailbox (a keyed hash of it); rows stay when the user is
 * deleted. What both sides get is settled once, when it falls due, and given until `rewarded_at_ms` says that it was.
 */
export const referrals: Migration = {
  name: "2026-12-07-referrals",
  async up(database, kind) {
    await createTable(database, kind, {
      name: "referral_codes",
      columns: {
        workspace_id: "text primary key references workspaces (id)",
        code: "text not null unique",
        created_at_ms: "integer not null",
      },
    });
    await createTable(database, kind, {
      name: "referrals",
      columns: {
        user_id: "text primary key",
        mailbox_hash: "text not null unique",
        workspace_id: "text not null",
        referrer_workspace_id: "text not null references workspaces (id)",
        created_at_ms: "integer not null",
        decided_at_ms: "integer",
        referrer_nano: "integer",
        referred_nano: "integer",
        rewarded_at_ms: "integer",
      },
    });
    await sql`create index referrals_by_referrer on referrals (referrer_workspace_id)`.execute(
      database,
    );
    await sql`create index referrals_by_workspace on referrals (workspace_id)`.execute(database);
    await sql`create index referrals_open on referrals (created_at_ms, user_id) where rewarded_at_ms is null`.execute(
      database,
    );
  },
};
