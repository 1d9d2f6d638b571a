import type { Clock } from "../../../platform/kernel/clock.ts";
import type { HeldCall } from "./held-call.ts";

/** Milliseconds that a client has for the answers to a server's questions. */
export const answerMs = 5 * 60_000;

/** The most calls that wait for answers at once. */
const heldMax = 1_000;

/**
 * Calls that wait for answers of clients, in the memory of this gateway. Each belongs to the
 * credential that began it, and is found by a random state once for each answer.
 */
export class HeldCalls<Outcome> {
  private readonly held = new Map<string, { call: HeldCall<Outcome>; untilMs: number }>();
  private readonly sweeping: ReturnType<typeof setInterval>;

  constructor(private readonly clock: Pick<Clock, "monotonicMs">) {
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
