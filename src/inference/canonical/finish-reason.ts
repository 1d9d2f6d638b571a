/** Why a choice ended. */
export type FinishReason =
  | "stop"
  | "stop_sequence"
  | "length"
  | "tool_calls"
  | "content_filter"
  | "refusal"
  | "pause"
  | "error";

/** A finish reason with what the provider said about it. */
export interface Finish {
  reason: FinishReason;
  /** The stop text that matched, where the provider tells. */
  stopSequence?: string;
  /** The provider's explanation of a refusal. */
  explanation?: string;
  /** The provider's category of a refusal. */
  category?: string;
}

/**
 * Makes a reported end agree with what was delivered: calls that were made have to be run even when the
 * provider said `stop`, an announced call that never came must not be waited for, and a missing or
 * unknown reason is inferred. A cut (`length`) or a filtered answer stays what it is.
 */
export function reconcileFinish(reported: Finish | undefined, hasToolCalls: boolean): Finish {
  if (reported === undefined) return { reason: hasToolCalls ? "tool_calls" : "stop" };
  if (hasToolCalls && (reported.reason === "stop" || reported.reason === "stop_sequence"))
    return { reason: "tool_calls" };
  if (!hasToolCalls && reported.reason === "tool_calls") return { ...reported, reason: "stop" };
  return reported;
}
