import { expect } from "bun:test";
import { z } from "zod";
import { readUnfolded, type UnfoldedSums } from "../../../../src/platform/storage/growths.ts";
import type { SeenCharge } from "./seen-charge.ts";
import type { OpenedStore } from "./stores.ts";

const nano = z.coerce.bigint();
const generationRows = z.array(
  z.object({ id: z.string(), status: z.string(), cost: nano, moved: nano, kinds: nano }),
);
const accountRows = z.array(z.object({ id: z.string(), balance: nano, moved: nano }));
const spendRows = z.tuple([z.object({ spend: nano, requests: nano })]);

const generationsSql = `
  select g.id, g.status, g.cost_nano as cost, coalesce(sum(t.amount_nano), 0) as moved, count(t.id) as kinds
  from generations g left join transfers t on t.reference = g.id and t.kind = 'charge'
  group by g.id, g.status, g.cost_nano`;
const accountsSql = `
  select named.id, coalesce(a.balance_nano, 0) as balance,
    coalesce((select sum(amount_nano) from transfers where credit_account = named.id), 0)
    - coalesce((select sum(amount_nano) from transfers where debit_account = named.id), 0) as moved
  from (select id from ledger_accounts union select credit_account from transfers
    union select debit_account from transfers) as named left join ledger_accounts a on a.id = named.id`;
const orphansSql = `
  select t.id from transfers t left join generations g on g.id = t.reference
  where t.kind in ('charge', 'uncollected') and g.id is null`;
const spendSql =
  "select coalesce(sum(spend_nano), 0) as spend, coalesce(sum(requests), 0) as requests from key_spend_hours";

const usageRows = z.tuple([z.object({ cost: nano, tokens: nano })]);
const usageSql = (table: string): string =>
  `select coalesce(sum(cost_nano), 0) as cost, coalesce(sum(prompt_tokens + completion_tokens), 0) as tokens from ${table}`;
const usageTables = ["usage_hours", "usage_days", "usage_key_days", "network_days"] as const;

/** Cost and tokens by table of usage counters, with what commits made grow beyond them. */
async function standingUsage(store: OpenedStore, unfolded: UnfoldedSums) {
  const standing = usageTables.map(async (table) => {
    const [counted] = usageRows.parse(await store.query(usageSql(table)));
    const grown = [...unfolded(table), ...unfolded("usage_growths")];
    return {
      table,
      cost: counted.cost + total(grown, "cost_nano"),
      tokens: counted.tokens + total(grown, "prompt_tokens") + total(grown, "completion_tokens"),
    };
  });
  return Promise.all(standing);
}

/** Sums as they stand: what is folded and what is committed beyond that. */
async function standingSums(store: OpenedStore) {
  for (;;) {
    const unfoldedIds = await unfoldedIdsOf(store);
    const unfolded = await readUnfolded((text) => store.query(text));
    const accounts = accountRows.parse(await store.query(accountsSql));
    const [spent] = spendRows.parse(await store.query(spendSql));
    const [recorded] = usageRows.parse(await store.query(usageSql("generations")));
    const usage = await standingUsage(store, unfolded);
    // An idle gateway may still fold what it committed.
    if (unfoldedIds !== (await unfoldedIdsOf(store))) continue;
    const grown = accounts.map(({ id, balance, moved }) => {
      const own = unfolded("ledger_accounts").filter((row) => row["id"] === id);
      return { id, balance: balance + total(own, "balance_nano"), moved };
    });
    const keys = unfolded("key_spend_hours");
    return {
      recorded,
      usage,
      accounts: grown,
      spend: spent.spend + total(keys, "spend_nano"),
      requests: spent.requests + total(keys, "requests"),
    };
  }
}

const unfoldedIdsOf = async (store: OpenedStore): Promise<string> =>
  JSON.stringify(await store.query("select id from commit_growths order by id"));

const total = (rows: ReturnType<UnfoldedSums>, column: string): bigint =>
  rows.reduce((sum, row) => sum + BigInt(row[column] ?? 0), 0n);

/** What the database of a gateway says that is not serving now. */
export interface StandingBooks {
  /** Charges that stand, by the id of their generation. */
  charges: ReadonlyMap<string, bigint>;
  /** Sum of the accounts that belong to workspaces. */
  balanceNano: bigint;
}

/**
 * Reads the books from outside and checks what has to hold at any moment: every generation is paid
 * for by transfers of exactly its cost, no charge is without its generation, every balance is the
 * sum of its transfers and not negative, all accounts together are zero, the keys' spend is what was
 * charged, and the counters of usage are what the records say.
 */
export async function standingBooks(store: OpenedStore): Promise<StandingBooks> {
  const generations = generationRows.parse(await store.query(generationsSql));
  const { accounts, spend, requests, recorded, usage } = await standingSums(store);
  const owned = accounts.filter(({ id }) => !id.startsWith("operator:"));
  const sumOf = (values: readonly bigint[]): bigint =>
    values.reduce((sum, value) => sum + value, 0n);

  expect(generations.filter(({ cost, moved }) => cost !== moved)).toEqual([]);
  expect(new Set(generations.map(({ id }) => id)).size).toBe(generations.length);
  expect(await store.query(orphansSql)).toEqual([]);
  expect(accounts.filter(({ balance, moved }) => balance !== moved)).toEqual([]);
  expect(sumOf(accounts.map(({ balance }) => balance))).toBe(0n);
  expect(owned.filter(({ balance }) => balance < 0n)).toEqual([]);
  expect(spend).toBe(sumOf(generations.map(({ cost }) => cost)));
  // A failed request is charged to no key.
  const charged = generations.filter(({ status }) => status !== "failed");
  expect(requests).toBe(BigInt(charged.length));
  expect(usage).toEqual(usageTables.map((table) => ({ table, ...recorded })));
  return {
    charges: new Map(generations.map(({ id, cost }) => [id, cost])),
    balanceNano: sumOf(owned.map(({ balance }) => balance)),
  };
}

/** Every charge that a client was shown stands, once and as it was shown. */
export function expectToStand(seen: readonly SeenCharge[], { charges }: StandingBooks): void {
  expect(new Set(seen.map(({ generationId }) => generationId)).size).toBe(seen.length);
  expect(
    seen.filter(({ generationId, costNano }) => charges.get(generationId) !== costNano),
  ).toEqual([]);
}
