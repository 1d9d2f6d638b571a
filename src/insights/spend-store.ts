import { type Kysely, type QueryExecutorProvider, sql } from "kysely";
import { dayMs } from "../platform/lib/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { UsageTables } from "./usage-rollup.ts";

/** Whose spend is asked for; whole days (UTC) that overlap the range. */
export interface SpendQuery {
  workspaceId: string;
  scope: "workspace" | "key" | "user" | "model" | "provider";
  /** Id of the key, user, model or provider; null for the workspace. */
  subject: string | null;
  fromMs: number;
  /** Exclusive. */
  toMs: number;
}

const everything = sql<boolean>`1 = 1`;

/** A key's children count as the key, a user's spend is that of the keys that the user made. */
const conditions = {
  workspace: () => everything,
  key: ({ workspaceId, subject }) => sql<boolean>`key_id in (
    select id from llm_keys where workspace_id = ${workspaceId} and (id = ${subject} or parent_key_id = ${subject}))`,
  user: ({ workspaceId, subject }) => sql<boolean>`key_id in (
    select id from llm_keys where workspace_id = ${workspaceId} and creator_user_id = ${subject})`,
  model: ({ subject }) => sql<boolean>`model = ${subject}`,
  provider: ({ subject }) => sql<boolean>`provider = ${subject}`,
} satisfies Record<SpendQuery["scope"], (query: SpendQuery) => typeof everything>;

/** What was charged, from the counters that settlements write. */
export class SpendStore {
  private readonly database: Kysely<UsageTables>;
  private readonly commits: CommitQueue;

  constructor(options: { database: Kysely<UsageTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** In nano-USD; everything that was settled before the question counts, but within a transaction of the caller's what that sees. */
  async spent(query: SpendQuery, reading: QueryExecutorProvider = this.database): Promise<bigint> {
    if (reading === this.database && this.commits.pendingCount > 0) await this.commits.flush();
    const [fromDay, toDay] = [Math.floor(query.fromMs / dayMs), Math.ceil(query.toMs / dayMs)];
    const {
      rows: [row],
    } = await sql<{ cost: number | bigint | string | null }>`
      select cast(sum(cost_nano) as bigint) as cost from usage_days
      where workspace_id = ${query.workspaceId} and day >= ${fromDay} and day < ${toDay}
        and ${conditions[query.scope](query)}`.execute(reading);
    return BigInt(row?.cost ?? 0);
  }
}
