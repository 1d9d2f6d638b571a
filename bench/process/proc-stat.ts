import { readdirSync, readFileSync } from "node:fs";

/**
 * Clock ticks a second in `/proc`; 100 on every Linux that programs can run on (proc(5),
 * `USER_HZ`).
 */
const ticksPerSecond = 100;

/** Memory of a process tree; absent on systems without `/proc`. */
export interface ProcessMemory {
  /** Pages in memory, shared ones counted for every process. */
  rssKb: number;
  /** Pages in memory, shared ones divided among their users; the honest sum of a tree. */
  pssKb: number;
}

/**
 * User and system time of these processes so far, in milliseconds; undefined where it cannot be
 * read.
 */
export function cpuTimeMs(pids: readonly number[]): number | undefined {
  let ticks = 0;
  for (const pid of pids) {
    const fields = statFields(pid);
    if (fields === undefined) return undefined;
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return pids.length === 0 ? undefined : (ticks * 1000) / ticksPerSecond;
}

/** A process and all that descend from it. */
export function processTree(rootPid: number): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of listProcesses()) {
    const pid = Number(name);
    const parentPid = Number(statFields(pid)?.[1] ?? 0);
    childrenOf.set(parentPid, [...(childrenOf.get(parentPid) ?? []), pid]);
  }
  const tree: number[] = [];
  const open = [rootPid];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    tree.push(pid);
    open.push(...(childrenOf.get(pid) ?? []));
  }
  return tree;
}

/** The process that started another one; undefined where it cannot be read. */
export function parentOf(pid: number): number | undefined {
  const parentPid = Number(statFields(pid)?.[1]);
  return Number.isInteger(parentPid) ? parentPid : undefined;
}

/** Memory of these processes together. */
export function memoryOf(pids: readonly number[]): ProcessMemory | undefined {
  const total: ProcessMemory = { rssKb: 0, pssKb: 0 };
  for (const pid of pids) {
    const rssKb = kilobytes(`/proc/${pid}/status`, "VmRSS");
    const pssKb = kilobytes(`/proc/${pid}/smaps_rollup`, "Pss");
    if (rssKb === undefined || pssKb === undefined) return undefined;
    total.rssKb += rssKb;
    total.pssKb += pssKb;
  }
  return total;
}

/** Megabytes of memory that a process has now (`VmRSS`) or had at most (`VmHWM`). */
export const residentMb = (pid: number, field: "VmHWM" | "VmRSS"): number =>
  Math.round((kilobytes(`/proc/${pid}/status`, field) ?? 0) / 1024);

function listProcesses(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/**
 * The fields of `/proc/PID/stat` after the command name, which may itself hold spaces and brackets.
 */
function statFields(pid: number): string[] | undefined {
  const text = readText(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

function kilobytes(path: string, name: string): number | undefined {
  const digits = new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readText(path) ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
