import type { Finish, FinishReason } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

const reasonByWord: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop_sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["pause_turn", "pause"],
  ["compaction", "pause"],
  ["refusal", "refusal"],
  // Words of other dialects that compatible servers let through.
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** The end as reported; undefined when the word is missing or unknown. */
export function decodeFinish(fields: JsonObject): Finish | undefined {
  const reason = reasonByWord.get(asString(fields.stop_reason) ?? "");
  if (reason === undefined) return undefined;
  const details = asObject(fields.stop_details);
  return withoutUndefined<Finish>({
    reason,
    stopSequence: asString(fields.stop_sequence) || undefined,
    explanation: asString(details?.explanation),
    category: asString(details?.category),
  });
}

const wordByReason: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
  refusal: "refusal",
  pause: "pause_turn",
  error: "end_turn",
};

/** The end of an answer that declined in words: OpenAI's dialects call it a plain stop, Messages has a reason for it. */
export const withRefusal = (finish: Finish, refused: boolean): Finish =>
  refused && finish.reason === "stop" ? { ...finish, reason: "refusal" } : finish;

/** The ending fields of an answer, or of a stream's `message_delta`. */
export function encodeFinish({ reason, stopSequence, explanation, category }: Finish): JsonObject {
  const told = explanation !== undefined || category !== undefined;
  return {
    stop_reason: wordByReason[reason],
    stop_sequence: reason === "stop_sequence" ? (stopSequence ?? null) : null,
    stop_details: told
      ? { type: "refusal", category: category ?? null, explanation: explanation ?? null }
      : null,
  };
}
