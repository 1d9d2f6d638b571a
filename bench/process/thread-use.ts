import { readdirSync, readFileSync } from "node:fs";

/** What a thread, or all threads of one name, have used so far. */
export interface ThreadUse {
  /** Microseconds on a core, from the scheduler's own clock. */
  cpuUs: number;
  /** How often it slept and was woken: each wake-up begins with cold caches. */
  wakes: number;
  /** How often another thread took its core from it. */
  preempted: number;
  /** Pages that the kernel gave it. */
  faults: number;
}

/** The use of threads, by thread id. */
export type ThreadUses = ReadonlyMap<string, ThreadUse & { name: string }>;

/**
 * Reads the use of all threads of these processes; empty on systems without `/proc`. Threads that
 * end meanwhile are left out.
 */
export function readThreadUses(pids: readonly number[]): ThreadUses {
  const uses = new Map<string, ThreadUse & { name: string }>();
  for (const pid of pids) {
    for (const thread of namesIn(`/proc/${pid}/task`)) {
      const use = readUse(`/proc/${pid}/task/${thread}`);
      if (use !== undefined) uses.set(thread, use);
    }
  }
  return uses;
}

function readUse(path: string): (ThreadUse & { name: string }) | undefined {
  try {
    const status = readFileSync(`${path}/status`, "utf8");
    const stat = readFileSync(`${path}/stat`, "utf8");
    const [onCoreNs] = readFileSync(`${path}/schedstat`, "utf8").split(" ");
    return {
      name: /^Name:\s+(.*)$/m.exec(status)?.[1] ?? "",
      cpuUs: Number(onCoreNs) / 1000,
      wakes: Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]),
      preempted: Number(/^nonvoluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]),
      faults: Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[7]),
    };
  } catch {
    return undefined;
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** What was used between two readings, by thread name; the first thread of a process is `main`. */
export function usedBetween(
  before: ThreadUses,
  after: ThreadUses,
  { pids }: { pids: readonly number[] },
): Map<string, ThreadUse> {
  const main = new Set(pids.map(String));
  const used = new Map<string, ThreadUse>();
  for (const [thread, now] of after) {
    const then = before.get(thread);
    addUse(used, main.has(thread) ? "main" : now.name, {
      cpuUs: now.cpuUs - (then?.cpuUs ?? 0),
      wakes: now.wakes - (then?.wakes ?? 0),
      preempted: now.preempted - (then?.preempted ?? 0),
      faults: now.faults - (then?.faults ?? 0),
    });
  }
  return used;
}

/** Adds a use to the sum of a name. */
export function addUse(sums: Map<string, ThreadUse>, name: string, use: ThreadUse): void {
  const sum = sums.get(name);
  if (sum === undefined) sums.set(name, { ...use });
  else {
    sum.cpuUs += use.cpuUs;
    sum.wakes += use.wakes;
    sum.preempted += use.preempted;
    sum.faults += use.faults;
  }
}
