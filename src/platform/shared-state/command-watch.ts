/** A command whose answer is waited for. */
interface SentCommand {
  /** The check at which its answer is late. */
  lateAtCheck: number;
  isAnswered: boolean;
  reject(error: Error): void;
}

/** Checks within the time that an answer may take. */
const checksPerTimeout = 10;

/**
 * Rejects commands that are not answered in time. One timer checks all of them, since a gateway
 * sends many commands and nearly none of them is late. Time is counted in checks, of which a process
 * that stands still misses all but one: answers that arrive meanwhile are read before the next one,
 * and are not late.
 */
export class CommandWatch {
  private readonly timeoutMs: number;
  /** In the order in which they were sent, and so in which they become late. */
  private readonly sent: SentCommand[] = [];
  private checks = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  /** Sends a command and returns its answer; rejects if none comes in time. */
  answerOf<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const lateAtCheck = this.checks + checksPerTimeout + 1;
      const command: SentCommand = { lateAtCheck, isAnswered: false, reject };
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
      this.timer ??= setInterval(() => this.check(), this.timeoutMs / checksPerTimeout).unref();
    });
  }

  private check(): void {
    this.checks += 1;
    const firstPending = this.sent.findIndex(({ isAnswered }) => !isAnswered);
    this.sent.splice(0, firstPending === -1 ? this.sent.length : firstPending);
    if (this.sent.length === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
    for (const { isAnswered, lateAtCheck, reject } of this.sent) {
      if (lateAtCheck > this.checks) break;
      if (!isAnswered) reject(new Error(`no answer came within ${this.timeoutMs} milliseconds`));
    }
  }
}
