import { minuteMs, type Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import { generationRow, type GenerationRecord } from "./generation-record.ts";
import { usageAdds } from "./usage/usage-rollup.ts";

/** A workspace's requests of one minute that were counted and left no record. */
export interface UnrecordedRequests {
  workspaceId: string;
  requests: number;
}

/**
 * The most records of one workspace that are written in a minute, so that a client that repeats
 * failing requests cannot fill the disk.
 */
export const recordsPerMinuteMax = 3_000;

/**
 * Writes the records of requests without a settlement: failed ones and those answered from a cache.
 * Never waits. Every request is counted; beyond `recordsPerMinuteMax` it leaves no record. While
 * the database takes no commits nothing is written, so that nothing accumulates in memory.
 */
export class UnsettledRecords {
  private minute = 0;
  private readonly countByWorkspace = new Map<string, number>();

  constructor(
    private readonly options: {
      commits: CommitQueue;
      clock: Clock;
      onError(error: unknown): void;
      onExcess(excess: UnrecordedRequests): void;
    },
  ) {}

  write(record: GenerationRecord): void {
    const { commits, onError } = this.options;
    if (commits.stalled) return;
    const inserts = this.hasRoom(record.workspaceId) ? [generationRow(record)] : [];
    commits.commit({ inserts, adds: usageAdds(record) }).catch(onError);
  }

  private hasRoom(workspaceId: string): boolean {
    const minute = Math.floor(this.options.clock.nowMs() / minuteMs);
    if (minute !== this.minute) this.begin(minute);
    const count = (this.countByWorkspace.get(workspaceId) ?? 0) + 1;
    this.countByWorkspace.set(workspaceId, count);
    return count <= recordsPerMinuteMax;
  }

  private begin(minute: number): void {
    this.minute = minute;
    for (const [workspaceId, count] of this.countByWorkspace) {
      if (count > recordsPerMinuteMax)
        this.options.onExcess({ workspaceId, requests: count - recordsPerMinuteMax });
    }
    this.countByWorkspace.clear();
  }
}
