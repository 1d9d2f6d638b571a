import { randomBase62 } from "../kernel/ids.ts";
import type { SharedScript } from "./redis-client.ts";

/** How long a part keeps its run without `keepScript`, in milliseconds. */
export const runKeptMs = 86_400_000;

/** Keeps keys of a part that last as long as its run. */
export const keepScript: SharedScript = {
  name: "switchyardKeepRun",
  lua: `for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ${runKeptMs}) end return 0`,
};

/**
 * Starts or joins the run of a part at the server that holds it. The part may hold the run of
 * another server, or of an earlier time of this one. Keys: the run, and further names of the part.
 * Values: the beginning of all runs of this server, and a new run of it. Returns the run.
 */
export const enterScript: SharedScript = {
  name: "switchyardEnterPart",
  lua: `
local run = redis.call('GET', KEYS[1])
if not run or string.sub(run, 1, #ARGV[1]) ~= ARGV[1] then run = ARGV[2] end
-- Writes even an unchanged run, so that no gateway enters at a server that takes no writes.
redis.call('SET', KEYS[1], run, 'PX', ${runKeptMs})
return run`,
};

/**
 * Returns the values of `enterScript` for a server. Runs begin with its `run_id`, which is new for
 * each process, and its `master_replid`, which is new whenever a server becomes the primary. The
 * random word is for a part that leaves a server and comes back to it with its old keys.
 */
export function runValues({
  runId,
  replicationId,
}: {
  runId: string;
  replicationId: string;
}): [string, string] {
  const beginning = `${runId}.${replicationId}.`;
  return [beginning, beginning + randomBase62(8)];
}

/**
 * Makes scripts that run in the current run of a part or not at all. A script's last key is then the
 * run of the part, and its last value is the run that the script expects. `extraKeys` is the number
 * of keys that follow the script's own keys, the run included.
 */
export class RunGuard {
  private readonly guarded = new WeakMap<SharedScript, SharedScript>();
  private readonly lua: string;

  constructor(extraKeys: number) {
    this.lua = `
if redis.call('GET', KEYS[#KEYS]) ~= ARGV[#ARGV] then return redis.error_reply('ANOTHERRUN of the part began') end
ARGV[#ARGV] = nil
for _ = 1, ${extraKeys} do KEYS[#KEYS] = nil end
`;
  }

  /** Returns a script with the check in front of it. */
  of(script: SharedScript): SharedScript {
    let guarded = this.guarded.get(script);
    if (guarded === undefined) {
      guarded = { name: script.name, lua: this.lua + script.lua };
      this.guarded.set(script, guarded);
    }
    return guarded;
  }
}
