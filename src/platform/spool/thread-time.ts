import { openSync, readSync } from "node:fs";

/** Nanoseconds on a processor, and on its queue (Linux, Documentation/scheduler/sched-stats.rst). */
const schedulePath = "/proc/thread-self/schedstat";

/** How long the thread that made it has been ready to run. */
export class ThreadTime {
  private readonly file = openedFile();
  private readonly memory = Buffer.alloc(128);

  /**
   * Returns the milliseconds in which the thread ran or waited for a processor. Where the system does
   * not say that, the milliseconds in which the process ran.
   */
  readyMs(): number {
    if (this.file === undefined) {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    }
    const length = readSync(this.file, this.memory, 0, this.memory.length, 0);
    const [ranNs = "", waitedNs = ""] = this.memory.toString("latin1", 0, length).split(" ");
    return (Number(ranNs) + Number(waitedNs)) / 1_000_000;
  }
}

function openedFile(): number | undefined {
  try {
    return openSync(schedulePath, "r");
  } catch {
    return undefined;
  }
}
