import { expect } from "bun:test";
import type { TestGateway } from "../../../support/gateway.ts";

const isOperator = (account: string): boolean => account.startsWith("operator:");

/** What every account should hold: the sum of its transfers. */
async function transferSums({ app }: TestGateway): Promise<Record<string, bigint>> {
  const sums: Record<string, bigint> = {};
  const rows = await app.storage.database.selectFrom("transfers").selectAll().execute();
  for (const row of rows) {
    const amount = BigInt(row.amount_nano);
    sums[row.debit_account] = (sums[row.debit_account] ?? 0n) - amount;
    sums[row.credit_account] = (sums[row.credit_account] ?? 0n) + amount;
  }
  return sums;
}

/** What the gateway's own book says of a workspace's buckets, to be compared with the transfers. */
function bookedBalances({ app }: TestGateway, accounts: readonly string[]): Record<string, bigint> {
  return Object.fromEntries(
    accounts.map((account) => {
      const separator = account.lastIndexOf(":");
      const { monthlyNano, topupNano } = app.ledger.book.workspace(account.slice(0, separator));
      return [account, account.endsWith(":monthly") ? monthlyNano : topupNano];
    }),
  );
}

/**
 * The invariants that hold whenever nothing is under way: no hold is open, every balance is the sum
 * of its transfers and not negative, all accounts together are zero, what the records cost is what
 * was charged, and no settlement was refused.
 */
export async function expectSoundBooks(gateway: TestGateway): Promise<void> {
  const { app, logLines } = gateway;
  await app.storage.commits.flush();
  const { database } = app.storage;
  const sums = await transferSums(gateway);
  const stored = await database.selectFrom("ledger_accounts").selectAll().execute();
  const owned = Object.keys(sums).filter((account) => !isOperator(account));
  const spent = await database.selectFrom("key_spend_hours").selectAll().execute();
  const generations = await database.selectFrom("generations").select("cost_nano").execute();
  const charges = await database
    .selectFrom("transfers")
    .select("amount_nano")
    .where("kind", "=", "charge")
    .execute();
  const total = (values: readonly (number | bigint)[]): bigint =>
    values.reduce<bigint>((sum, value) => sum + BigInt(value), 0n);

  expect(app.ledger.openHoldCount).toBe(0);
  expect(
    Object.fromEntries(stored.map(({ id, balance_nano }) => [id, BigInt(balance_nano)])),
  ).toEqual(sums);
  expect(bookedBalances(gateway, owned)).toEqual(
    Object.fromEntries(owned.map((account) => [account, sums[account] ?? 0n])),
  );
  expect(total(Object.values(sums))).toBe(0n);
  expect(owned.filter((account) => (sums[account] ?? 0n) < 0n)).toEqual([]);
  expect(total(generations.map((row) => row.cost_nano))).toBe(
    total(charges.map((row) => row.amount_nano)),
  );
  expect(total(spent.map((row) => row.spend_nano))).toBe(
    total(charges.map((row) => row.amount_nano)),
  );
  for (const { key_id: keyId, workspace_id: workspaceId } of spent) {
    expect(app.ledger.book.key(keyId).heldNano).toBe(0n);
    expect(app.ledger.book.workspace(workspaceId).heldNano).toBe(0n);
  }
  expect(
    logLines.filter(
      (line) => line.includes("could not be committed") || line.includes("never settled"),
    ),
  ).toEqual([]);
}
