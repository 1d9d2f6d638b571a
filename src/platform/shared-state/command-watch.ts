import type { Redis } from "ioredis";
import { commandTimeoutMs } from "./redis-client.ts";

/** A command that waits for its answer. */
interface SentCommand {
  /** The number of the check at which the answer is late. */
  lateAtCheck: number;
  isAnswered: boolean;
  reject(error: Error): void;
}

/** The number of checks within the time limit of an answer. */
const checksPerTimeout = 10;

/**
 * Sends the commands of a connection, those of one turn of the event loop with one write to its
 * socket, and rejects those that are not answered in time. One timer checks all of them, since a gateway
 * sends many commands and hardly any is late. Time is counted in checks. A process that is
 * suspended misses all checks but one, and reads the answers that arrived meanwhile before the next
 * check, so they are not late.
 */
export class CommandWatch {
  private readonly answerMs: number;
  /** The socket that holds back the writes of the current turn. */
  private gathering: Redis["stream"] | undefined;
  /**
   * The commands in the order in which they were sent, which is also that in which they become
   * late.
   */
  private readonly sent: SentCommand[] = [];
  private checks = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly client: Pick<Redis, "stream">,
    answerMs = commandTimeoutMs,
  ) {
    this.answerMs = answerMs;
  }

  /** Sends a command and returns its answer. Rejects where none comes in time. */
  answerOf<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    this.gatherWrites();
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
      this.timer ??= setInterval(() => this.check(), this.answerMs / checksPerTimeout).unref();
    });
  }

  private gatherWrites(): void {
    // Undefined before the first connection, although its type does not say so.
    const stream = this.client.stream as Redis["stream"] | undefined;
    if (stream === undefined || this.gathering === stream) return;
    this.gathering = stream;
    stream.cork();
    setImmediate(() => {
      this.gathering = undefined;
      stream.uncork();
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
      if (!isAnswered) reject(new Error(`no answer came within ${this.answerMs} milliseconds`));
    }
  }
}
