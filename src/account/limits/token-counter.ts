import type { Clock } from "../../platform/lib/clock.ts";
import { NamedWindows } from "./named-windows.ts";
import { minuteWindow } from "./sliding-window.ts";

/** Counts the tokens of the last 60 seconds by key, for keys with a ceiling (`tpm`). */
export class TokenCounter {
  private readonly windows: NamedWindows;

  constructor(clock: Clock) {
    this.windows = new NamedWindows(clock, minuteWindow);
  }

  /** Counts what a request is going to send, unless the key's ceiling would be passed. */
  tryReserve(keyId: string, { tokens, perMinute }: { tokens: number; perMinute: number }): boolean {
    return this.windows.tryAdd(keyId, { limit: perMinute, amount: tokens });
  }

  /** Counts tokens that were used whatever the ceiling: an answer is as long as it is. */
  add(keyId: string, tokens: number): void {
    if (tokens > 0) this.windows.tryAdd(keyId, { limit: Infinity, amount: tokens });
  }
}
