import { dayMs, hourMs, type Clock } from "../platform/lib/clock.ts";
import type { GenerationStore } from "./generation-store.ts";

/** Records that one statement deletes, so that settlements never wait long behind a purge. */
const deleteStepRows = 1_000;

/** Deletes generation records that are older than the operator keeps them. Charges stay in the ledger. */
export class Retention {
  private readonly options: {
    generations: GenerationStore; clock: Clock; keepDays: number; workspaceIds(): string[]; onError(error: unknown): void;
  };
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(options: Retention["options"]) {
    this.options = options;
  }

  /** Purges every hour from now on; the first time after an hour, so that a start is not slowed. */
  start(): void {
    this.timer = setInterval(() => {
      this.running = this.purge().catch((error: unknown) => this.options.onError(error));
    }, hourMs);
  }

  /** Deletes everything that is due. */
  async purge(): Promise<void> {
    const { generations, clock, keepDays, workspaceIds } = this.options;
    const beforeMs = clock.nowMs() - keepDays * dayMs;
    for (const workspaceId of workspaceIds()) {
      while (await generations.deleteBefore({ workspaceId, beforeMs, limit: deleteStepRows }) === deleteStepRows);
    }
  }

  /** Resolves when a purge that is under way has ended. */
  stop(): Promise<void> {
    clearInterval(this.timer);
    return this.running;
  }
}
