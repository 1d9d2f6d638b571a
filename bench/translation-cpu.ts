import { readdirSync, readFileSync } from "node:fs";
import { cpuTimeMs } from "./process/proc-stat.ts";

/**
 * CPU time of processes at a moment: of each thread in nanoseconds, or of all in milliseconds where
 * threads cannot be read.
 */
export interface CpuMoment {
  threads: ReadonlyMap<string, number>;
  ticksMs: number;
}

/**
 * What these processes have used so far. Ticks of `/proc/PID/stat` are 10 ms, as much as fifty
 * requests take.
 */
export function cpuMoment(pids: readonly number[]): CpuMoment {
  const threads = new Map<string, number>();
  for (const pid of pids) {
    for (const thread of listed(`/proc/${pid}/task`)) {
      const [ran] = read(`/proc/${pid}/task/${thread}/schedstat`).split(" ");
      if (ran !== undefined && ran !== "") threads.set(thread, Number(ran));
    }
  }
  return { threads, ticksMs: cpuTimeMs(pids) ?? Number.NaN };
}

/**
 * Microseconds of CPU between two moments. Compiler threads come and go; one that has gone was idle
 * for long before.
 */
export function cpuUsBetween(before: CpuMoment, after: CpuMoment): number {
  if (after.threads.size === 0) return (after.ticksMs - before.ticksMs) * 1_000;
  let nanoseconds = 0;
  for (const [thread, ran] of after.threads) nanoseconds += ran - (before.threads.get(thread) ?? 0);
  return nanoseconds / 1_000;
}

function listed(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
