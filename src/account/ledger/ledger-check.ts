/** Reads rows from a database of either engine. */
type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

const balancesSql = `select a.id, a.balance_nano as balance,
    coalesce((select sum(amount_nano) from transfers where credit_account = a.id), 0)
    - coalesce((select sum(amount_nano) from transfers where debit_account = a.id), 0) as moved
  from ledger_accounts a`;
const generationsSql = `select g.id, g.cost_nano as cost, coalesce(sum(t.amount_nano), 0) as moved
  from generations g left join transfers t on t.reference = g.id and t.kind = 'charge'
  group by g.id, g.cost_nano having g.cost_nano <> coalesce(sum(t.amount_nano), 0)`;

/** What is wrong with the books: balances that are no sum of their transfers or negative, records that were not paid for. */
export async function checkLedger(query: Query): Promise<string[]> {
  const problems: string[] = [];
  let total = 0n;
  for (const row of await query(balancesSql)) {
    const [id, balance, moved] = [
      String(row["id"]),
      BigInt(String(row["balance"])),
      BigInt(String(row["moved"])),
    ];
    total += balance;
    if (balance !== moved)
      problems.push(`ledger: the balance of ${id} is ${balance}, its transfers add up to ${moved}`);
    if (balance < 0n && !id.startsWith("operator:"))
      problems.push(`ledger: the balance of ${id} is negative (${balance})`);
  }
  if (total !== 0n) problems.push(`ledger: all accounts together are ${total} and not 0`);
  for (const row of await query(generationsSql)) {
    problems.push(
      `ledger: the record ${String(row["id"])} costs ${String(row["cost"])}, its charge is ${String(row["moved"])}`,
    );
  }
  return problems;
}
