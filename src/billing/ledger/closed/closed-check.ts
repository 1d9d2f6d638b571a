import { hasClosedMonths } from "../../../platform/storage/migrations/2026-11-26-closed-months.ts";
import { type Query, type Link, ClosedWalk } from "./closed-walk.ts";

/** The query for transfers that no link covers. */
const outsideSql = `select id from closed_transfers left join (
    select month as named, max(last_seq) as last_seq from closed_links where kind = 'batch' group by month
  ) as covered on named = month where named is null or seq < 1 or seq > last_seq`;

const statementsOutsideSql = `select account, month from account_statements
  where month not in (select month from closed_links)`;

/**
 * Returns the problems of closed months: transfers that were deleted, changed or added outside of
 * the chain; links that do not follow from the previous ones; and statements that do not follow
 * from their transfers. Returns an empty list where there are none.
 */
export async function checkClosedMonths(
  query: Query,
  encryptionKey: Uint8Array,
): Promise<string[]> {
  if (!(await hasClosedMonths(query))) return [];
  const links = (await query("select * from closed_links order by month, part")).map(readLink);
  const problems: string[] = [];
  for (const { id } of await query(outsideSql))
    problems.push(`ledger: the closed transfer ${String(id)} was added beside its month`);
  for (const row of await query(statementsOutsideSql))
    problems.push(
      `ledger: the statement of ${String(row["account"])} for ${String(row["month"])} has no month`,
    );
  return [...problems, ...(await new ClosedWalk(query, encryptionKey).check(links))];
}

const readLink = (row: Record<string, unknown>): Link => ({
  month: String(row["month"]) as Link["month"],
  part: Number(row["part"]),
  kind: String(row["kind"]) as Link["kind"],
  first_seq: Number(row["first_seq"]),
  last_seq: Number(row["last_seq"]),
  hash: String(row["hash"]),
});
