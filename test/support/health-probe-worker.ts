import { readdirSync, readFileSync } from "node:fs";

declare const self: Worker;

let worstMs = 0;
let waiting: (() => void) | undefined;

/** The URL to request, and the id of the process that answers. */
export interface Probed {
  url: string;
  pid: number;
}

/**
 * Returns the CPU time that each thread of a process has used, in milliseconds (proc(5),
 * schedstat); empty where the process has ended.
 */
function cpuMsByThread(pid: number): Map<string, number> {
  const used = new Map<string, number>();
  const tasks = `/proc/${pid}/task`;
  try {
    for (const task of readdirSync(tasks)) {
      used.set(
        task,
        Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6,
      );
    }
  } catch {
    // A thread, or the whole process, ended between the two calls.
  }
  return used;
}

/**
 * Returns the milliseconds that the busiest thread has worked since; undefined where no thread is
 * visible.
 */
function workedSince(before: ReadonlyMap<string, number>, pid: number): number | undefined {
  const worked = [...cpuMsByThread(pid)].map(([task, ms]) => ms - (before.get(task) ?? 0));
  return worked.length === 0 || before.size === 0 ? undefined : Math.max(...worked);
}

/** Milliseconds between requests, which leave the cores to what is measured: a stall is 50. */
const pauseMs = 2;

async function askForEver({ url, pid }: Probed): Promise<never> {
  for (;;) {
    const used = cpuMsByThread(pid);
    const askedMs = performance.now();
    await fetch(url).then(
      (response) => response.text(),
      () => undefined,
    );
    const waitedMs = performance.now() - askedMs;
    // A stall is work of one of the process's threads that makes others wait. A busy machine makes
    // every process wait, which does not count.
    worstMs = Math.max(worstMs, Math.min(waitedMs, workedSince(used, pid) ?? waitedMs));
    waiting?.();
    await Bun.sleep(pauseMs);
  }
}

self.onmessage = ({ data }: MessageEvent<Probed | "worst">) => {
  if (data !== "worst") {
    void askForEver(data);
    return;
  }
  // The request in flight at this moment counts with all of its wait.
  waiting = () => {
    waiting = undefined;
    self.postMessage(worstMs);
    worstMs = 0;
  };
};
