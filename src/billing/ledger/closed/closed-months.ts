import { type Kysely, sql } from "kysely";
import { assert } from "../../../platform/kernel/assert.ts";
import { dayMs } from "../../../platform/kernel/clock.ts";
import { lowestId } from "../../../platform/kernel/ids.ts";
import { closedMonths } from "../../../platform/storage/migrations/2026-11-26-closed-months.ts";
import {
  type ClosedTables,
  type ClosingHasher,
  createClosingHasher,
  transferColumns,
  type TransferRow,
} from "./closed-books.ts";
import type { LedgerTables } from "../ledger-store.ts";
import { monthAfter, type Month, monthOf, startOfMonthMs } from "../month.ts";

type StatementRow = ClosedTables["account_statements"];
type Movement = Pick<StatementRow, "transfers"> & { debitNano: bigint; creditNano: bigint };

/** The most transfers that one transaction moves, so that settlements only wait briefly for it. */
const batchRows = 500;

/** Milliseconds for which gateways of two releases may share one database. */
const upgradeMs = 7 * dayMs;

/** The last link of the chain. */
interface Head {
  month: Month;
  part: number;
  kind: "batch" | "statements";
  lastSeq: number;
  hash: string;
}

/** Options of closing months. */
export interface ClosedMonthsOptions {
  database: Kysely<LedgerTables>;
  /** The key from which that of the hashes derives. The database does not contain it. */
  encryptionKey: Uint8Array;
  /** Called after each batch that was moved. */
  onBatch?(month: Month, transfers: number): void;
  /** The most transfers of a batch; 500 by default. */
  batchRows?: number;
}

/**
 * Closes months of the ledger. It moves their transfers to `closed_transfers` in batches, each in
 * one transaction, and writes a statement for each account and a chain of keyed hashes over both.
 * Balances do not change.
 */
export class ClosedMonths {
  private readonly database: Kysely<LedgerTables>;
  private readonly hasher: ClosingHasher;

  constructor(private readonly options: ClosedMonthsOptions) {
    this.database = options.database;
    this.hasher = createClosingHasher(options.encryptionKey);
  }

  /**
   * Returns whether closing may begin: a week after the migration that created the tables of closed
   * months. Until then, the database may have gateways of the previous release, which do not read
   * these tables.
   */
  async mayBegin(nowMs: number): Promise<boolean> {
    const {
      rows: [migrated],
    } = await sql<{ timestamp: string }>`
      select timestamp from kysely_migration where name = ${closedMonths.name}`.execute(
      this.database,
    );
    return migrated !== undefined && nowMs - Date.parse(migrated.timestamp) >= upgradeMs;
  }

  /**
   * Closes all months before the previous one, as of a wall time in milliseconds, oldest first. It
   * continues the work of an earlier run, and stops after a batch once the signal is aborted.
   */
  async closeDue(nowMs: number, signal?: AbortSignal): Promise<void> {
    const endMs = startOfMonthMs(monthOf(startOfMonthMs(monthOf(nowMs)) - 1));
    for (
      let month = await this.firstOpen();
      month !== undefined && startOfMonthMs(month) < endMs;
      month = monthAfter(month)
    ) {
      while (signal?.aborted !== true && (await this.moveBatch(month)));
      if (signal?.aborted === true) return;
      await this.seal(month);
    }
  }

  /**
   * Returns the first month that is not closed: the one whose closing has begun, the one after the
   * last closed month, or the one of the oldest transfer. Returns undefined where there are no
   * transfers.
   */
  private async firstOpen(): Promise<Month | undefined> {
    const head = await lastLink(this.database);
    if (head !== undefined) return head.kind === "batch" ? head.month : monthAfter(head.month);
    const firsts = await Promise.all([
      this.database
        .selectFrom("transfers")
        .select("created_at_ms")
        .orderBy("id")
        .limit(1)
        .execute(),
      this.database
        .selectFrom("transfers")
        .select(({ fn }) => fn.min("created_at_ms").as("created_at_ms"))
        .where(isNoCharge)
        .where("debit_account", ">", "")
        .execute(),
    ]);
    const times = firsts.flat().flatMap(({ created_at_ms: atMs }) => atMs ?? []);
    return times.length === 0 ? undefined : monthOf(Math.min(...times));
  }

  /**
   * Moves a batch of transfers from before the end of a month into the month. Returns false where
   * there are none.
   */
  private async moveBatch(month: Month): Promise<boolean> {
    const moved = await this.database.transaction().execute(async (transaction) => {
      const rows = await this.batchOf(transaction, month);
      if (rows.length === 0) return 0;
      const ids = rows.map(({ id }) => id);
      await this.append(transaction, month, rows);
      const { numDeletedRows } = await transaction
        .deleteFrom("transfers")
        .where("id", "in", ids)
        .executeTakeFirstOrThrow();
      assert(numDeletedRows === BigInt(ids.length), "another gateway moved the same transfers");
      await growStatements(transaction, month, movementsOf(rows));
      return ids.length;
    });
    if (moved > 0) this.options.onBatch?.(month, moved);
    return moved > 0;
  }

  /** Numbers transfers within a month, and writes them with the link that covers them. */
  private async append(
    transaction: Kysely<LedgerTables>,
    month: Month,
    rows: readonly TransferRow[],
  ): Promise<void> {
    const head = await lastLink(transaction);
    const isSame = head?.month === month;
    assert(!isSame || head.kind === "batch", `the month ${month} is closed already`);
    const firstSeq = isSame ? head.lastSeq + 1 : 1;
    const closed = rows.map((row, index) => {
      const placed = { ...row, month, seq: firstSeq + index };
      return { ...placed, mac: this.hasher.transfer(placed) };
    });
    await transaction.insertInto("closed_transfers").values(closed).execute();
    const link = {
      month,
      part: isSame ? head.part + 1 : 0,
      kind: "batch" as const,
      first_seq: firstSeq,
      last_seq: firstSeq + rows.length - 1,
    };
    const macs = closed.map(({ mac }) => mac);
    const hash = this.hasher.batch({ ...link, previous: head?.hash ?? "" }, macs);
    await transaction
      .insertInto("closed_links")
      .values({ ...link, hash })
      .execute();
  }

  /**
   * Returns the next transfers to close. Charges are found by their ids, which begin with the time
   * of their request, and all others by an index that contains their time.
   */
  private async batchOf(database: Kysely<LedgerTables>, month: Month): Promise<TransferRow[]> {
    const endMs = startOfMonthMs(monthAfter(month));
    const due = database
      .selectFrom("transfers")
      .select(transferColumns)
      .where("created_at_ms", "<", endMs)
      .limit(this.options.batchRows ?? batchRows);
    const charges = await due.where("id", "<", lowestId("txn", endMs)).orderBy("id").execute();
    if (charges.length > 0) return charges;
    return due.where(isNoCharge).where("debit_account", ">", "").execute();
  }

  /** Seals a month with a link over its statements. A month without transfers gets no link. */
  private async seal(month: Month): Promise<void> {
    await this.database.transaction().execute(async (transaction) => {
      const head = await lastLink(transaction);
      if (head?.month !== month) return;
      const statements = await transaction
        .selectFrom("account_statements")
        .selectAll()
        .where("month", "=", month)
        .orderBy("account")
        .execute();
      const link = {
        month,
        part: head.part + 1,
        kind: "statements" as const,
        first_seq: 1,
        last_seq: head.lastSeq,
      };
      const hash = this.hasher.statements({ ...link, previous: head.hash }, statements);
      await transaction
        .insertInto("closed_links")
        .values({ ...link, hash })
        .execute();
    });
  }
}

/** The condition of the partial indexes of `transfers`, which begin with an account. */
const isNoCharge = sql<boolean>`kind <> 'charge' and kind <> 'uncollected'`;

async function lastLink(database: Kysely<LedgerTables>): Promise<Head | undefined> {
  const row = await database
    .selectFrom("closed_links")
    .selectAll()
    .orderBy("month", "desc")
    .orderBy("part", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && { ...row, lastSeq: row.last_seq };
}

/** Returns the movements of transfers, by account. */
function movementsOf(rows: readonly TransferRow[]): Map<string, Movement> {
  const movements = new Map<string, Movement>();
  const movementOf = (account: string): Movement => {
    const known = movements.get(account) ?? { transfers: 0, debitNano: 0n, creditNano: 0n };
    movements.set(account, known);
    known.transfers += 1;
    return known;
  };
  for (const row of rows) {
    movementOf(row.debit_account).debitNano += BigInt(row.amount_nano);
    movementOf(row.credit_account).creditNano += BigInt(row.amount_nano);
  }
  return movements;
}

/**
 * Adds movements to the statements of a month. A new statement opens with the closing balance of
 * the account's previous one.
 */
async function growStatements(
  transaction: Kysely<LedgerTables>,
  month: Month,
  movements: ReadonlyMap<string, Movement>,
): Promise<void> {
  const known = await transaction
    .selectFrom("account_statements as statement")
    .selectAll()
    .where("account", "in", [...movements.keys()])
    .where("month", "=", ({ selectFrom }) =>
      selectFrom("account_statements as other")
        .select(({ fn }) => fn.max("other.month").as("month"))
        .whereRef("other.account", "=", "statement.account"),
    )
    .execute();
  const byAccount = new Map(known.map((row) => [row.account, row]));
  const grown = [...movements].map(([account, movement]): StatementRow => {
    const last = byAccount.get(account);
    const own = last?.month === month ? last : undefined;
    const openingNano = BigInt(own?.opening_nano ?? last?.closing_nano ?? 0);
    const debitNano = BigInt(own?.debit_nano ?? 0) + movement.debitNano;
    const creditNano = BigInt(own?.credit_nano ?? 0) + movement.creditNano;
    return {
      account,
      month,
      opening_nano: openingNano,
      debit_nano: debitNano,
      credit_nano: creditNano,
      closing_nano: openingNano + creditNano - debitNano,
      transfers: (own?.transfers ?? 0) + movement.transfers,
    };
  });
  await transaction
    .insertInto("account_statements")
    .values(grown)
    .onConflict((conflict) =>
      conflict.columns(["account", "month"]).doUpdateSet(({ ref }) => ({
        debit_nano: ref("excluded.debit_nano"),
        credit_nano: ref("excluded.credit_nano"),
        closing_nano: ref("excluded.closing_nano"),
        transfers: ref("excluded.transfers"),
      })),
    )
    .execute();
}
