import type { Finish } from "../../canonical/finish-reason.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { ReportedError } from "../../canonical/reported-error.ts";
import { asString } from "../request-fields.ts";

/** Endings in which the model's own output was no answer; another try may do better. */
const failures = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MALFORMED_RESPONSE",
  "MISSING_THOUGHT_SIGNATURE",
  "OTHER",
]);

/** What a model did wrong, where its word alone would not tell a caller. */
const faults: Readonly<Record<string, string>> = {
  MALFORMED_FUNCTION_CALL: "The model wrote a tool call that cannot be read",
  UNEXPECTED_TOOL_CALL: "The model called a tool though none could be called",
  TOO_MANY_TOOL_CALLS: "The model called tools too many times in a row",
};

const filtered = new Set([
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "MODEL_ARMOR",
  "NO_IMAGE",
]);

/**
 * The end of a candidate as reported; undefined when the word is missing or unknown. STOP is said after
 * function calls too. Source: ai.google.dev/api/generate-content#FinishReason (2026-11).
 */
export function decodeFinish(candidate: JsonObject): Finish | undefined {
  const word = asString(candidate.finishReason) ?? "";
  if (word === "STOP") return { reason: "stop" };
  if (word === "MAX_TOKENS") return { reason: "length" };
  if (!filtered.has(word) && !word.startsWith("IMAGE_")) return undefined;
  return filteredFinish(word, candidate.finishMessage);
}

/** The end of an answer that was never begun, because the prompt was refused; undefined when it was not. */
export function decodePromptBlock(feedback: JsonObject | undefined): Finish | undefined {
  const word = asString(feedback?.blockReason);
  return word === undefined ? undefined : filteredFinish(word, feedback?.blockReasonMessage);
}

function filteredFinish(category: string, message: unknown): Finish {
  const explanation = asString(message);
  return { reason: "content_filter", category, ...(explanation !== undefined && { explanation }) };
}

/** The failure that a candidate ended in; undefined when it ended in none. */
export function readFailure(candidate: JsonObject): ReportedError | undefined {
  const word = asString(candidate.finishReason) ?? "";
  if (!failures.has(word)) return undefined;
  const told = asString(candidate.finishMessage);
  const message = `${faults[word] ?? "The model broke off its answer"} (${word})${told ? `: ${told}` : "."}`;
  return { message, code: word, type: "upstream_error", status: 502, generated: true };
}
