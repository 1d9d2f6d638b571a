import type { Script } from "./steps.ts";

/**
 * What a right client makes of a fault:
 * - "harmless": the whole answer all the same;
 * - "before-content": nothing was delivered, the next candidate may be tried;
 * - "after-content": a part was delivered, and the rest is an error.
 */
type FaultEffect = "harmless" | "before-content" | "after-content";

/** One way in which an upstream goes wrong. */
export interface Fault {
  /** The kind of request that it is made for. */
  request: "stream" | "whole" | "any";
  effect: FaultEffect;
  script: Script;
  /** HTTP status of the answer, where it is an error. */
  status?: number;
  /** Seconds of its `retry-after`. */
  retryAfterSeconds?: number;
  /** Shows only when the client's own timeout strikes. */
  waits?: true;
  /** There is no upstream at all: see `refusingBaseUrl`. */
  refusesConnections?: true;
}
