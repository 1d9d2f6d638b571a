import type { Kysely } from "kysely";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { AccountBook, addFresh } from "./account-book.ts";
import type { GrantTables } from "../credits/grants.ts";
import { monthOf, startOfMonthMs } from "./month.ts";
import { bucketAccount, chargeTransferIds, type Bucket } from "./transfer.ts";
import { readUnfolded, type UnfoldedSums } from "../../platform/storage/growths.ts";

/**
 * Tables of the ledger; `migrations/first-schema/ledger.ts` says what they mean. Amounts are
 * nano-USD.
 */
export interface LedgerTables extends GrantTables {
  transfers: {
    id: string;
    debit_account: string;
    credit_account: string;
    amount_nano: number | bigint;
    kind: string;
    reference: string | null;
    created_at_ms: number;
  };
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

/** What a book is filled with. */
interface LoadedPart {
  nowMs: number;
  /** The keys that made others, by the ids of those. */
  parents: ReadonlyMap<string, string>;
  /** Absent means all of them. */
  workspaceId?: string | undefined;
}

/** Reads of the ledger; it is written through the commit queue only. */
export class LedgerStore {
  private readonly database: Kysely<LedgerTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<LedgerTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /**
   * Fills the book that admission looks at, or what it says of one workspace. What a key's children
   * spent is spent by the key as well.
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

  /** Brings a book up to date for one workspace with the changes of every process. */
  async refreshIn(book: AccountBook, part: LoadedPart & { workspaceId: string }): Promise<void> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const fresh = new AccountBook();
    fresh.workspace(part.workspaceId);
    await this.loadInto(fresh, part);
    book.adopt(fresh);
  }

  /** Whether a transfer with this id stands. */
  async transferExists(id: string): Promise<boolean> {
    const row = await this.database
      .selectFrom("transfers")
      .select("id")
      .where("id", "=", id)
      .executeTakeFirst();
    return row !== undefined;
  }

  /**
   * The transfers that a charge consists of: one for each bucket that paid, and what stayed
   * uncollected.
   */
  async transfersOf(
    chargeId: string,
  ): Promise<{ id: string; from: string; amountNano: bigint; atMs: number }[]> {
    const rows = await this.database
      .selectFrom("transfers")
      .selectAll()
      .where("id", "in", chargeTransferIds(chargeId))
      .orderBy("id")
      .execute();
    return rows.map((row) => ({
      id: row.id,
      from: row.debit_account,
      amountNano: BigInt(row.amount_nano),
      atMs: row.created_at_ms,
    }));
  }

  /** Requests that a key settled in the last 30 days. */
  async monthlyRequests(workspaceId: string, nowMs: number): Promise<ReadonlyMap<string, number>> {
    // Free requests do not wait for their rows, and their caller may ask before they are written.
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const sinceHour = Math.floor((nowMs - 30 * dayMs) / hourMs);
    const rows = await this.database
      .selectFrom("key_spend_hours")
      .select(["key_id", (builder) => builder.fn.sum<number | bigint>("requests").as("requests")])
      .where("workspace_id", "=", workspaceId)
      .where("hour", ">=", sinceHour)
      .groupBy("key_id")
      .execute();
    return new Map(rows.map((row) => [row.key_id, Number(row.requests)]));
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

/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

const balancesSql = "select id, balance_nano as amount from ledger_accounts";
const movedSql = `select id, sum(amount) as amount from (
    select credit_account as id, sum(amount_nano) as amount from transfers group by credit_account
    union all select debit_account, -sum(amount_nano) from transfers group by debit_account
  ) as moved group by id`;
const generationsSql = `select g.id, g.cost_nano as cost, coalesce(sum(t.amount_nano), 0) as moved
  from generations g left join transfers t on t.reference = g.id and t.kind = 'charge'
  group by g.id, g.cost_nano having g.cost_nano <> coalesce(sum(t.amount_nano), 0)`;
const spendSql =
  "select workspace_id, hour, sum(spend_nano) as amount from key_spend_hours group by workspace_id, hour";
const chargedSql = `select debit_account, created_at_ms / ${hourMs} as hour, sum(amount_nano) as amount
  from transfers where kind = 'charge' group by debit_account, created_at_ms / ${hourMs}`;

/** Amounts by what they are about. */
type Amounts = Map<string, bigint>;

function add(amounts: Amounts, name: string, amount: unknown): void {
  amounts.set(name, (amounts.get(name) ?? 0n) + BigInt(String(amount ?? 0)));
}

/** Names of one map or the other, each with both amounts. */
function* compared(
  sums: Amounts,
  rebuilt: Amounts,
): Generator<{ name: string; sum: bigint; rebuilt: bigint }> {
  for (const name of new Set([...sums.keys(), ...rebuilt.keys()]))
    yield { name, sum: sums.get(name) ?? 0n, rebuilt: rebuilt.get(name) ?? 0n };
}

/**
 * What is wrong with the books, all sums rebuilt from the transfers: balances and spend of keys
 * that differ from them, balances that are negative, records that were not paid for. What is
 * committed and not folded yet counts.
 */
export async function checkLedger(query: Query): Promise<string[]> {
  const unfolded = await readUnfolded(query);
  const problems = [
    ...(await checkBalances(query, unfolded)),
    ...(await checkSpend(query, unfolded)),
  ];
  for (const row of await query(generationsSql)) {
    problems.push(
      `ledger: the record ${String(row["id"])} costs ${String(row["cost"])}, its charge is ${String(row["moved"])}`,
    );
  }
  return problems;
}

async function checkBalances(query: Query, unfolded: UnfoldedSums): Promise<string[]> {
  const problems: string[] = [];
  const balances: Amounts = new Map();
  const moved: Amounts = new Map();
  for (const row of await query(balancesSql)) add(balances, String(row["id"]), row["amount"]);
  for (const row of unfolded("ledger_accounts"))
    add(balances, String(row["id"]), row["balance_nano"]);
  for (const row of await query(movedSql)) add(moved, String(row["id"]), row["amount"]);
  let total = 0n;
  for (const { name, sum, rebuilt } of compared(balances, moved)) {
    total += sum;
    if (sum !== rebuilt)
      problems.push(`ledger: the balance of ${name} is ${sum}, its transfers add up to ${rebuilt}`);
    if (sum < 0n && !name.startsWith("operator:"))
      problems.push(`ledger: the balance of ${name} is negative (${sum})`);
  }
  if (total !== 0n) problems.push(`ledger: all accounts together are ${total} and not 0`);
  return problems;
}

/** What the keys of each workspace spent in an hour is what was charged to it in that hour. */
async function checkSpend(query: Query, unfolded: UnfoldedSums): Promise<string[]> {
  const spent: Amounts = new Map();
  const charged: Amounts = new Map();
  const nameOf = (workspaceId: string, hour: unknown): string =>
    `${workspaceId} in the hour ${String(hour)}`;
  for (const row of await query(spendSql))
    add(spent, nameOf(String(row["workspace_id"]), row["hour"]), row["amount"]);
  for (const row of unfolded("key_spend_hours"))
    add(spent, nameOf(String(row["workspace_id"]), row["hour"]), row["spend_nano"]);
  for (const row of await query(chargedSql)) {
    const account = String(row["debit_account"]);
    add(charged, nameOf(account.slice(0, account.lastIndexOf(":")), row["hour"]), row["amount"]);
  }
  return [...compared(spent, charged)]
    .filter(({ sum, rebuilt }) => sum !== rebuilt)
    .map(
      ({ name, sum, rebuilt }) =>
        `ledger: the keys of ${name} spent ${sum}, its charges add up to ${rebuilt}`,
    );
}
