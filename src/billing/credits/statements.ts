import { type Kysely, sql } from "kysely";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import { transferColumns } from "../ledger/closed/closed-books.ts";
import type { LedgerTables } from "../ledger/ledger-store.ts";
import { bucketAccount, type Bucket, type TransferKind } from "../ledger/transfer.ts";

/** A line of a statement. Amounts are nano-USD, negative where credits left. */
export interface StatementEntry {
  /** The id of the transfer; for charges `chg_` with the workspace and the day. */
  id: string;
  atMs: number;
  kind: Exclude<TransferKind, "charge" | "uncollected"> | "charges";
  /** Null for charges, which may have been paid from both buckets. */
  bucket: Bucket | null;
  amountNano: bigint;
  balanceNano: bigint;
  reference: string | null;
  /** The number of requests that were charged. */
  requests: number | null;
}

/**
 * The end of a page of a statement: the next lines are older, and this is the balance after the
 * first of them.
 */
export interface StatementCursor {
  atMs: number;
  id: string;
  balanceNano: bigint;
}

type Line = Omit<StatementEntry, "balanceNano">;

/** Returns whether a line is older than the cursor. Lines of the same moment are ordered by id. */
const isOlder = (line: Line, { atMs, id }: StatementCursor): boolean =>
  line.atMs < atMs || (line.atMs === atMs && line.id < id);

const newestFirst = (one: Line, other: Line): number =>
  other.atMs - one.atMs || (one.id < other.id ? 1 : -1);

/** Reads what moved the balance of workspaces. */
export class Statements {
  constructor(private readonly options: { database: Kysely<LedgerTables>; commits: CommitQueue }) {}

  /**
   * Returns the newest lines, or those older than the cursor: every movement of the workspace's
   * credits, with the charges of a UTC day as one line at its end. The sum from the oldest line on
   * is the balance.
   */
  async page(
    workspaceId: string,
    { before, limit }: { before: StatementCursor | undefined; limit: number },
  ): Promise<StatementEntry[]> {
    if (this.options.commits.pendingCount > 0) await this.options.commits.flush();
    const untilMs = before?.atMs ?? Number.MAX_SAFE_INTEGER;
    return this.options.database
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (reading) => {
        const [moved, charged, balance] = [
          await movements(reading, { workspaceId, untilMs, limit }),
          await chargesByDay(reading, { workspaceId, untilMs, limit }),
          before?.balanceNano ?? (await balanceOf(reading, workspaceId)),
        ];
        const lines = [...moved, ...charged]
          .filter((line) => before === undefined || isOlder(line, before))
          .sort(newestFirst);
        let balanceNano = balance;
        return lines.slice(0, limit).map((line) => {
          const entry = { ...line, balanceNano };
          balanceNano -= line.amountNano;
          return entry;
        });
      });
  }
}

const buckets = ["monthly", "topup"] as const;

/** The queries that find movements of a workspace: by bucket, by side, in live or closed months. */
const movementPlaces = buckets.flatMap((bucket) =>
  (["debit_account", "credit_account"] as const).flatMap((side) =>
    (["transfers", "closed_transfers"] as const).map((table) => [bucket, side, table] as const),
  ),
);

/**
 * Returns movements. Those of one moment are kept together, even beyond the limit, since the cursor
 * distinguishes them by id.
 */
async function movements(
  reading: Kysely<LedgerTables>,
  { workspaceId, untilMs, limit }: { workspaceId: string; untilMs: number; limit: number },
): Promise<Line[]> {
  const lines: Line[] = [];
  for (const [bucket, side, table] of movementPlaces) {
    const account = bucketAccount(workspaceId, bucket);
    const rows = await reading
      .selectFrom(table)
      .select(transferColumns)
      .where(side, "=", account)
      .where("created_at_ms", "<=", untilMs)
      // The same condition as the partial index, so that charges are never read.
      .where(sql<boolean>`kind <> 'charge' and kind <> 'uncollected'`)
      .orderBy("created_at_ms", "desc")
      .orderBy("id", "desc")
      .limit(limit + sameMomentMax)
      .execute();
    lines.push(
      ...rows.map(
        (row): Line => ({
          id: row.id,
          atMs: row.created_at_ms,
          kind: row.kind as Exclude<StatementEntry["kind"], "charges">,
          bucket,
          amountNano: side === "debit_account" ? -BigInt(row.amount_nano) : BigInt(row.amount_nano),
          reference: row.reference,
          requests: null,
        }),
      ),
    );
  }
  return lines;
}

/**
 * The most movements of one workspace within one millisecond. People and Stripe cause them, not
 * programs.
 */
const sameMomentMax = 20;

async function chargesByDay(
  reading: Kysely<LedgerTables>,
  { workspaceId, untilMs, limit }: { workspaceId: string; untilMs: number; limit: number },
): Promise<Line[]> {
  const day = sql<number>`hour / 24`;
  const untilHour = Math.min(Math.floor(untilMs / hourMs), 2 ** 31);
  const rows = await reading
    .selectFrom("key_spend_hours")
    .select(({ fn }) => [
      day.as("day"),
      fn.sum<number | bigint | string>("spend_nano").as("spend"),
      fn.sum<number | bigint | string>("requests").as("requests"),
    ])
    .where("workspace_id", "=", workspaceId)
    .where("hour", "<=", untilHour)
    .groupBy(day)
    .having(({ fn }) => fn.sum("spend_nano"), ">", 0)
    .orderBy(day, "desc")
    .limit(limit + 1)
    .execute();
  return rows.map(
    (row): Line => ({
      id: `chg_${workspaceId}_${row.day}`,
      atMs: (Number(row.day) + 1) * dayMs - 1,
      kind: "charges",
      bucket: null,
      amountNano: -BigInt(row.spend),
      reference: null,
      requests: Number(row.requests),
    }),
  );
}

async function balanceOf(reading: Kysely<LedgerTables>, workspaceId: string): Promise<bigint> {
  const rows = await reading
    .selectFrom("ledger_accounts")
    .select("balance_nano")
    .where(
      "id",
      "in",
      buckets.map((bucket) => bucketAccount(workspaceId, bucket)),
    )
    .execute();
  return rows.reduce((sum, row) => sum + BigInt(row.balance_nano), 0n);
}
