import type { AttemptRecord } from "./generation-record.ts";

/** What an attempt says of its provider. */
export type AttemptOutcome =
  | "served"
  /**
   * The provider did not do what it offers: 404, 410, 5xx, no or a garbled answer, a cut stream, a
   * timeout.
   */
  | "outage"
  /** The provider rations its callers (429): no outage, but a reason to ask another one first. */
  | "rationed"
  /**
   * A refused credential or request, or a client that left: says nothing of the provider's health.
   */
  | "neutral";

/**
 * Judges a finished attempt as the health snapshot counts it (contract, "Health snapshot": only
 * genuine platform outages are errors, never key-permission failures).
 */
export function outcomeOf({ outcome, reason, status }: AttemptRecord): AttemptOutcome {
  if (outcome === "served") return "served";
  if (outcome === "cancelled" || reason === "credential_error") return "neutral";
  if (reason === "rate_limited") return "rationed";
  if (reason === "timeout" || reason === "model_unavailable" || status === 410) return "outage";
  // Below 400 it is a success that came to nothing, such as a cut stream; without a status nothing
  // came at all.
  return status === null || status < 400 || status >= 500 ? "outage" : "neutral";
}

/** Whether an attempt failed by the provider's own fault. */
export const isOutage = (attempt: AttemptRecord): boolean => outcomeOf(attempt) === "outage";
