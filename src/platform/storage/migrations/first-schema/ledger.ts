import { type Kysely, sql } from "kysely";
import type { StorageKind } from "../../storage.ts";
import type { SchemaPart } from "./schema-part.ts";

/** Transfers and balances, grants, budgets and referrals. */
export const ledgerSchema: SchemaPart = {
  tables: [
    {
      name: "transfers",
      clustered: true,
      columns: {
        id: "text not null primary key",
        debit_account: "text not null",
        credit_account: "text not null",
        amount_nano: "integer not null check (amount_nano > 0)",
        kind: "text not null",
        reference: "text",
        created_at_ms: "integer not null",
      },
    },
    {
      name: "ledger_accounts",
      columns: {
        id: "text primary key",
        balance_nano: "integer not null",
      },
    },
    // The charges of a key by hour.
    {
      name: "key_spend_hours",
      clustered: true,
      columns: {
        key_id: "text not null",
        workspace_id: "text not null",
        hour: "integer not null",
        spend_nano: "integer not null",
        requests: "integer not null",
      },
      constraints: ["primary key (key_id, workspace_id, hour)"],
    },
    {
      name: "credit_grants",
      clustered: true,
      columns: {
        transfer_id: "text not null primary key",
        workspace_id: "text not null",
        granted_at_ms: "integer not null",
        bucket: "text not null",
        kind: "text not null",
        amount_nano: "integer not null check (amount_nano > 0)",
        description: "text",
        granted_by: "text not null",
      },
    },
    // What could not be charged, by day, workspace and model.
    {
      name: "uncollected_days",
      clustered: true,
      columns: {
        day: "integer not null",
        workspace_id: "text not null",
        model: "text not null",
        requests: "integer not null",
        uncollected_nano: "integer not null",
      },
      constraints: ["primary key (day, workspace_id, model)"],
    },
    {
      name: "budgets",
      columns: {
        id: "text primary key",
        workspace_id: "text not null references workspaces (id)",
        name: "text not null",
        scope: "text not null",
        subject: "text",
        period: "text not null",
        limit_nano: "integer not null",
        thresholds: "text not null",
        emails: "text not null",
        webhook_url: "text",
        secret_version: "integer not null",
        created_at_ms: "integer not null",
        updated_at_ms: "integer",
        action: "text not null default 'alert'",
      },
    },
    // A threshold that was reached: one alert per period, unless the limit has changed since.
    {
      name: "budget_alerts",
      columns: {
        id: "text not null unique",
        budget_id: "text not null references budgets (id) on delete cascade",
        period_start_ms: "integer not null",
        threshold: "integer not null",
        limit_nano: "integer not null",
        spent_nano: "integer not null",
        at_ms: "integer not null",
      },
      constraints: ["primary key (budget_id, period_start_ms, threshold, limit_nano)"],
    },
    {
      name: "budget_deliveries",
      columns: {
        id: "text primary key",
        alert_id: "text not null references budget_alerts (id) on delete cascade",
        budget_id: "text not null references budgets (id) on delete cascade",
        channel: "text not null",
        target: "text not null",
        status: "text not null",
        attempts: "integer not null",
        next_attempt_ms: "integer",
        last_status: "integer",
        last_error: "text",
        created_at_ms: "integer not null",
        ended_at_ms: "integer",
      },
    },
    {
      name: "referral_codes",
      columns: {
        workspace_id: "text primary key references workspaces (id)",
        code: "text not null unique",
        created_at_ms: "integer not null",
      },
    },
    // A person is referred once, by user and by mailbox (a keyed hash of it). Rows stay when the
    // user is deleted. Rewards fall due once, and are granted until `rewarded_at_ms` says that they
    // were.
    {
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
    },
  ],
  indexes: [
    // Statements read movements other than charges; charges are left out, so that no request pays
    // for these indexes.
    "create index transfers_by_debit on transfers (debit_account, created_at_ms, id) where kind <> 'charge' and kind <> 'uncollected'",
    "create index transfers_by_credit on transfers (credit_account, created_at_ms, id) where kind <> 'charge' and kind <> 'uncollected'",
    "create index key_spend_hours_by_workspace on key_spend_hours (workspace_id, hour)",
    "create index credit_grants_by_workspace on credit_grants (workspace_id, granted_at_ms)",
    "create index budgets_by_workspace on budgets (workspace_id, id)",
    "create index budget_deliveries_by_budget on budget_deliveries (budget_id, created_at_ms)",
    "create index budget_deliveries_due on budget_deliveries (next_attempt_ms) where status = 'pending'",
    "create index referrals_by_referrer on referrals (referrer_workspace_id)",
    "create index referrals_by_workspace on referrals (workspace_id)",
    "create index referrals_open on referrals (created_at_ms, user_id) where rewarded_at_ms is null",
  ],
  createRest: refuseOverdrafts,
};

/**
 * Refuses commits that take the balance of a workspace below zero, where several gateways charge
 * it: the balance that they share may be older than the database, as after a failover to a replica
 * that lagged. A check constraint would not do: it would examine the row that an upsert proposes,
 * which is the amount of a charge. An embedded database has one gateway, whose balance is always
 * current.
 */
async function refuseOverdrafts(database: Kysely<unknown>, kind: StorageKind): Promise<void> {
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
}
