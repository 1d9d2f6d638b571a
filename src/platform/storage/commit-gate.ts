import type { Clock } from "../kernel/clock.ts";
import { LogLimit } from "../kernel/log-limit.ts";
import type { StorageLogger } from "./storage.ts";

/** So many units refused one after another, for any reason, count as an outage too. */
const refusalsInRow = 8;

/** How often one request may find out whether commits stand again, in milliseconds. */
const trialEveryMs = 1_000;

/**
 * Whether work that has to be committed may begin. Closed from the first commit that the database
 * cannot take; a test write that succeeds lets one request a second through, and the first unit
 * that stands opens the gate.
 */
export class CommitGate {
  readonly #clock: Clock;
  readonly #logger: StorageLogger | undefined;
  #state: "open" | "closed" | "trial" = "open";
  #closedAtMs = 0;
  #rejectedAtClose = 0;
  #refusedInRow = 0;
  #lastTrialMs = 0;
  readonly #logLimit: LogLimit;
  /** Units that were refused since the start. */
  rejectedCount = 0;

  constructor({ clock, logger }: { clock: Clock; logger?: StorageLogger | undefined }) {
    this.#clock = clock;
    this.#logger = logger;
    this.#logLimit = new LogLimit(clock);
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** Whether a request may be begun whose charge has to be committed. */
  admits(): boolean {
    if (this.#state !== "trial") return this.#state === "open";
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastTrialMs < trialEveryMs) return false;
    this.#lastTrialMs = nowMs;
    return true;
  }

  /** The database cannot take commits at the moment. */
  close(cause: string): void {
    if (this.#state === "open") {
      this.#closedAtMs = this.#clock.monotonicMs();
      this.#rejectedAtClose = this.rejectedCount;
    }
    this.#state = "closed";
    this.#log(cause);
  }

  /**
   * A unit was refused for what it says. One after another is trouble of the database: missing
   * rights, a failing trigger.
   */
  refused(cause: string): void {
    this.#refusedInRow += 1;
    if (this.#refusedInRow >= refusalsInRow || this.#state === "trial") this.close(cause);
  }

  /** A test write went through. */
  probed(): void {
    if (this.#state !== "closed") return;
    this.#state = "trial";
    this.#lastTrialMs = -Infinity;
  }

  /** A unit stands. */
  open(): void {
    this.#refusedInRow = 0;
    if (this.#state === "open") return;
    this.#state = "open";
    const seconds = Math.round((this.#clock.monotonicMs() - this.#closedAtMs) / 100) / 10;
    this.#logger?.info(
      { seconds, rejected: this.rejectedCount - this.#rejectedAtClose },
      "the database takes commits again",
    );
  }

  #log(cause: string): void {
    if (this.#logLimit.pass(cause) === undefined) return;
    this.#logger?.error(
      { cause, rejected: this.rejectedCount - this.#rejectedAtClose },
      `commits rejected: ${cause}; inference is refused with 503 until the database takes them again`,
    );
  }
}
