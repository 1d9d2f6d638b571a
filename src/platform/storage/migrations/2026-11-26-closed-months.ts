import { sql } from "kysely";
import { createTable, type TableDefinition } from "../create-table.ts";
import type { Migration } from "../storage.ts";

const tables: readonly TableDefinition[] = [
  // Transfers of closed months, numbered within the month that they were closed with.
  {
    name: "closed_transfers",
    clustered: true,
    columns: {
      id: "text not null primary key",
      debit_account: "text not null",
      credit_account: "text not null",
      amount_nano: "integer not null check (amount_nano > 0)",
      kind: "text not null",
      reference: "text",
      created_at_ms: "integer not null",
      month: "text not null",
      seq: "integer not null",
      mac: "text not null",
    },
    constraints: ["unique (month, seq)"],
  },
  // Each account's balance before a closed month, its movements in the month, and its balance after
  // it.
  {
    name: "account_statements",
    clustered: true,
    columns: {
      account: "text not null",
      month: "text not null",
      opening_nano: "integer not null",
      debit_nano: "integer not null",
      credit_nano: "integer not null",
      closing_nano: "integer not null",
      transfers: "integer not null",
    },
    constraints: ["primary key (account, month)"],
  },
  // Keyed hashes over the closed transfers of a month: one for each batch that was moved, and a
  // last one over the statements. Each covers the previous one.
  {
    name: "closed_links",
    clustered: true,
    columns: {
      month: "text not null",
      part: "integer not null",
      kind: "text not null",
      first_seq: "integer not null",
      last_seq: "integer not null",
      hash: "text not null",
    },
    constraints: ["primary key (month, part)"],
  },
];

/** The condition of the indexes of live transfers, which leave charges out. */
const isNoCharge = "kind <> 'charge' and kind <> 'uncollected'";
const indexes = [
  `create index closed_transfers_by_debit on closed_transfers (debit_account, created_at_ms, id) where ${isNoCharge}`,
  `create index closed_transfers_by_credit on closed_transfers (credit_account, created_at_ms, id) where ${isNoCharge}`,
  "create index account_statements_by_month on account_statements (month, account)",
];

/**
 * Refuses a transfer with the id of a closed one, as the primary key refuses that of a live one.
 */
const refusal = {
  // Fails with the same error as the primary key. Charges are not checked: each is committed by the
  // one process that made it, which does not repeat it a month later, and looking for each would
  // take a fifth of a commit.
  sqlite: [
    `create trigger transfers_refuse_closed before insert on transfers
      when new.kind <> 'charge' and new.kind <> 'uncollected'
        and exists (select 1 from closed_transfers where id = new.id) begin
      insert into closed_transfers select * from closed_transfers where id = new.id; end`,
  ],
  // Once for each batch of a commit, and not for each of its rows.
  postgres: [
    `create function refuse_closed_transfer() returns trigger language plpgsql as $$
      begin
        if exists (select 1 from added inner join closed_transfers using (id)) then
          raise exception 'a transfer of this id is closed' using errcode = 'unique_violation';
        end if;
        return null;
      end $$`,
    `create trigger transfers_refuse_closed after insert on transfers referencing new table as added
      for each statement execute function refuse_closed_transfer()`,
  ],
};

/** Keeps transfers of closed months apart, with statements of accounts and a chain over both. */
export const closedMonths: Migration = {
  name: "2026-11-26-closed-months additive to 2026-11-23-first-schema",
  async up(database, kind) {
    for (const table of tables) await createTable(database, kind, table);
    for (const statement of [...indexes, ...refusal[kind]])
      await sql.raw(statement).execute(database);
  },
};

/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

/** Returns whether a database has the tables of closed months. One of an older release has none. */
export async function hasClosedMonths(query: Query): Promise<boolean> {
  const found = await query(
    `select name from kysely_migration where name = '${closedMonths.name}'`,
  );
  return found.length > 0;
}

/** Returns the SQL source of all transfers, live and closed. */
export async function allTransfersSql(query: Query): Promise<string> {
  const columns = "id, debit_account, credit_account, amount_nano, kind, reference, created_at_ms";
  return (await hasClosedMonths(query))
    ? `(select ${columns} from transfers union all select ${columns} from closed_transfers)`
    : "transfers";
}
