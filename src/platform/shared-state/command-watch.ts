/** A command whose answer is waited for. */
interface SentCommand {
  /** When its answer is late, by `performance.now()`. */
  lateAtMs: number;
  isAnswered: boolean;
  reject(error: Error): void;
}

/** Checks within the time that an answer may take. */
const checksPerTimeout = 10;

/**
 * Rejects commands that are not answered in time. One timer checks all of them, since a gateway
 * sends several commands for each request and nearly none of them is late.
 */
export class CommandWatch {
  private readonly timeoutMs: number;
  /** In the order in which they were sent, and so in which they become late. */
  private sent: SentCommand[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;
  private checkedAtMs = 0;

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  /** Sends a command and returns its answer; rejects if none comes in time. */
  answerOf<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const nowMs = performance.now();
      const lateAtMs = nowMs + this.timeoutMs;
      const command: SentCommand = { lateAtMs, isAnswered: false, reject };
      send().then(
        (answer) => {
          command.isAnswered = true;
          resolve(answer);
        },
        (error: unknown) => {
          command.isAnswered = true;
          reject(error as Error);
        },
      );
      this.sent.push(command);
      if (this.timer === undefined) this.startChecks(nowMs);
    });
  }

  private startChecks(nowMs: number): void {
    this.checkedAtMs = nowMs;
    this.timer = setInterval(() => this.check(), this.timeoutMs / checksPerTimeout).unref();
  }

  private check(): void {
    const nowMs = performance.now();
    const firstPending = this.sent.findIndex(({ isAnswered }) => !isAnswered);
    this.sent.splice(0, firstPending === -1 ? this.sent.length : firstPending);
    if (this.sent.length === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
    // A process that stood still reads the answers that arrived meanwhile before the next check.
    const stoodStill = nowMs - this.checkedAtMs > (2 * this.timeoutMs) / checksPerTimeout;
    this.checkedAtMs = nowMs;
    if (stoodStill) return;
    for (const { isAnswered, lateAtMs, reject } of this.sent) {
      if (!isAnswered && lateAtMs <= nowMs)
        reject(new Error(`no answer came within ${this.timeoutMs} milliseconds`));
    }
  }
}
