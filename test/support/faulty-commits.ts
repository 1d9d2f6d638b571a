import type { CommitQueue, CommitUnit } from "../../src/platform/storage/commit-queue.ts";

/** Thrown when the process ends during a commit, which may or may not be durable. */
export class CrashedError extends Error {
  override name = "CrashedError";
}

/**
 * What happens to the next commit: the database commits it or refuses it, or the process crashes
 * before or after it is durable.
 */
export type CommitFate = "works" | "refused" | "crash-before" | "crash-after";

/** A commit queue whose next commit can fail in every way in which commits fail. */
export class FaultyCommits implements CommitQueue {
  next: CommitFate = "works";
  private readonly commits: CommitQueue;

  constructor(commits: CommitQueue) {
    this.commits = commits;
  }

  get pendingCount(): number {
    return this.commits.pendingCount;
  }

  get stalled(): boolean {
    return this.commits.stalled;
  }

  get rejectedCount(): number {
    return this.commits.rejectedCount;
  }

  admits(): boolean {
    return this.commits.admits();
  }

  async commit(unit: CommitUnit): Promise<void> {
    const fate = this.next;
    this.next = "works";
    if (fate === "refused") throw new Error("the database refused");
    if (fate === "crash-before") throw new CrashedError();
    await this.commits.commit(unit);
    if (fate === "crash-after") throw new CrashedError();
  }

  flush(): Promise<void> {
    return this.commits.flush();
  }
}
