import type { LoggingMessageNotification, Progress } from "@modelcontextprotocol/client";
import type { Question } from "../server-connections.ts";

/** What comes next of a call: its outcome, or questions of its server that are not answered yet. */
export type NextOfCall<Outcome> =
  | { outcome: Outcome }
  | { questions: Readonly<Record<string, Question>>; state: string };

/** A result as agents receive it. */
export type Rendered = Readonly<Record<string, unknown>>;

/** Where progress and log messages of a call go: to the request that waits for it at present. */
interface Heard {
  progress(progress: Progress): void;
  log(message: LoggingMessageNotification["params"]): void;
}

interface OpenQuestion {
  question: Question;
  answer(result: unknown): void;
  fail(error: Error): void;
}

/** A call in progress, whose server may ask the client for something. */
export class HeldCall<Outcome> {
  readonly state = crypto.randomUUID();
  readonly controller = new AbortController();
  heard: Heard | undefined;
  private readonly open = new Map<string, OpenQuestion>();
  private outcome: Promise<Outcome> | undefined;
  private asked = Promise.withResolvers<void>();
  private count = 0;

  constructor(
    readonly owner: string /** Renders its outcome for the agent that made it. Throws the protocol's error of a failed call. */,
    readonly render: (outcome: Outcome) => Rendered,
  ) {}

  /** Begins the call, unless it has begun. */
  begin(run: (call: HeldCall<Outcome>) => Promise<Outcome>): void {
    if (this.outcome !== undefined) return;
    this.outcome = run(this);
    // Waited for by `next`, or by no one where the client does not come back.
    this.outcome.catch(() => undefined);
  }

  /** Asks the client; resolves to its answer. */
  ask(question: Question): Promise<unknown> {
    this.count += 1;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.open.set(`question_${this.count}`, { question, answer: resolve, fail: reject });
    this.asked.resolve();
    return promise;
  }

  /** Takes the client's answers. Questions that it left out stay open. */
  answer(responses: Readonly<Record<string, unknown>>): void {
    for (const [name, response] of Object.entries(responses)) {
      this.open.get(name)?.answer(response);
      this.open.delete(name);
    }
    if (this.open.size === 0) this.asked = Promise.withResolvers<void>();
  }

  /** Waits for the outcome, or for a question. */
  async next(): Promise<NextOfCall<Outcome>> {
    if (this.outcome === undefined) throw new Error("the call was not begun");
    const ended = this.outcome.then((outcome) => ({ outcome }));
    const next = await Promise.race([ended, this.asked.promise]);
    if (next !== undefined) return next;
    const questions = [...this.open].map(([name, { question }]) => [name, question] as const);
    return { questions: Object.fromEntries(questions), state: this.state };
  }

  /** Ends a call whose client has left. */
  abandon(): void {
    for (const { fail } of this.open.values()) fail(new Error("The client has left."));
    this.open.clear();
    this.controller.abort();
  }
}
