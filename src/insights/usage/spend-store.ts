import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import { dayMs, hourMs } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import { senderDayBegin, type UsageTables } from "./usage-rollup.ts";

/** The subject whose spending is requested, over the whole days (UTC) that overlap the range. */
export interface SpendQuery {
  workspaceId: string;
  scope:
    | "workspace"
    | "key"
    | "user"
    | "model"
    | "provider"
    | "team"
    | "customer"
    | "plan"
    | "window"
    | `tag:${string}`;
  /**
   * The id of the team, key, user, model, provider or customer, or the value of the tag; null for
   * the workspace. A final `*` is the customer, or the value, that spent most.
   */
  subject: string | null;
  fromMs: number;
  /** Exclusive. */
  toMs: number;
}

const everything = sql<boolean>`1 = 1`;

/**
 * The conditions by scope. A key includes the keys that it created, and a run those nested in it at
 * any depth; a user's spending is that of the keys that the user created.
 */
const conditions = {
  workspace: () => everything,
  key: ({ workspaceId, subject }) => sql<boolean>`key_id in (
    with recursive keys as (
      select id from llm_keys where workspace_id = ${workspaceId} and (id = ${subject} or parent_key_id = ${subject})),
    tree(id) as (
      select id from runs where workspace_id = ${workspaceId} and id = ${subject}
      union select runs.id from runs join tree on runs.owner_id = tree.id)
    select id from keys union all select id from tree
    union all select id from runs where workspace_id = ${workspaceId} and root_id in (select id from keys))`,
  user: ({ workspaceId, subject }) => sql<boolean>`key_id in (
    select id from llm_keys where workspace_id = ${workspaceId} and creator_user_id = ${subject}
    union all select id from runs where workspace_id = ${workspaceId} and creator_user_id = ${subject})`,
  model: ({ subject }) => sql<boolean>`model = ${subject}`,
  provider: ({ subject }) => sql<boolean>`provider = ${subject}`,
} satisfies Partial<Record<SpendQuery["scope"], (query: SpendQuery) => typeof everything>>;

/** Returns whether a scope is summed by what requests say of their sender. */
const isSenderScope = (
  scope: SpendQuery["scope"],
): scope is Exclude<SpendQuery["scope"], keyof typeof conditions> =>
  !Object.hasOwn(conditions, scope);

/** Returns the condition of one subject, or of those that begin with what comes before a final `*`. */
function subjectCondition(subject: string | null): typeof everything {
  if (subject === "*") return everything;
  if (subject?.endsWith("@*") !== true) return sql<boolean>`subject = ${subject}`;
  const prefix = subject.slice(0, -1);
  return sql<boolean>`substr(subject, 1, ${sql.lit(prefix.length)}) = ${prefix}`;
}

/** Reads what was charged, from the counters that settlements write. */
export class SpendStore {
  private readonly database: Kysely<UsageTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<UsageTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /**
   * Returns the spending in nano-USD. Everything that was settled before the query counts; within a
   * transaction of the caller, what that sees.
   */
  async spent(query: SpendQuery, reading: QueryExecutorProvider = this.database): Promise<bigint> {
    if (reading === this.database && this.commits.pendingCount > 0) await this.commits.flush();
    const { scope } = query;
    if (isSenderScope(scope)) {
      const sums = [...(await this.spentByEach(query, reading)).values()];
      return sums.reduce((most, each) => (each > most ? each : most), 0n);
    }
    const [fromDay, toDay] = [Math.floor(query.fromMs / dayMs), Math.ceil(query.toMs / dayMs)];
    const {
      rows: [row],
    } = await sql<{ cost: number | bigint | string | null }>`
      select cast(sum(cost_nano) as bigint) as cost from ${sql.table("usage_days")}
      where workspace_id = ${query.workspaceId} and day >= ${fromDay} and day < ${toDay}
        and ${conditions[scope](query)}`.execute(reading);
    return BigInt(row?.cost ?? 0);
  }

  /**
   * Returns the spending of each customer, or of each value of a tag, in nano-USD; of one where the
   * query names it.
   */
  async spentByEach(
    { workspaceId, scope, subject, fromMs, toMs }: SpendQuery,
    reading: QueryExecutorProvider = this.database,
  ): Promise<ReadonlyMap<string, bigint>> {
    if (reading === this.database && this.commits.pendingCount > 0) await this.commits.flush();
    const [fromDay, toDay] = [Math.floor(fromMs / dayMs), Math.ceil(toMs / dayMs)];
    if (scope === "plan")
      return this.pricesByEach({ workspaceId, subject, fromDay, toDay }, reading);
    const { rows } = await sql<{ subject: string; cost: number | bigint }>`
      select subject, cast(sum(cost_nano) as bigint) as cost from ${sql.table("sender_days")}
      where workspace_id = ${workspaceId} and scope = ${scope} and day >= ${fromDay} and day < ${toDay}
        and ${subjectCondition(subject)}
      group by subject`.execute(reading);
    return new Map(rows.map((row) => [row.subject, BigInt(row.cost)]));
  }

  /**
   * Begins a sum of a subject with what its counters of whole hours say since a wall time, less what
   * the sum has already. Both are read at once, so that no charge counts twice or not at all.
   */
  async beginSum(
    { workspaceId, scope, subject }: Pick<SpendQuery, "workspaceId" | "scope" | "subject">,
    {
      fromMs,
      nowMs,
      sum,
    }: { fromMs: number; nowMs: number; sum: { scope: string; subject: string } },
  ): Promise<void> {
    if (isSenderScope(scope)) return;
    await this.commits.flush();
    const query = { workspaceId, scope, subject, fromMs, toMs: nowMs };
    const { rows } = await sql<{ cost: number | bigint | string | null }>`
      select cast(sum(cost_nano) as bigint) as cost from ${sql.table("usage_hours")}
        where workspace_id = ${workspaceId} and hour >= ${Math.ceil(fromMs / hourMs)} and ${conditions[scope](query)}
      union all
      select cast(-sum(cost_nano) as bigint) as cost from ${sql.table("sender_days")}
        where workspace_id = ${workspaceId} and scope = ${sum.scope} and subject = ${sum.subject}`.execute(
      this.database,
    );
    const missing = rows.reduce((total, { cost }) => total + BigInt(cost ?? 0), 0n);
    if (missing === 0n) return;
    const adds = [senderDayBegin({ workspaceId, ...sum, atMs: nowMs, costNano: missing })];
    await this.commits.commit({ inserts: [], adds });
  }

  /** Returns the price of what each customer used, or one of them. */
  private async pricesByEach(
    {
      workspaceId,
      subject,
      fromDay,
      toDay,
    }: { workspaceId: string; subject: string | null; fromDay: number; toDay: number },
    reading: QueryExecutorProvider,
  ): Promise<ReadonlyMap<string, bigint>> {
    const { rows } = await sql<{ customer: string; price: number | bigint }>`
      select customer, cast(sum(price_nano) as bigint) as price from ${sql.table("customer_days")}
      where workspace_id = ${workspaceId} and day >= ${fromDay} and day < ${toDay}
        and ${subject === "*" ? everything : sql<boolean>`customer = ${subject}`}
      group by customer`.execute(reading);
    return new Map(rows.map((row) => [row.customer, BigInt(row.price)]));
  }
}
