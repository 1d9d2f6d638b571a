import type { Finish, ReportedError } from "../../canonical/response.ts";

/** The finish reasons of an answer, in canonical terms. */
const finishes: Readonly<Record<string, Finish>> = {
  end_turn: { reason: "stop" },
  stop_sequence: { reason: "stop_sequence" },
  max_tokens: { reason: "length" },
  model_context_window_exceeded: { reason: "length" },
  tool_use: { reason: "tool_calls" },
  content_filtered: { reason: "content_filter", category: "content_filtered" },
  guardrail_intervened: { reason: "content_filter", category: "guardrail_intervened" },
};

/**
 * Returns the reported end of an answer; undefined when the reason is missing or unknown. Source:
 * `StopReason` of docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 * (2026-11).
 */
export const decodeFinish = (stopReason: string | undefined): Finish | undefined =>
  stopReason === undefined || !Object.hasOwn(finishes, stopReason)
    ? undefined
    : finishes[stopReason];

/**
 * Stop reasons of answers in which the model's own output was invalid, so that another attempt may
 * succeed.
 */
const failures: Readonly<Record<string, string>> = {
  malformed_model_output: "The model wrote an answer that cannot be read",
  malformed_tool_use: "The model wrote a tool call that cannot be read",
};

/** Returns the failure that an answer ended in; undefined when it ended in none. */
export function readFailure(stopReason: string | undefined): ReportedError | undefined {
  if (stopReason === undefined || !Object.hasOwn(failures, stopReason)) return undefined;
  const message = `${failures[stopReason]} (${stopReason}).`;
  return { message, code: stopReason, type: "upstream_error", status: 502, generated: true };
}
