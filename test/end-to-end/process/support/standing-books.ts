import { expect } from "bun:test";
import { z } from "zod";
import type { SeenCharge } from "./seen-charge.ts";
import type { OpenedStore } from "./stores.ts";

const nano = z.coerce.bigint();
const generationRows = z.array(z.object({ id: z.string(), cost: nano, moved: nano, kinds: nano }));
const accountRows = z.array(z.object({ id: z.string(), balance: nano, moved: nano }));
const spendRows = z.tuple([z.object({ spend: nano, requests: nano })]);

const generationsSql = `
  select g.id, g.cost_nano as cost, coalesce(sum(t.amount_nano), 0) as moved, count(t.id) as kinds
  from generations g left join transfers t on t.reference = g.id and t.kind = 'charge' group by g.id, g.cost_nano`;
const accountsSql = `
  select a.id, a.balance_nano as balance,
    coalesce((select sum(amount_nano) from transfers where credit_account = a.id), 0)
    - coalesce((select sum(amount_nano) from transfers where debit_account = a.id), 0) as moved
  from ledger_accounts a`;
const orphansSql = `
  select t.id from transfers t left join generations g on g.id = t.reference
  where t.kind in ('charge', 'uncollected') and g.id is null`;
const spendSql =
  "select coalesce(sum(spend_nano), 0) as spend, coalesce(sum(requests), 0) as requests from key_spend_hours";

/** What the database of a gateway says that is not serving now. */
export interface StandingBooks {
  /** Charges that stand, by the id of their generation. */
  charges: ReadonlyMap<string, bigint>;
  /** Sum of the accounts that belong to workspaces. */
  balanceNano: bigint;
}

/**
 * Reads the books from outside and checks what has to hold at any moment: every generation is paid for
 * by transfers of exactly its cost, no charge is without its generation, every balance is the sum of its
 * transfers and not negative, all accounts together are zero, and the keys' spend is what was charged.
 */
export async function standingBooks(store: OpenedStore): Promise<StandingBooks> {
  const generations = generationRows.parse(await store.query(generationsSql));
  const accounts = accountRows.parse(await store.query(accountsSql));
  const [{ spend, requests }] = spendRows.parse(await store.query(spendSql));
  const owned = accounts.filter(({ id }) => !id.startsWith("operator:"));
  const total = (values: readonly bigint[]): bigint =>
    values.reduce((sum, value) => sum + value, 0n);

  expect(generations.filter(({ cost, moved }) => cost !== moved)).toEqual([]);
  expect(new Set(generations.map(({ id }) => id)).size).toBe(generations.length);
  expect(await store.query(orphansSql)).toEqual([]);
  expect(accounts.filter(({ balance, moved }) => balance !== moved)).toEqual([]);
  expect(total(accounts.map(({ balance }) => balance))).toBe(0n);
  expect(owned.filter(({ balance }) => balance < 0n)).toEqual([]);
  expect(spend).toBe(total(generations.map(({ cost }) => cost)));
  expect(requests).toBe(BigInt(generations.length));
  return {
    charges: new Map(generations.map(({ id, cost }) => [id, cost])),
    balanceNano: total(owned.map(({ balance }) => balance)),
  };
}

/** Every charge that a client was shown stands, once and as it was shown. */
export function expectToStand(seen: readonly SeenCharge[], { charges }: StandingBooks): void {
  expect(new Set(seen.map(({ generationId }) => generationId)).size).toBe(seen.length);
  expect(
    seen.filter(({ generationId, costNano }) => charges.get(generationId) !== costNano),
  ).toEqual([]);
}
