import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { senderDayBegin, type UsageTables } from "./usage-rollup.ts";

/** Sums over some days of the whole service. */
export interface ServiceSums {
  requests: number;
  errors: number;
  promptTokens: number;
  completionTokens: number;
  costNanoUsd: bigint;
  /** Attempts at providers, and those of them that failed by the provider's own fault. */
  attempts: number;
  failures: number;
}

/** The sums of one day, model or provider. The day is counted from the epoch, in UTC. */
export type ServiceLine<Group extends ServiceGroup> = ServiceSums &
  Record<Group, Group extends "day" ? number : string>;

/** The fields by which the counters of the whole service can be grouped. */
export type ServiceGroup = "day" | "model" | "provider";

/** The usage of one workspace over some days. */
export interface WorkspaceSums {
  workspaceId: string;
  requests: number;
  errors: number;
  costNanoUsd: bigint;
}

/** A model's answers that were delivered to a workspace and could not be charged. */
export interface UncollectedSums {
  workspaceId: string;
  model: string;
  requests: number;
  uncollectedNano: bigint;
}

/** The answers in which a provider passed its output cap, and what was past it. */
export interface PassedCapSums {
  provider: string;
  requests: number;
  tokens: number;
  costNanoUsd: bigint;
}

/** The numbers of workspaces and keys that used the service over some days. */
export interface ActiveSums {
  workspaces: number;
  keys: number;
}

/** Whole days. The end is exclusive. */
export interface DayRange {
  fromDay: number;
  toDay: number;
}

/** Reads the counters of the whole service, for operators. */
export class ServiceUsageStore {
  private readonly database: Kysely<UsageTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<UsageTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** Returns sums by day, model or provider; a range of the primary key. */
  async sumsBy<Group extends ServiceGroup>(
    group: Group,
    { fromDay, toDay }: DayRange,
  ): Promise<ServiceLine<Group>[]> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const { rows } = await sql<SumsRow & Record<"name", string | number>>`
      select ${sql.ref(group)} as name, sum(requests) as requests, sum(errors) as errors, sum(prompt_tokens) as prompt_tokens,
        sum(completion_tokens) as completion_tokens, sum(cost_nano) as cost_nano, sum(attempts) as attempts, sum(failures) as failures
      from ${sql.table("network_days")} where day >= ${fromDay} and day < ${toDay}
      group by ${sql.ref(group)} order by ${sql.ref(group)}`.execute(this.database);
    return rows.map((row) => ({ [group]: row.name, ...sumsOf(row) }) as ServiceLine<Group>);
  }

  /**
   * Returns the usage of each workspace that had any, most expensive first; one range of the
   * primary key for each workspace.
   */
  async workspaces({ fromDay, toDay }: DayRange): Promise<WorkspaceSums[]> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const { rows } = await sql<
      { workspace_id: string } & Pick<SumsRow, "requests" | "errors" | "cost_nano">
    >`
      select used.workspace_id, sum(used.requests) as requests, sum(used.errors) as errors, sum(used.cost_nano) as cost_nano
      from workspaces inner join ${sql.table("usage_days")} as used
        on used.workspace_id = workspaces.id and used.day >= ${fromDay} and used.day < ${toDay}
      group by used.workspace_id order by cost_nano desc, requests desc, used.workspace_id`.execute(
      this.database,
    );
    return rows.map((row) => ({
      workspaceId: row.workspace_id,
      requests: Number(row.requests),
      errors: Number(row.errors),
      costNanoUsd: BigInt(row.cost_nano),
    }));
  }

  /** Returns what could not be charged, largest sums first; a range of the primary key. */
  async uncollected({ fromDay, toDay }: DayRange): Promise<UncollectedSums[]> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const rows = await this.database
      .selectFrom("uncollected_days")
      .select(["workspace_id", "model"])
      .select(({ fn }) => [
        fn.sum<number>("requests").as("requests"),
        fn.sum<number | bigint>("uncollected_nano").as("nano"),
      ])
      .where("day", ">=", fromDay)
      .where("day", "<", toDay)
      .groupBy(["workspace_id", "model"])
      .orderBy("nano", "desc")
      .orderBy("workspace_id")
      .orderBy("model")
      .execute();
    return rows.map((row) => ({
      workspaceId: row.workspace_id,
      model: row.model,
      requests: Number(row.requests),
      uncollectedNano: BigInt(row.nano),
    }));
  }

  /** Returns the providers that passed their output caps, the most expensive first. */
  async passedCaps({ fromDay, toDay }: DayRange): Promise<PassedCapSums[]> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const rows = await this.database
      .selectFrom("passed_cap_days")
      .select("provider")
      .select(({ fn }) => [
        fn.sum<number>("requests").as("requests"),
        fn.sum<number>("tokens").as("tokens"),
        fn.sum<number | bigint>("cost_nano").as("cost_nano"),
      ])
      .where("day", ">=", fromDay)
      .where("day", "<", toDay)
      .groupBy("provider")
      .orderBy("cost_nano", "desc")
      .orderBy("provider")
      .execute();
    return rows.map((row) => ({
      provider: row.provider,
      requests: Number(row.requests),
      tokens: Number(row.tokens),
      costNanoUsd: BigInt(row.cost_nano),
    }));
  }

  /**
   * Returns how many workspaces and keys sent any request; one range of the primary key for each
   * workspace.
   */
  async active({ fromDay, toDay }: DayRange): Promise<ActiveSums> {
    if (this.commits.pendingCount > 0) await this.commits.flush();
    const {
      rows: [row],
    } = await sql<{ workspaces: number; keys: number }>`
      select count(distinct used.workspace_id) as workspaces, count(distinct used.key_id) as keys
      from workspaces inner join ${sql.table("usage_key_days")} as used
        on used.workspace_id = workspaces.id and used.day >= ${fromDay} and used.day < ${toDay}`.execute(
      this.database,
    );
    return { workspaces: Number(row?.workspaces ?? 0), keys: Number(row?.keys ?? 0) };
  }
}

interface SumsRow {
  requests: number;
  errors: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost_nano: number | bigint;
  attempts: number;
  failures: number;
}

const sumsOf = (row: SumsRow): ServiceSums => ({
  requests: Number(row.requests),
  errors: Number(row.errors),
  promptTokens: Number(row.prompt_tokens),
  completionTokens: Number(row.completion_tokens),
  costNanoUsd: BigInt(row.cost_nano),
  attempts: Number(row.attempts),
  failures: Number(row.failures),
});

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
 * The conditions by scope. A key includes the keys that it created; a user's spending is that of
 * the keys that the user created.
 */
const conditions = {
  workspace: () => everything,
  key: ({ workspaceId, subject }) => sql<boolean>`key_id in (
    with keys as (select id from llm_keys where workspace_id = ${workspaceId} and (id = ${subject} or parent_key_id = ${subject}))
    select id from keys union all select id from runs where workspace_id = ${workspaceId}
      and (root_id in (select id from keys) or id = ${subject} or owner_id = ${subject}))`,
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
