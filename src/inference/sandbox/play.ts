import { setTimeout as wait } from "node:timers/promises";
import type { Directives } from "./directives.ts";

/** One event of a stream in wire form. */
export interface WireEvent {
  wire: string;
  /** True when it carries a piece of reasoning, text or tool arguments. */
  content: boolean;
}

/** How a stream is played. */
export interface PlayOptions {
  directives: Directives;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
  /** What the dialect sends when it fails after so many events, in wire form. */
  failure: (sentCount: number) => string;
}

/**
 * The events of a stream at the pace and with the fault that the directives ask for. Ends without a
 * word when the client is gone; a cut is an exception, on which the server resets the connection.
 */
export async function* play(
  events: Iterable<WireEvent>,
  options: PlayOptions,
): AsyncGenerator<string> {
  const { directives, signal, failure } = options;
  let sentCount = 0;
  let contentCount = 0;
  for (const event of events) {
    if (directives.cut_after === contentCount) await cutConnection();
    if (directives.stall_after === contentCount) await clientGone(signal);
    if (directives.error_after === contentCount) return yield failure(sentCount);
    if (event.content && directives.token_delay_ms) await waitMs(directives.token_delay_ms, signal);
    if (signal.aborted) return;
    yield event.wire;
    sentCount += 1;
    if (event.content) contentCount += 1;
  }
}

/**
 * Waits, and less long when the signal is aborted: then it returns at once and leaves no timer
 * behind.
 */
export async function waitMs(durationMs: number, signal: AbortSignal): Promise<void> {
  await wait(durationMs, undefined, { signal }).catch(() => undefined);
}

/** Resolves when the client is gone, and never before. */
export function clientGone(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
}

/** How long a cut lets the client read what was sent before: a reset overtakes what lies unread. */
const cutGraceMs = 20;

/**
 * Throws what Bun answers with a reset of the connection, once the client could read what was sent.
 */
export async function cutConnection(): Promise<never> {
  await wait(cutGraceMs);
  throw new DOMException("cut by a sandbox directive", "AbortError");
}
