import type { Kysely } from "kysely";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { isRunId } from "../../identity/keys/run.ts";
import type { AccountBook } from "../ledger/book/account-book.ts";
import { blockedNano } from "./book-allocations.ts";

/** The columns of runs by which their amounts count in their owners. */
export interface AllocatedTables {
  runs: {
    id: string;
    workspace_id: string;
    owner_id: string;
    limit_nano: number | bigint;
    version: number;
    ended_at_ms: number | null;
    released_at_ms: number | null;
    settled_nano: number | bigint;
    settled_byok_nano: number | bigint;
  };
}

const settled = ["settled_nano", "settled_byok_nano"] as const;

/** What runs count in one owner: spending of those that ended, and the limits of those open. */
export interface AllocatedSums {
  hours: { hour: number; nano: bigint; byokNano: bigint }[];
  allocatedNano: bigint;
}

/**
 * Reads what runs count in the limit of a key or a run. Where that is an ended run itself, all of
 * its limit is blocked.
 */
export async function allocatedIn(
  database: Kysely<AllocatedTables>,
  { id, ownerIds, sinceMs }: { id: string; ownerIds: readonly string[]; sinceMs: number },
): Promise<AllocatedSums> {
  const rows = await database
    .selectFrom("runs")
    .select(["id", "limit_nano", "ended_at_ms", "released_at_ms", ...settled])
    .where((where) =>
      where.or([
        where("id", "=", id),
        where.and([
          where("owner_id", "in", ownerIds),
          where.or([where("released_at_ms", "is", null), where("released_at_ms", ">=", sinceMs)]),
        ]),
      ]),
    )
    .execute();
  const sums: AllocatedSums = { hours: [], allocatedNano: 0n };
  for (const row of rows) {
    if (row.id === id) {
      if (row.ended_at_ms !== null) sums.allocatedNano += blockedNano;
    } else if (row.released_at_ms === null) sums.allocatedNano += BigInt(row.limit_nano);
    else
      sums.hours.push({
        hour: Math.floor(Number(row.released_at_ms) / hourMs),
        nano: BigInt(row.settled_nano),
        byokNano: BigInt(row.settled_byok_nano),
      });
  }
  return sums;
}

/** Returns those of some allocations, named by run and version, that the database has. */
export async function committedAllocations(
  database: Kysely<AllocatedTables>,
  ids: readonly string[],
): Promise<string[]> {
  const wanted = ids.map((id) => {
    const [runId = "", version = "1"] = id.split(".");
    return { id, runId, version: Number(version) };
  });
  const rows = await database
    .selectFrom("runs")
    .select(["id", "version"])
    .where(
      "id",
      "in",
      wanted.map(({ runId }) => runId),
    )
    .execute();
  const versions = new Map(rows.map((row) => [row.id, Number(row.version)]));
  return wanted
    .filter(({ runId, version }) => (versions.get(runId) ?? 0) >= version)
    .map(({ id }) => id);
}

/**
 * Loads what runs count in their owners into a book, for all workspaces or for one. Runs that were
 * released before the longest window count in the totals alone.
 */
export async function loadAllocated(
  database: Kysely<AllocatedTables>,
  {
    book,
    nowMs,
    parents,
    workspaceId,
  }: {
    book: AccountBook;
    nowMs: number;
    parents: ReadonlyMap<string, string>;
    workspaceId?: string | undefined;
  },
): Promise<void> {
  const ownersOf = (id: string): string[] => [id, parents.get(id)].flatMap((each) => each ?? []);
  const settle = (ownerId: string, atMs: number, [nano, byokNano]: readonly bigint[]): void => {
    for (const id of ownersOf(ownerId)) {
      book.key(id).spend.add(atMs, nano ?? 0n);
      if (byokNano) book.byokSpend(id).add(atMs, byokNano);
    }
  };
  const windowMs = nowMs - 31 * dayMs;
  let old = database
    .selectFrom("runs")
    .select(({ fn }) => [
      "owner_id",
      ...settled.map((column) => fn.sum<number | bigint | string>(column).as(column)),
    ])
    .where("released_at_ms", "<", windowMs)
    .groupBy("owner_id");
  let recent = database
    .selectFrom("runs")
    .select(["id", "owner_id", "limit_nano", "ended_at_ms", "released_at_ms", ...settled])
    .where((where) =>
      where.or([where("released_at_ms", "is", null), where("released_at_ms", ">=", windowMs)]),
    );
  if (workspaceId !== undefined) {
    old = old.where("workspace_id", "=", workspaceId);
    recent = recent.where("workspace_id", "=", workspaceId);
  }
  // The totals of runs that have runs in them are not read any more.
  for (const row of await old.execute())
    if (!isRunId(row.owner_id))
      settle(
        row.owner_id,
        0,
        settled.map((column) => BigInt(row[column])),
      );
  for (const row of await recent.orderBy("released_at_ms").execute()) {
    if (row.ended_at_ms !== null) book.key(row.id).allocatedNano += blockedNano;
    if (row.released_at_ms !== null)
      settle(
        row.owner_id,
        row.released_at_ms,
        settled.map((column) => BigInt(row[column])),
      );
    else
      for (const id of ownersOf(row.owner_id)) book.key(id).allocatedNano += BigInt(row.limit_nano);
  }
}
