import type {
  CountedRun,
  RequestCountOutcome,
  RequestCounts,
  SettledRequests,
} from "./book-request-counts.ts";
import { ledgerScript } from "../ledger/shared/ledger-script.ts";
import type { SharedAccounts } from "../ledger/shared/shared-accounts.ts";

/**
 * Counts a request in several runs, in all or in none. Values: for each the id, and the most
 * requests. Returns the counts, or which run is unknown or full.
 */
const takeScript = ledgerScript(
  "TakeRequest",
  `
local counts = {'ok'}
for at = 6, #ARGV, 2 do
  local used = redis.call('GET', root .. 'n:' .. ARGV[at])
  if not used then return {'unknown', ARGV[at]} end
  if tonumber(used) >= tonumber(ARGV[at + 1]) then return {'full', ARGV[at]} end
end
for at = 6, #ARGV, 2 do
  counts[#counts + 1] = text(redis.call('INCR', root .. 'n:' .. ARGV[at]))
  redis.call('PEXPIRE', root .. 'n:' .. ARGV[at], day)
end
return counts`,
);

/** Takes back the count of a request. Values: the ids of the runs. */
const giveBackScript = ledgerScript(
  "GiveBackRequest",
  `
for at = 6, #ARGV do
  if known(root .. 'n:' .. ARGV[at]) then redis.call('DECR', root .. 'n:' .. ARGV[at]) end
end
return {}`,
);

/** Returns the count of a run, after filling it where it is absent. Values: the id, and the count. */
const seedScript = ledgerScript(
  "SeedRequests",
  `
if ARGV[7] ~= '' then redis.call('SET', root .. 'n:' .. ARGV[6], ARGV[7], 'NX', 'PX', day) end
return {redis.call('GET', root .. 'n:' .. ARGV[6]) or ''}`,
);

/** The request counts of several processes, on the shared server. */
export class SharedRequestCounts implements RequestCounts {
  constructor(
    private readonly accounts: SharedAccounts,
    private readonly settled: SettledRequests,
  ) {}

  async take(workspaceId: string, runs: readonly CountedRun[]): Promise<RequestCountOutcome> {
    const values = runs.flatMap(({ id, maxRequests }) => [id, maxRequests]);
    for (;;) {
      const [outcome, ...rest] = await this.accounts.run(takeScript, workspaceId, values);
      const named = runs.find(({ id }) => id === rest[0]);
      if (outcome === "ok" || named === undefined) return { ok: true, used: rest.map(Number) };
      if (outcome === "full") return { ok: false, full: named };
      await this.used(workspaceId, named);
    }
  }

  giveBack(workspaceId: string, runs: readonly CountedRun[]): void {
    const ids = runs.map(({ id }) => id);
    this.accounts.run(giveBackScript, workspaceId, ids).catch(() => undefined);
  }

  async used(workspaceId: string, { id }: CountedRun): Promise<number> {
    const [known = ""] = await this.accounts.run(seedScript, workspaceId, [id, ""]);
    if (known !== "") return Number(known);
    const settled = await this.settled(id);
    const [seeded = "0"] = await this.accounts.run(seedScript, workspaceId, [id, String(settled)]);
    return Number(seeded);
  }
}
