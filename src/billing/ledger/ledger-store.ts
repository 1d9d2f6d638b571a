import type { Kysely } from "kysely";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { AccountBook, addFresh } from "./book/account-book.ts";
import { type AllocatedTables, loadAllocated } from "../allocations/allocated-rows.ts";
import { type ClosedTables, transferColumns, type TransferRow } from "./closed/closed-books.ts";
import type { GrantTables } from "../credits/grant-store.ts";
import { monthOf, startOfMonthMs } from "./month.ts";
import { bucketAccount, chargeTransferIds, type Bucket } from "./transfer.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/**
 * The tables of the ledger, which `migrations/first-schema/ledger.ts` describes. Amounts are
 * nano-USD.
 */
export interface LedgerTables extends GrantTables, ClosedTables, AllocatedTables {
  transfers: TransferRow;
  ledger_accounts: { id: string; balance_nano: number | bigint };
  key_spend_hours: {
    key_id: string;
    workspace_id: string;
    hour: number;
    spend_nano: number | bigint;
    requests: number;
  };
  key_byok_hours: { key_id: string; hour: number; spend_nano: number | bigint };
}

/** The tables that tell whose spend the hours of a key count towards. */
type OwnerTables = Pick<LedgerTables, "key_spend_hours"> & {
  runs: { id: string; root_id: string };
  llm_keys: { id: string; parent_key_id: string | null };
};

/** The part of the ledger that is loaded into a book. */
interface LoadedPart {
  nowMs: number;
  /** The parents of keys: the id of each child, and that of its parent. */
  parents: ReadonlyMap<string, string>;
  /** The workspace to load; absent means all. */
  workspaceId?: string | undefined;
}

/** Reads the ledger from the database. The ledger is only written through the commit queue. */
export class LedgerStore {
  private readonly database: Kysely<LedgerTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<LedgerTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /**
   * Loads balances and spend into a book, for all workspaces or for one. The spend of child keys
   * counts for their parent as well.
   */
  async loadInto(book: AccountBook, { nowMs, parents, workspaceId }: LoadedPart): Promise<void> {
    let accounts = this.database.selectFrom("ledger_accounts").selectAll();
    if (workspaceId !== undefined) {
      accounts = accounts.where("id", "in", [
        bucketAccount(workspaceId, "monthly"),
        bucketAccount(workspaceId, "topup"),
      ]);
    }
    for (const row of await accounts.execute()) {
      const separator = row.id.lastIndexOf(":");
      const [owner, bucket] = [row.id.slice(0, separator), row.id.slice(separator + 1) as Bucket];
      if (owner === "operator") continue;
      const account = book.workspace(owner);
      if (bucket === "monthly") account.monthlyNano = BigInt(row.balance_nano);
      else account.topupNano = BigInt(row.balance_nano);
    }
    await this.loadFresh(book, { nowMs, workspaceId });
    await this.loadSpend(book, { nowMs, parents, workspaceId });
    await loadAllocated(withTables(this.database), { book, nowMs, parents, workspaceId });
    let byok = this.database.selectFrom("key_byok_hours").selectAll();
    if (workspaceId !== undefined) {
      const keys = this.database
        .selectFrom("key_spend_hours")
        .select("key_id")
        .where("workspace_id", "=", workspaceId);
      byok = byok.where("key_id", "in", keys);
    }
    for (const row of await byok.orderBy("hour").execute()) {
      for (const keyId of [row.key_id, parents.get(row.key_id)]) {
        if (keyId !== undefined)
          book.byokSpend(keyId).add(row.hour * hourMs, BigInt(row.spend_nano));
      }
    }
  }

  /** Updates a book for one workspace with the changes of all processes. */
  async refreshIn(book: AccountBook, part: LoadedPart & { workspaceId: string }): Promise<void> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const fresh = new AccountBook();
    fresh.workspace(part.workspaceId);
    await this.loadInto(fresh, part);
    book.adopt(fresh);
  }

  /** Returns whether a transfer with this id exists. */
  async transferExists(id: string): Promise<boolean> {
    return (await transferRowsOf(this.database, [id])).length > 0;
  }

  /**
   * Returns the transfers of a charge: one for each bucket that paid, and one for the uncollected
   * amount.
   */
  async transfersOf(
    chargeId: string,
  ): Promise<{ id: string; from: string; amountNano: bigint; atMs: number }[]> {
    const rows = await transferRowsOf(this.database, chargeTransferIds(chargeId));
    return rows.map((row) => ({
      id: row.id,
      from: row.debit_account,
      amountNano: BigInt(row.amount_nano),
      atMs: row.created_at_ms,
    }));
  }

  /**
   * Returns how many requests each key of a workspace settled in the last 30 days, with those of its
   * runs and of the keys that it created, as their spend counts.
   */
  async monthlyRequests(workspaceId: string, nowMs: number): Promise<ReadonlyMap<string, number>> {
    // Free requests do not wait for their commit, and their caller may ask before it.
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const sinceHour = Math.floor((nowMs - 30 * dayMs) / hourMs);
    const rows = await withTables<OwnerTables>(this.database)
      .selectFrom("key_spend_hours as spend")
      .leftJoin("runs", "runs.id", "spend.key_id")
      .leftJoin("llm_keys as key", (join) =>
        join.on(({ eb, fn }) => eb("key.id", "=", fn.coalesce("runs.root_id", "spend.key_id"))),
      )
      .select(["key.id", "key.parent_key_id as parentId"])
      .select(({ fn }) => fn.sum<number | bigint>("spend.requests").as("requests"))
      .where("spend.workspace_id", "=", workspaceId)
      .where("spend.hour", ">=", sinceHour)
      .groupBy(["key.id", "key.parent_key_id"])
      .execute();
    const requests = new Map<string, number>();
    for (const row of rows)
      for (const id of [row.id, row.parentId])
        if (id !== null) requests.set(id, (requests.get(id) ?? 0) + Number(row.requests));
    return requests;
  }

  private async loadFresh(
    book: AccountBook,
    { nowMs, workspaceId }: Pick<LoadedPart, "nowMs" | "workspaceId">,
  ): Promise<void> {
    const month = monthOf(nowMs);
    let query = this.database
      .selectFrom("credit_grants")
      .select(["workspace_id", "amount_nano"])
      .where("granted_at_ms", ">=", startOfMonthMs(month))
      .where("bucket", "=", "monthly");
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.execute();
    for (const row of rows)
      addFresh(book.workspace(row.workspace_id), { month, amountNano: BigInt(row.amount_nano) });
  }

  private async loadSpend(
    book: AccountBook,
    { nowMs, parents, workspaceId }: LoadedPart,
  ): Promise<void> {
    const today = Math.floor(nowMs / dayMs);
    let query = this.database.selectFrom("key_spend_hours").selectAll();
    if (workspaceId !== undefined) query = query.where("workspace_id", "=", workspaceId);
    const rows = await query.orderBy("hour").execute();
    for (const row of rows) {
      const spendNano = BigInt(row.spend_nano);
      book.key(row.key_id).spend.add(row.hour * hourMs, spendNano);
      const parentId = parents.get(row.key_id);
      if (parentId !== undefined) book.key(parentId).spend.add(row.hour * hourMs, spendNano);
      const account = book.workspace(row.workspace_id);
      account.usedNano += spendNano;
      if (Math.floor((row.hour * hourMs) / dayMs) !== today) continue;
      account.day = today;
      account.dayNano += spendNano;
    }
  }
}

/** Returns the transfers with these ids, open and closed, in the order of their ids. */
export const transferRowsOf = (
  database: Pick<Kysely<LedgerTables>, "selectFrom">,
  ids: readonly string[],
): Promise<LedgerTables["transfers"][]> =>
  database
    .selectFrom("transfers")
    .select(transferColumns)
    .where("id", "in", ids)
    .unionAll(
      database.selectFrom("closed_transfers").select(transferColumns).where("id", "in", ids),
    )
    .orderBy("id")
    .execute();
