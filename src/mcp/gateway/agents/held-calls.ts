import type { LoggingMessageNotification, Progress } from "@modelcontextprotocol/client";
import type { Clock } from "../../../platform/kernel/clock.ts";
import type { Question } from "../server-connections.ts";

/** Milliseconds that a client has for the answers to a server's questions. */
export const answerMs = 5 * 60_000;

/** The most calls that wait for answers at once. */
const heldMax = 1_000;

/** What comes next of a call: its outcome, or questions of its server that are not answered yet. */
export type NextOfCall<Outcome> =
  | { outcome: Outcome }
  | { questions: Readonly<Record<string, Question>>; state: string };

/** Where progress and log messages of a call go: to the request that waits for it at present. */
interface Heard {
  progress(progress: Progress): void;
  log(message: LoggingMessageNotification["params"]): void;
}

/** A result as agents receive it. */
export type Rendered = Readonly<Record<string, unknown>>;

interface OpenQuestion {
  question: Question;
  answer(result: unknown): void;
  fail(error: Error): void;
}

/** A call in progress, whose server may ask the client for something. */
export class HeldCall<Outcome> {
  readonly owner: string;
  /** Renders its outcome for the agent that made it. Throws the protocol's error of a failed call. */
  readonly render: (outcome: Outcome) => Rendered;
  readonly state = crypto.randomUUID();
  readonly controller = new AbortController();
  heard: Heard | undefined;
  private readonly open = new Map<string, OpenQuestion>();
  private outcome: Promise<Outcome> | undefined;
  private asked = Promise.withResolvers<void>();
  private count = 0;

  constructor(owner: string, render: (outcome: Outcome) => Rendered) {
    this.owner = owner;
    this.render = render;
  }

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

/**
 * Calls that wait for answers of clients, in the memory of this gateway. Each belongs to the
 * credential that began it, and is found by a random state once for each answer.
 */
export class HeldCalls<Outcome> {
  private readonly clock: Pick<Clock, "monotonicMs">;
  private readonly held = new Map<string, { call: HeldCall<Outcome>; untilMs: number }>();
  private readonly sweeping: ReturnType<typeof setInterval>;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.clock = clock;
    this.sweeping = setInterval(() => this.sweep(), 15_000);
    this.sweeping.unref();
  }

  /** Keeps a call until its client answers. */
  keep(call: HeldCall<Outcome>): void {
    this.held.set(call.state, { call, untilMs: this.clock.monotonicMs() + answerMs });
    for (const [state, oldest] of this.held) {
      if (this.held.size <= heldMax) return;
      this.held.delete(state);
      oldest.call.abandon();
    }
  }

  /** Takes the call of a state; undefined where it is not one of this owner. */
  take(state: string, owner: string): HeldCall<Outcome> | undefined {
    const found = this.held.get(state);
    if (found === undefined || found.call.owner !== owner) return undefined;
    this.held.delete(state);
    return found.call;
  }

  /** Ends every call that waits. */
  close(): void {
    clearInterval(this.sweeping);
    for (const { call } of this.held.values()) call.abandon();
    this.held.clear();
  }

  private sweep(): void {
    const nowMs = this.clock.monotonicMs();
    for (const [state, { call, untilMs }] of this.held) {
      if (untilMs > nowMs) return;
      this.held.delete(state);
      call.abandon();
    }
  }
}
