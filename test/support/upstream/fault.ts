import type { Script } from "./steps.ts";

/**
 * What a correct client makes of a fault:
 * - "harmless": it delivers the whole answer;
 * - "before-content": it has delivered nothing and may try the next candidate;
 * - "after-content": it has delivered a part, and an error follows.
 */
type FaultEffect = "harmless" | "before-content" | "after-content";

/** A way in which an upstream fails. */
export interface Fault {
  /** The kind of request that it applies to. */
  request: "stream" | "whole" | "any";
  effect: FaultEffect;
  script: Script;
  /** HTTP status of the answer, where it is an error. */
  status?: number;
  /** Seconds in its `retry-after`. */
  retryAfterSeconds?: number;
  /** Whether only the client's own timeout reveals the fault. */
  waits?: true;
  /** Whether no upstream listens at all; see `refusingBaseUrl`. */
  refusesConnections?: true;
}
