import { type Kysely, sql } from "kysely";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { UsageTables } from "./usage-rollup.ts";

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
