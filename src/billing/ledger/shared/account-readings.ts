import type { Kysely } from "kysely";
import type { SpentBy } from "../../budgets/budget-watch.ts";
import { readCounter, type Budget } from "../../budgets/budget.ts";
import { dayMs, hourMs } from "../../../platform/kernel/clock.ts";
import { isRunId } from "../../../identity/keys/run.ts";
import {
  allocatedIn,
  type AllocatedTables,
  committedAllocations,
} from "../../allocations/allocated-rows.ts";
import { type LedgerTables, transferRowsOf } from "../ledger-store.ts";
import { monthOf, startOfMonthMs } from "../month.ts";
import { bucketAccount, chargeTransferIds } from "../transfer.ts";
import { withTables } from "../../../platform/storage/with-tables.ts";

/** The hours that the longest window of a key's limit covers. */
const hoursBack = 30 * 24 + 1;

/** The tables that readings query. */
export type ReadingTables = LedgerTables &
  AllocatedTables & {
    llm_keys: { id: string; parent_key_id: string | null };
  };

/** A charge, or a hold that may be charged, which is not known to be committed. */
export interface OpenCharge {
  /** The id of the hold, or of the transfer that takes credits back. */
  id: string;
  /** The amounts that the buckets pay, both of them 0 for a hold. */
  monthlyNano: bigint;
  topupNano: bigint;
}

/** The balances of a workspace's buckets in the database. */
export interface Balances {
  monthlyNano: bigint;
  topupNano: bigint;
}

/** The state of a workspace and of keys in one snapshot of the database. */
export interface AccountReading extends Balances {
  freshMonth: string;
  freshNano: bigint;
  /**
   * The ids of the charges that the snapshot includes, and of the holds whose charges it includes.
   */
  included: string[];
  /**
   * The hourly spend of each key together with its children: fields of the shared ledger, each
   * followed by its amount.
   */
  keys: { id: string; hours: string[] }[];
}

/** Returns the id of the transfer that exists exactly if a charge is committed. */
export const decidingTransferOf = ({ id, monthlyNano }: OpenCharge): string => {
  const [monthly = id, topup = id] = id.startsWith("txn_") ? [] : chargeTransferIds(id);
  return monthlyNano > 0n ? monthly : topup;
};

/**
 * Returns the ids of transfers, one of which exists once a charge is committed. A hold does not say
 * yet which bucket pays.
 */
function decidingTransfersOf(charge: OpenCharge): string[] {
  const { id, monthlyNano, topupNano } = charge;
  if (id.startsWith("txn_") || monthlyNano > 0n || topupNano > 0n)
    return [decidingTransferOf(charge)];
  return chargeTransferIds(id).slice(0, 2);
}

/** Reads the figures that the shared ledger is filled with. */
export class AccountReadings {
  private readonly spentBy: SpentBy | undefined;

  constructor(
    private readonly database: Kysely<ReadingTables>,
    spentBy?: SpentBy,
  ) {
    this.spentBy = spentBy;
  }

  /**
   * Reads the sums that budgets limit, then asks for the charges of that time and returns which of
   * them the sums include: those in the same snapshot of the database.
   */
  readSums(
    workspaceId: string,
    {
      counters,
      charges,
    }: { counters: readonly string[]; charges(): Promise<readonly OpenCharge[]> },
  ): Promise<{ sums: bigint[]; included: string[] }> {
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
        return { sums, included: await includedIn(reading, await charges()) };
      });
  }

  /** Reads only a workspace's balances. */
  balances(workspaceId: string): Promise<Balances> {
    return balancesOf(this.database, workspaceId);
  }

  /** Reads a workspace's balances and the spend of some of its keys in one snapshot. */
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
          included: await includedIn(reading, charges),
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

async function includedIn(
  reading: Kysely<ReadingTables>,
  all: readonly OpenCharge[],
): Promise<string[]> {
  const allocations = all.flatMap(({ id }) => (isRunId(id) ? [id] : []));
  const committed =
    allocations.length === 0 ? [] : await committedAllocations(withTables(reading), allocations);
  const charges = all.filter(({ id }) => !isRunId(id));
  return charges.length === 0 ? committed : [...committed, ...(await chargesIn(reading, charges))];
}

async function chargesIn(
  reading: Kysely<ReadingTables>,
  charges: readonly OpenCharge[],
): Promise<string[]> {
  const rows = await transferRowsOf(withTables(reading), charges.flatMap(decidingTransfersOf));
  const found = new Set(rows.map(({ id }) => id));
  return charges
    .filter((charge) => decidingTransfersOf(charge).some((transferId) => found.has(transferId)))
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
  const { hours, allocatedNano } = await allocatedIn(withTables(reading), {
    id,
    ownerIds: ids,
    sinceMs: since * hourMs,
  });
  for (const { hour, nano, byokNano } of hours) {
    sums.set(`s${hour}`, (sums.get(`s${hour}`) ?? 0n) + nano);
    if (byokNano > 0n) sums.set(`b${hour}`, (sums.get(`b${hour}`) ?? 0n) + byokNano);
  }
  if (allocatedNano > 0n) sums.set("a", allocatedNano);
  return { id, hours: [...sums].flatMap(([field, amount]) => [field, String(amount)]) };
}

/** Returns the scope and the subject that the tag of a sum names. */
function subjectOf(tag: string): Pick<Budget, "scope" | "subject"> {
  const [name = "", subject] = tag.split(":");
  return {
    scope: decodeURIComponent(name) as Budget["scope"],
    subject: subject === undefined ? null : decodeURIComponent(subject),
  };
}
