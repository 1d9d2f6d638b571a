import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { AssistantPart } from "../../canonical/message.ts";
import {
  openProvenance,
  sealWithProvenance,
  type Provenance,
  type ReasoningPart,
  type ReasoningSpelling,
} from "../../canonical/reasoning.ts";
import { asArray, asNumber, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

/** Message fields that carry thoughts, whoever wrote them. */
export const reasoningFields = ["reasoning_content", "reasoning", "reasoning_details"] as const;

/** Thoughts of one message: those before its text, and those that stand before one of its later calls. */
export interface MessageReasoning {
  leading: ReasoningPart[];
  beforeCall: Map<string, ReasoningPart[]>;
}

/**
 * Reads the thoughts of a message from whichever field has them. `reasoning_details` is the richest and
 * wins; the others mirror its text.
 */
export function decodeReasoning(
  message: JsonObject,
  readSeal: SealReader = openProvenance,
): MessageReasoning {
  const reasoning: MessageReasoning = { leading: [], beforeCall: new Map() };
  const [spelling, text] = plainText(message);
  const details = asArray(message.reasoning_details) ?? [];
  if (details.length > 0) decodeDetails(details, { reasoning, readSeal });
  const first = reasoning.leading[0];
  if (text !== undefined && first === undefined)
    reasoning.leading.push({ type: "reasoning", text, spelling });
  else if (text !== undefined && first !== undefined && !hasReadableText(reasoning))
    first.text = text;
  return reasoning;
}

function plainText(message: JsonObject): [ReasoningSpelling, string | undefined] {
  const content = asString(message.reasoning_content);
  return content
    ? ["reasoning_content", content]
    : ["reasoning", asString(message.reasoning) || undefined];
}

const hasReadableText = ({ leading, beforeCall }: MessageReasoning): boolean =>
  [...leading, ...[...beforeCall.values()].flat()].some(
    (part) => part.text !== undefined || part.summary !== undefined,
  );

/** Entries with the same `index` are one block (OpenRouter). */
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
    const block = known ?? { type: "reasoning", spelling: "reasoning_details" };
    if (index !== undefined) blocks.set(index, block);
    placeBlock(block, { detail, reasoning, isNew: known === undefined });
    addDetail(block, { detail, readSeal });
  }
}

/** A block leads the message unless one of its entries, which may be its last, names the call that follows it. */
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

/** The summaries with one more, or with one more piece of the one that the entry numbers. */
function withSummary(
  summaries: readonly string[],
  { summary, index }: { summary: string; index: number | undefined },
): readonly string[] {
  if (index === undefined || summaries[index] === undefined) return [...summaries, summary];
  return summaries.with(index, summaries[index] + summary);
}

/** How a seal is read: from a client with the gateway's mark, from an upstream as that upstream's own. */
export type SealReader = (sealed: string) => { seal: string; provenance?: Provenance };

/** Reads an upstream's seals: whatever they look like, they are its own. */
export const sealsOf =
  (providerId: string | undefined): SealReader =>
  (sealed) => ({ seal: sealed, ...(providerId !== undefined && { provenance: { providerId } }) });

/** The readable text of thoughts as one string; undefined when there is none. */
export function reasoningText(parts: readonly ReasoningPart[]): string | undefined {
  const texts = parts.flatMap((part) =>
    part.text === undefined ? (part.summary ?? []) : [part.text],
  );
  return texts.length === 0 ? undefined : texts.join("\n\n");
}

/** True when plain text would lose something: a seal, a summary, or where one thought ends. */
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
 * `reasoning_details` of a message. A thought that stands between calls names the call that follows it,
 * so that the order, which signed thoughts depend on, can be rebuilt.
 */
export function encodeDetails(parts: readonly AssistantPart[]): JsonObject[] {
  const details: JsonObject[] = [];
  let index = 0;
  let callSeen = false;
  parts.forEach((part, position) => {
    if (part.type === "tool-call") callSeen = true;
    if (part.type !== "reasoning") return;
    const next = callSeen
      ? parts.slice(position).find((later) => later.type === "tool-call")
      : undefined;
    details.push(...encodeDetail(part, { index, ...(next && { tool_call_id: next.id }) }));
    index += 1;
  });
  return details;
}

/** The entries of one thought; `place` is its index and, between calls, the id of the call that follows. */
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

/** Gemini's signature of a call, where its OpenAI-compatible surface puts it. */
export function thoughtSignature(
  extraContent: unknown,
  readSeal: SealReader = openProvenance,
): { signature?: string; provenance?: Provenance } {
  const sealed = asString(asObject(asObject(extraContent)?.google)?.thought_signature);
  if (sealed === undefined) return {};
  const { seal, provenance } = readSeal(sealed);
  return { signature: seal, ...(provenance && { provenance }) };
}

/** The field that carries a call's signature, marked with its maker as clients replay it. */
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
