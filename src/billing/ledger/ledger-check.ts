import { hourMs } from "../../platform/kernel/clock.ts";
import {
  allTransfersSql,
  hasClosedMonths,
} from "../../platform/storage/migrations/2026-11-26-closed-months.ts";
import { readUnfolded, type UnfoldedSums } from "../../platform/storage/growths.ts";

/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

const balancesSql = "select id, balance_nano as amount from ledger_accounts";
/**
 * Returns the query of balances that are rebuilt from open transfers and from the last statement of
 * each account.
 */
const movedSql = (
  hasClosed: boolean,
): string => `select id, cast(sum(amount) as text) as amount from (
    select credit_account as id, sum(amount_nano) as amount from transfers group by credit_account
    union all select debit_account, -sum(amount_nano) from transfers group by debit_account
    ${hasClosed ? closingSql : ""}
  ) as moved group by id`;
const closingSql = `union all select account, closing_nano from account_statements as statement
  where month = (select max(month) from account_statements as other where other.account = statement.account)`;
const generationsSql = (
  transfers: string,
): string => `select g.id, g.cost_nano as cost, coalesce(sum(t.amount_nano), 0) as moved
  from generations g left join ${transfers} as t on t.reference = g.id and t.kind = 'charge'
  group by g.id, g.cost_nano having g.cost_nano <> coalesce(sum(t.amount_nano), 0)`;
const spendSql =
  "select workspace_id, hour, sum(spend_nano) as amount from key_spend_hours group by workspace_id, hour";
const chargedSql = (
  transfers: string,
): string => `select debit_account, created_at_ms / ${hourMs} as hour, sum(amount_nano) as amount
  from ${transfers} as charges where kind = 'charge' group by debit_account, created_at_ms / ${hourMs}`;

/** Amounts in nano-USD, by the name of their account or hour. */
type Amounts = Map<string, bigint>;

function add(amounts: Amounts, name: string, amount: unknown): void {
  amounts.set(name, (amounts.get(name) ?? 0n) + BigInt(String(amount ?? 0)));
}

/** Yields the names of both maps, each with both amounts. */
function* compared(
  sums: Amounts,
  rebuilt: Amounts,
): Generator<{ name: string; sum: bigint; rebuilt: bigint }> {
  for (const name of new Set([...sums.keys(), ...rebuilt.keys()]))
    yield { name, sum: sums.get(name) ?? 0n, rebuilt: rebuilt.get(name) ?? 0n };
}

/**
 * Returns the problems of the books, all sums rebuilt from the transfers: balances and spend of
 * keys that differ from them, negative balances, and generation records whose cost differs from
 * their charge. Growth that is committed and not folded yet counts.
 */
export async function checkLedger(query: Query): Promise<string[]> {
  const unfolded = await readUnfolded(query);
  const problems = [
    ...(await checkBalances(query, unfolded)),
    ...(await checkSpend(query, unfolded)),
  ];
  for (const row of await query(generationsSql(await allTransfersSql(query)))) {
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
  for (const row of await query(movedSql(await hasClosedMonths(query))))
    add(moved, String(row["id"]), row["amount"]);
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

/** Compares the hourly spend of each workspace's keys with its charges of that hour. */
async function checkSpend(query: Query, unfolded: UnfoldedSums): Promise<string[]> {
  const spent: Amounts = new Map();
  const charged: Amounts = new Map();
  const nameOf = (workspaceId: string, hour: unknown): string =>
    `${workspaceId} in the hour ${String(hour)}`;
  for (const row of await query(spendSql))
    add(spent, nameOf(String(row["workspace_id"]), row["hour"]), row["amount"]);
  for (const row of unfolded("key_spend_hours"))
    add(spent, nameOf(String(row["workspace_id"]), row["hour"]), row["spend_nano"]);
  for (const row of await query(chargedSql(await allTransfersSql(query)))) {
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
