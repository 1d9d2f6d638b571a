import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/**
 * Lets no commit take the balance of a workspace below zero, where several gateways charge it: what they believe of it together may
 * be older than the database, as after a failover to a replica that lagged. Not a check constraint: those look at the row that an
 * upsert proposes, which is the amount of a charge. The embedded database has one gateway, which knows.
 */
export const overdrawnAccounts: Migration = {
  name: "2026-12-23-overdrawn-accounts",
  async up(database, kind) {
    if (kind === "sqlite") return;
    await sql`create function refuse_overdrawn_account() returns trigger language plpgsql as $$
      begin
        raise exception 'the account % would have %', new.id, new.balance_nano using errcode = 'check_violation';
      end $$`.execute(database);
    await sql`create trigger overdrawn_when_changed after update on ledger_accounts for each row
      when (new.balance_nano < 0 and new.balance_nano < old.balance_nano and new.id not like 'operator:%')
      execute function refuse_overdrawn_account()`.execute(database);
    await sql`create trigger overdrawn_when_made after insert on ledger_accounts for each row
      when (new.balance_nano < 0 and new.id not like 'operator:%') execute function refuse_overdrawn_account()`.execute(
      database,
    );
  },
};
