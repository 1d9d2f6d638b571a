import type { Kysely } from "kysely";
import { hourMs, type Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue, AddStatement } from "../platform/storage/commit-queue.ts";
import type { GenerationRange } from "./generation-search.ts";
import { errorCatalog, type ErrorCode } from "../platform/kernel/errors.ts";
import { statusOf, matchesRefused } from "./service-requests.ts";

/** The table of refused requests. */
export interface RefusedTables {
  refused_hours: {
    workspace_id: string;
    hour: number;
    key_id: string;
    code: string;
    requests: number;
  };
}

/** Requests of a key that were refused with one code. */
interface RefusedSums {
  keyId: string;
  code: string;
  status: number;
  requests: number;
}

/** The counts of refused requests by workspace, hour, key and code. */
export const refusedHourAdd: AddStatement = {
  name: "refused-hour",
  table: "refused_hours",
  keyColumns: ["workspace_id", "hour", "key_id", "code"],
  sumColumns: ["requests"],
};

const writeEveryMs = 1_000;

const linesMax = 1_000;

/**
 * Returns whether requests that end with a code are counted here: those that a limit, a budget or
 * the balance refused.
 */
const isCounted = (code: ErrorCode): boolean => [402, 429].includes(errorCatalog[code].status);

/**
 * Counts requests with LLM keys that were refused with 402 or 429. They leave no generation record,
 * since refusing is cheap and clients repeat refused requests. Every second the counts are written
 * as one sum for each key and code.
 */
export class RefusedRequests {
  private readonly counted = new Map<
    string,
    { key: [workspaceId: string, hour: number, keyId: string, code: string]; requests: number }
  >();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly options: {
      database: Kysely<RefusedTables>;
      commits: CommitQueue;
      clock: Clock;
      onError(error: unknown): void;
    },
  ) {}

  /** Counts a request that was refused with a code. Other codes are ignored. */
  note({
    workspaceId,
    keyId,
    code,
  }: {
    workspaceId: string;
    keyId: string;
    code: ErrorCode;
  }): void {
    if (!isCounted(code)) return;
    const hour = Math.floor(this.options.clock.nowMs() / hourMs);
    const name = `${workspaceId} ${hour} ${keyId} ${code}`;
    const known = this.counted.get(name);
    if (known === undefined)
      this.counted.set(name, { key: [workspaceId, hour, keyId, code], requests: 1 });
    else known.requests += 1;
    this.timer ??= setTimeout(() => void this.write(), writeEveryMs);
  }

  /** Writes the counts. What the database refuses is not counted. */
  async write(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const adds = [...this.counted.values()].map(({ key, requests }) => ({
      statement: refusedHourAdd,
      key,
      sums: [requests],
    }));
    this.counted.clear();
    if (adds.length > 0)
      await this.options.commits.commit({ inserts: [], adds }).catch(this.options.onError);
  }

  /**
   * Returns what was refused in the hours that a range overlaps, by key and code, most frequent
   * first; nothing under a filter that no refused request can match.
   */
  async sums({ workspaceId, fromMs, toMs, filter }: GenerationRange): Promise<RefusedSums[]> {
    if (!matchesRefused(filter)) return [];
    const { keyIds, errors } = filter;
    const written = this.write();
    // The timer may have handed counts to the queue that are not durable yet.
    if (this.options.commits.pendingCount > 0) await this.options.commits.flush();
    await written;
    let query = this.options.database
      .selectFrom("refused_hours")
      .select(["key_id", "code"])
      .select(({ fn }) => fn.sum<number | string>("requests").as("requests"))
      .where("workspace_id", "=", workspaceId)
      .where("hour", ">=", Math.floor(fromMs / hourMs))
      .where("hour", "<", Math.ceil(toMs / hourMs));
    if (keyIds !== undefined) query = query.where("key_id", "in", [...keyIds, ""]);
    if (errors !== undefined) query = query.where("code", "in", [...errors, ""]);
    const rows = await query
      .groupBy(["key_id", "code"])
      .orderBy("requests", "desc")
      .limit(linesMax)
      .execute();
    return rows.map(({ key_id: keyId, code, requests }) => ({
      keyId,
      code,
      status: statusOf(code),
      requests: Number(requests),
    }));
  }
}
