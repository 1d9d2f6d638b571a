import type { Finish, FinishReason } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { asObject, asString } from "../request-fields.ts";

/** What compatible servers write as `finish_reason`, beside OpenAI's own words. */
const reasonByWord: ReadonlyMap<string, FinishReason> = new Map(
  Object.entries({
    stop: "stop",
    eos: "stop",
    eos_token: "stop",
    end_turn: "stop",
    complete: "stop",
    stop_sequence: "stop_sequence",
    length: "length",
    max_tokens: "length",
    model_length: "length",
    model_context_window_exceeded: "length",
    tool_calls: "tool_calls",
    function_call: "tool_calls",
    tool_use: "tool_calls",
    content_filter: "content_filter",
    safety: "content_filter",
    refusal: "refusal",
    error: "error",
    abort: "error",
    insufficient_system_resource: "error",
  } satisfies Record<string, FinishReason>),
);

/** True once a choice says that it has ended, in whatever word. */
export const hasFinished = (choice: JsonObject): boolean =>
  typeof choice.finish_reason === "string" && choice.finish_reason !== "";

/**
 * The end of a choice as reported; undefined when the word is missing or unknown. The stop text that
 * matched stands in `stop_reason` (vLLM) or `matched_stop` (SGLang), where numbers are token ids.
 */
export function decodeFinish(choice: JsonObject): Finish | undefined {
  const reason = reasonByWord.get((asString(choice.finish_reason) ?? "").toLowerCase());
  if (reason === undefined) return undefined;
  const stopSequence = asString(choice.stop_reason) ?? asString(choice.matched_stop);
  if (reason === "stop" && stopSequence) return { reason: "stop_sequence", stopSequence };
  const explanation = asString(asObject(choice.error)?.message);
  return { reason, ...(reason === "error" && explanation !== undefined && { explanation }) };
}

const wordByReason: Readonly<Record<FinishReason, string>> = {
  stop: "stop",
  stop_sequence: "stop",
  length: "length",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
  refusal: "content_filter",
  pause: "stop",
  error: "error",
};

/** The ending fields of a choice; a matched stop text is shown as vLLM shows it. */
export function encodeFinish(finish: Finish, options: { legacyFunctions: boolean }): JsonObject {
  const word =
    options.legacyFunctions && finish.reason === "tool_calls"
      ? "function_call"
      : wordByReason[finish.reason];
  return {
    finish_reason: word,
    ...(finish.stopSequence !== undefined && { stop_reason: finish.stopSequence }),
  };
}

/** The `error` that stands beside the finish reason of that name. */
export const errorOfFinish = ({ explanation }: Finish): JsonObject => ({
  code: "upstream_error",
  message: explanation ?? "The provider broke off the answer.",
  type: "upstream_error",
  param: null,
  metadata: { type: "upstream_error" },
});
