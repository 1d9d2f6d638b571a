import type { Annotation, TextPart, AssistantPart } from "../../canonical/message.ts";
import type { Finish, FinishReason, LogProbabilities } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  openProvenance,
  type Provenance,
  type ReasoningPart,
  type ReasoningField,
  sealWithProvenance,
} from "../../canonical/reasoning.ts";
import { decodeTokens, encodeTokens } from "../shared/openai-fields.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";

/**
 * Finish reasons for what compatible servers write as `finish_reason`, beside OpenAI's own words.
 */
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

/** Returns whether a choice says that it has ended, in any word. */
export const hasFinished = (choice: JsonObject): boolean =>
  typeof choice.finish_reason === "string" && choice.finish_reason !== "";

/**
 * Returns the reported end of a choice; undefined when the reason is missing or unknown. The
 * matched stop text is in `stop_reason` (vLLM) or `matched_stop` (SGLang), where numbers are token
 * ids.
 */
export function decodeFinish(choice: JsonObject): Finish | undefined {
  const reason = reasonByWord.get((asString(choice.finish_reason) ?? "").toLowerCase());
  if (reason === undefined) return undefined;
  const stopSequence = asString(choice.stop_reason) ?? asString(choice.matched_stop);
  if (reason === "stop" && stopSequence) return { reason: "stop_sequence", stopSequence };
  const explanation = reason === "error" ? asString(asObject(choice.error)?.message) : undefined;
  return explanation === undefined ? { reason } : { reason, explanation };
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

/** Returns the ending fields of a choice; a matched stop text is shown as vLLM shows it. */
export function encodeFinish(finish: Finish, options: { legacyFunctions: boolean }): JsonObject {
  const word =
    options.legacyFunctions && finish.reason === "tool_calls"
      ? "function_call"
      : wordByReason[finish.reason];
  return finish.stopSequence === undefined
    ? { finish_reason: word }
    : { finish_reason: word, stop_reason: finish.stopSequence };
}

/** Returns the `error` that accompanies the finish reason of that name. */
export const errorOfFinish = ({ explanation }: Finish): JsonObject => ({
  code: "upstream_error",
  message: explanation ?? "The provider broke off the answer.",
  type: "upstream_error",
  param: null,
  metadata: { type: "upstream_error" },
});

/**
 * The member that names the provider, as OpenRouter does. Clients of OpenRouter read it, and
 * Pydantic AI (2.68) refuses whole answers without it. A name that an upstream gateway gives is
 * kept, because it is closer to who answered.
 */
export const providerMember = "provider";

/** Message fields that carry reasoning, from any server. */
export const reasoningFields = ["reasoning_content", "reasoning", "reasoning_details"] as const;

/** The reasoning of one message: before its text, and behind it before each of its calls. */
interface MessageReasoning {
  leading: ReasoningPart[];
  beforeCall: Map<string, ReasoningPart[]>;
}

/**
 * Reads the reasoning of a message from any of its fields. `reasoning_details` is the richest and
 * takes precedence; the others repeat its text.
 */
export function decodeReasoning(
  message: JsonObject,
  readSeal: SealReader = openProvenance,
): MessageReasoning {
  const reasoning: MessageReasoning = { leading: [], beforeCall: new Map() };
  const [field, text] = plainText(message);
  const details = asArray(message.reasoning_details) ?? [];
  if (details.length > 0) decodeDetails(details, { reasoning, readSeal });
  const first = reasoning.leading[0];
  if (text !== undefined && first === undefined)
    reasoning.leading.push({ type: "reasoning", text, field });
  else if (text !== undefined && first !== undefined && !hasReadableText(reasoning))
    first.text = text;
  return reasoning;
}

function plainText(message: JsonObject): [ReasoningField, string | undefined] {
  const content = asString(message.reasoning_content);
  return content
    ? ["reasoning_content", content]
    : ["reasoning", asString(message.reasoning) || undefined];
}

const hasReadableText = ({ leading, beforeCall }: MessageReasoning): boolean =>
  [...leading, ...[...beforeCall.values()].flat()].some(
    (part) => part.text !== undefined || part.summary !== undefined,
  );

/** Decodes details. Entries with the same `index` are one block (OpenRouter). */
function decodeDetails(
  details: readonly JsonValue[],
  { reasoning, readSeal }: { reasoning: MessageReasoning; readSeal: SealReader },
): void {
  const blocks = new Map<number, ReasoningPart>();
  for (const value of details) {
    const detail = asObject(value);
    if (detail === undefined) continue;
    const index = asNumber(detail.index);
    const known = index === undefined ? undefined : blocks.get(index);
    const block = known ?? { type: "reasoning", field: "reasoning_details" };
    if (index !== undefined) blocks.set(index, block);
    placeBlock(block, { detail, reasoning, isNew: known === undefined });
    addDetail(block, { detail, readSeal });
  }
}

/**
 * Places a block: it leads the message unless one of its entries, possibly the last, names the call
 * that follows it.
 */
function placeBlock(
  block: ReasoningPart,
  { detail, reasoning, isNew }: { detail: JsonObject; reasoning: MessageReasoning; isNew: boolean },
): void {
  const callId = asString(detail.tool_call_id);
  if (callId === undefined) {
    if (isNew) reasoning.leading.push(block);
    return;
  }
  reasoning.leading = reasoning.leading.filter((each) => each !== block);
  const before = reasoning.beforeCall.get(callId) ?? [];
  if (!before.includes(block)) reasoning.beforeCall.set(callId, [...before, block]);
}

/** Adds one entry of `reasoning_details` to its block. */
function addDetail(
  block: ReasoningPart,
  { detail, readSeal }: { detail: JsonObject; readSeal: SealReader },
): void {
  const text = asString(detail.text);
  const summary = asString(detail.summary);
  const data = asString(detail.data);
  const signature = asString(detail.signature);
  if (text !== undefined) block.text = (block.text ?? "") + text;
  if (summary !== undefined)
    block.summary = withSummary(block.summary ?? [], {
      summary,
      index: asNumber(detail.summary_index),
    });
  for (const [field, sealed] of [
    ["encrypted", data],
    ["signature", signature],
  ] as const) {
    if (sealed === undefined) continue;
    const { seal, provenance } = readSeal(sealed);
    block[field] = seal;
    if (provenance !== undefined) block.provenance = provenance;
  }
  const id = asString(detail.id);
  const format = asString(detail.format);
  if (id !== undefined) block.id = id;
  if (format !== undefined) block.format = format;
}

/**
 * Returns the summaries with one more, or with one more piece of the one that the entry numbers.
 */
function withSummary(
  summaries: readonly string[],
  { summary, index }: { summary: string; index: number | undefined },
): readonly string[] {
  if (index === undefined || summaries[index] === undefined) return [...summaries, summary];
  return summaries.with(index, summaries[index] + summary);
}

/** Reads a seal: from a client with the gateway's mark, from an upstream as that upstream's own. */
export type SealReader = (sealed: string) => { seal: string; provenance?: Provenance };

/** Returns a reader of an upstream's seals, which in any form are its own. */
export const sealsOf =
  (providerId: string | undefined): SealReader =>
  (sealed) => ({ seal: sealed, ...(providerId !== undefined && { provenance: { providerId } }) });

/** Returns the readable text of reasoning as one string; undefined when there is none. */
export function reasoningText(parts: readonly ReasoningPart[]): string | undefined {
  const texts = parts.flatMap((part) =>
    part.text === undefined ? (part.summary ?? []) : [part.text],
  );
  return texts.length === 0 ? undefined : texts.join("\n\n");
}

/** Returns whether plain text would lose something: a seal, a summary, or where one block ends. */
export const needsDetails = (parts: readonly ReasoningPart[]): boolean =>
  parts.length > 1 ||
  parts.some(
    (part) =>
      part.text === undefined ||
      part.summary !== undefined ||
      part.signature !== undefined ||
      part.encrypted !== undefined ||
      part.id !== undefined ||
      part.format !== undefined,
  );

/**
 * Encodes `reasoning_details` of a message. A block behind a text or a call names the call that
 * follows it, so that the order, which signed reasoning depends on, can be restored.
 */
export function encodeDetails(parts: readonly AssistantPart[]): JsonObject[] {
  const details: JsonObject[] = [];
  let index = 0;
  let hasSpoken = false;
  parts.forEach((part, position) => {
    if (part.type === "tool-call" || part.type === "text") hasSpoken = true;
    if (part.type !== "reasoning") return;
    const next = hasSpoken
      ? parts.slice(position).find((later) => later.type === "tool-call")
      : undefined;
    details.push(...encodeDetail(part, { index, ...(next && { tool_call_id: next.id }) }));
    index += 1;
  });
  return details;
}

/**
 * Encodes the entries of one block; `place` is its index and, behind a text or a call, the id of the
 * call that follows.
 */
export function encodeDetail(part: ReasoningPart, place: JsonObject): JsonObject[] {
  const shared = withoutUndefined<JsonObject>({ id: part.id, format: part.format, ...place });
  const details: JsonObject[] = (part.summary ?? []).map((summary) => ({
    type: "reasoning.summary",
    summary,
    ...shared,
  }));
  if (part.text !== undefined || part.signature !== undefined) {
    const signature =
      part.signature === undefined
        ? undefined
        : sealWithProvenance(part.signature, part.provenance);
    details.push(
      withoutUndefined<JsonObject>({
        type: "reasoning.text",
        text: part.text,
        signature,
        ...shared,
      }),
    );
  }
  if (part.encrypted !== undefined) {
    details.push({
      type: "reasoning.encrypted",
      data: sealWithProvenance(part.encrypted, part.provenance),
      ...shared,
    });
  }
  return details;
}

/** Returns Gemini's signature of a call, from where its OpenAI-compatible surface puts it. */
export function thoughtSignature(
  extraContent: unknown,
  readSeal: SealReader = openProvenance,
): { signature?: string; provenance?: Provenance } {
  const sealed = asString(asObject(asObject(extraContent)?.google)?.thought_signature);
  if (sealed === undefined) return {};
  const { seal, provenance } = readSeal(sealed);
  return { signature: seal, ...(provenance && { provenance }) };
}

/**
 * Returns the field that carries a call's signature, marked with its maker as clients replay it.
 */
export const signatureField = (call: {
  signature?: string;
  provenance?: Provenance;
}): JsonObject =>
  call.signature === undefined
    ? {}
    : {
        extra_content: {
          google: { thought_signature: sealWithProvenance(call.signature, call.provenance) },
        },
      };

/** Decodes a citation of chat: `url_citation`, or one that is kept as it is. */
export function decodeAnnotation(value: JsonValue): Annotation | undefined {
  const fields = asObject(value);
  const citation = asObject(fields?.url_citation);
  const url = asString(citation?.url);
  if (fields === undefined) return undefined;
  if (fields.type !== "url_citation" || url === undefined)
    return { type: "opaque", dialect: "openai-chat", value: fields };
  return withoutUndefined<Extract<Annotation, { type: "url" }>>({
    type: "url",
    url,
    title: asString(citation?.title),
    startIndex: asNumber(citation?.start_index),
    endIndex: asNumber(citation?.end_index),
    citedText: asString(citation?.content),
  });
}

/**
 * Encodes a citation for a chat client; none for kinds that chat does not have. One without a place
 * of its own is about the given part of the text: clients refuse answers in which one has no place or
 * title (@ai-sdk/openai 4.0.118, @openrouter/sdk 1.3.19).
 */
export function encodeAnnotation(
  annotation: Annotation,
  [start, end]: readonly [start: number, end: number],
): JsonObject[] {
  if (annotation.type === "opaque")
    return annotation.dialect === "openai-chat" ? [annotation.value] : [];
  if (annotation.type !== "url") return [];
  const { url, title = url, startIndex = start, endIndex = end, citedText } = annotation;
  return [
    {
      type: "url_citation",
      url_citation: withoutUndefined<JsonObject>({
        url,
        title,
        start_index: startIndex,
        end_index: endIndex,
        content: citedText,
      }),
    },
  ];
}

/** Decodes log probabilities of a choice or chunk; undefined when there are none. */
export function decodeLogProbabilities(value: unknown): LogProbabilities | undefined {
  const fields = asObject(value);
  const content = asArray(fields?.content) && decodeTokens(fields?.content);
  const refusal = asArray(fields?.refusal) && decodeTokens(fields?.refusal);
  if (content === undefined && refusal === undefined) return undefined;
  return { ...(content && { content }), ...(refusal && { refusal }) };
}

/** Encodes `logprobs` of a choice; both lists are always present. */
export const encodeLogProbabilities = ({ content, refusal }: LogProbabilities): JsonObject => ({
  content: content ? encodeTokens(content) : null,
  refusal: refusal ? encodeTokens(refusal) : null,
});

/** The separator of two messages of one answer where chat has only one text. */
export const messageSeparator = "\n\n";

/**
 * Joins the texts of one answer to chat's one string: pieces of a message are joined, messages
 * separated.
 */
export const joinTexts = (texts: readonly TextPart[]): string =>
  texts.reduce(
    (joined, part) =>
      joined + (part.startsMessage === true && joined !== "" ? messageSeparator : "") + part.text,
    "",
  );
