import type { Kysely } from "kysely";
import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import type { PastRequests } from "../account/limits/request-limits.ts";
import type { RateCounters } from "../http/count-request.ts";
import type { UsageTables } from "../insights/usage-rollup.ts";
import { hourMs, type Clock } from "../platform/lib/clock.ts";

/** Workspaces that one query asks for: below what either database binds. */
const workspacesPerQuery = 500;

/**
 * Counts again what the windows of hours had counted before the process ended, from the hourly counters of usage.
 * An hour's requests count from its beginning, so they make room up to an hour early, and never late.
 */
export async function restoreQuotas(
  database: Kysely<UsageTables>,
  {
    counters: { limiter, tiers },
    directory,
    clock,
  }: { counters: RateCounters; directory: CredentialDirectory; clock: Clock },
): Promise<void> {
  const limited = directory.allWorkspaces().flatMap(({ id, plan }) => {
    const quota = tiers.quotaFor(plan, "paid");
    return quota === undefined ? [] : [{ id, quota }];
  });
  const longestSeconds = Math.max(0, ...limited.map(({ quota }) => quota.windowSeconds));
  const firstHour = Math.ceil((clock.nowMs() - longestSeconds * 1000) / hourMs);
  const past: PastRequests[] = [];
  for (let start = 0; start < limited.length; start += workspacesPerQuery) {
    const ids = limited.slice(start, start + workspacesPerQuery).map(({ id }) => id);
    const rows = await database
      .selectFrom("usage_hours")
      .select(["hour", "workspace_id", "requests"])
      .where("workspace_id", "in", ids)
      .where("hour", ">=", firstHour)
      .where("model", "not like", "%:free")
      .orderBy("hour")
      .execute();
    for (const { hour, workspace_id: counter, requests } of rows) {
      past.push({
        counter,
        atMs: hour * hourMs,
        requests: Number(requests),
        windowSeconds: longestSeconds,
      });
    }
  }
  await limiter.restoreHours(past);
}
