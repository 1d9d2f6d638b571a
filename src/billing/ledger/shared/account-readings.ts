import type { Kysely } from "kysely";
import type { SpentBy } from "../../budgets/budget-watch.ts";
import { budgetScopes, readCounter, type Budget } from "../../budgets/budget.ts";
import { dayMs, hourMs } from "../../../platform/kernel/clock.ts";
import { type LedgerTables, transferRowsOf } from "../ledger-store.ts";
import { monthOf, startOfMonthMs } from "../month.ts";
import { bucketAccount, chargeTransferIds } from "../transfer.ts";

/** Hours that the widest window of a key's limit looks back. */
const hoursBack = 30 * 24 + 1;

/** Tables that are read. */
export type ReadingTables = LedgerTables & {
  llm_keys: { id: string; parent_key_id: string | null };
};

/** What is charged, or only held, and not known to be committed. */
export interface OpenCharge {
  /** Id of the hold, or of the transfer that takes credits back. */
  id: string;
  /** Nothing of either bucket where it is held. */
  monthlyNano: bigint;
  topupNano: bigint;
}

/** What the database says of a workspace's buckets. */
export interface Balances {
  monthlyNano: bigint;
  topupNano: bigint;
}

/** What the database says of a workspace and of keys, all at one moment. */
export interface AccountReading extends Balances {
  freshMonth: string;
  freshNano: bigint;
  /** Charges, and holds whose charge, it has in it already. */
  standing: string[];
  /**
   * Spend by the hour of each key and of those that it made: fields of the shared ledger and their
   * amounts.
   */
  keys: { id: string; hours: string[] }[];
}

/** The transfer that stands once a charge is committed. */
export const fenceOf = ({ id, monthlyNano }: OpenCharge): string => {
  const [monthly = id, topup = id] = id.startsWith("txn_") ? [] : chargeTransferIds(id);
  return monthlyNano > 0n ? monthly : topup;
};

/** The transfers one of which stands once a charge is committed; of a hold, how it is split is open. */
function fencesOf(charge: OpenCharge): string[] {
  const { id, monthlyNano, topupNano } = charge;
  if (id.startsWith("txn_") || monthlyNano > 0n || topupNano > 0n) return [fenceOf(charge)];
  return chargeTransferIds(id).slice(0, 2);
}

/** Readings that the shared ledger is filled from. */
export class AccountReadings {
  private readonly database: Kysely<ReadingTables>;
  private readonly spentBy: SpentBy | undefined;

  constructor(database: Kysely<ReadingTables>, spentBy?: SpentBy) {
    this.database = database;
    this.spentBy = spentBy;
  }

  /**
   * Reads sums that budgets bound, and then which of the charges that are asked for meanwhile are
   * in them: those that stand at the same moment of the database.
   */
  readSums(
    workspaceId: string,
    {
      counters,
      charges,
    }: { counters: readonly string[]; charges(): Promise<readonly OpenCharge[]> },
  ): Promise<{ sums: bigint[]; standing: string[] }> {
    return this.database
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (reading) => {
        const sums: bigint[] = [];
        for (const counter of counters) {
          const { tag, firstDay, endDay } = readCounter(counter);
          const span = { fromMs: firstDay * dayMs, toMs: endDay * dayMs };
          sums.push(
            (await this.spentBy?.({ workspaceId, ...subjectOf(tag), ...span }, reading)) ?? 0n,
          );
        }
        return { sums, standing: await standingOf(reading, await charges()) };
      });
  }

  /** Reads a workspace's balances alone. */
  balances(workspaceId: string): Promise<Balances> {
    return balancesOf(this.database, workspaceId);
  }

  /** Reads a workspace's balances and the spend of some of its keys. */
  read(
    workspaceId: string,
    {
      keyIds,
      charges,
      nowMs,
    }: {
      keyIds: readonly string[];
      charges: readonly OpenCharge[];
      nowMs: number;
    },
  ): Promise<AccountReading> {
    return this.database
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (reading) => {
        const month = monthOf(nowMs);
        const grants = await reading
          .selectFrom("credit_grants")
          .select("amount_nano")
          .where("workspace_id", "=", workspaceId)
          .where("granted_at_ms", ">=", startOfMonthMs(month))
          .where("bucket", "=", "monthly")
          .execute();
        return {
          ...(await balancesOf(reading, workspaceId)),
          freshMonth: month,
          freshNano: grants.reduce((sum, { amount_nano: amount }) => sum + BigInt(amount), 0n),
          standing: await standingOf(reading, charges),
          keys: await Promise.all(keyIds.map((id) => keyHours(reading, { id, nowMs }))),
        };
      });
  }
}

async function balancesOf(reading: Kysely<ReadingTables>, workspaceId: string): Promise<Balances> {
  const accounts = await reading
    .selectFrom("ledger_accounts")
    .selectAll()
    .where("id", "in", [bucketAccount(workspaceId, "monthly"), bucketAccount(workspaceId, "topup")])
    .execute();
  const balance = (bucket: "monthly" | "topup"): bigint =>
    BigInt(accounts.find(({ id }) => id === bucketAccount(workspaceId, bucket))?.balance_nano ?? 0);
  return { monthlyNano: balance("monthly"), topupNano: balance("topup") };
}

async function standingOf(
  reading: Kysely<ReadingTables>,
  charges: readonly OpenCharge[],
): Promise<string[]> {
  if (charges.length === 0) return [];
  const rows = await transferRowsOf(reading.withTables(), charges.flatMap(fencesOf));
  const found = new Set(rows.map(({ id }) => id));
  return charges
    .filter((charge) => fencesOf(charge).some((fence) => found.has(fence)))
    .map(({ id }) => id);
}

async function keyHours(
  reading: Kysely<ReadingTables>,
  { id, nowMs }: { id: string; nowMs: number },
): Promise<AccountReading["keys"][number]> {
  const children = await reading
    .selectFrom("llm_keys")
    .select("id")
    .where("parent_key_id", "=", id)
    .execute();
  const ids = [id, ...children.map((child) => child.id)];
  const since = Math.floor(nowMs / hourMs) - hoursBack;
  const sums = new Map<string, bigint>();
  const spends = await reading
    .selectFrom("key_spend_hours")
    .select(["hour", "spend_nano"])
    .where("key_id", "in", ids)
    .where("hour", ">=", since)
    .execute();
  const byoks = await reading
    .selectFrom("key_byok_hours")
    .select(["hour", "spend_nano"])
    .where("key_id", "in", ids)
    .where("hour", ">=", since)
    .execute();
  for (const [prefix, rows] of [
    ["s", spends],
    ["b", byoks],
  ] as const) {
    for (const { hour, spend_nano: amount } of rows)
      sums.set(`${prefix}${hour}`, (sums.get(`${prefix}${hour}`) ?? 0n) + BigInt(amount));
  }
  return { id, hours: [...sums].flatMap(([field, amount]) => [field, String(amount)]) };
}

/** What the tag of a sum is about. */
function subjectOf(tag: string): Pick<Budget, "scope" | "subject"> {
  const [name, subject] = tag.split(":");
  const scope = budgetScopes.find((each) => each === name) ?? "workspace";
  return { scope, subject: subject === undefined ? null : decodeURIComponent(subject) };
}
