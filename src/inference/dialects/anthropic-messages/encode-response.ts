import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart, ToolCallPart } from "../../canonical/message.ts";
import { sealWithProvenance, type ReasoningPart } from "../../canonical/reasoning.ts";
import type { CanonicalResponse } from "../../canonical/response.ts";
import { opaqueName } from "../shared/encode-state.ts";
import type { LossDetector, ResponseContext } from "../dialect.ts";
import { isRanSearch } from "../shared/extras/web-search.ts";
import { gatewayFields } from "../shared/gateway-facts.ts";
import { argumentsObject, wrapInput } from "../shared/tools.ts";
import {
  encodeCitation,
  encodeFinish,
  withRefusal,
  fieldsOfOwn,
  legalCallId,
  opaqueBlocks,
} from "./answer-fields.ts";
import { encodeUsage } from "./usage.ts";

/** Encodes a message for a client. Messages has one answer; further choices are not shown. */
export function encodeResponse(
  response: CanonicalResponse,
  context: ResponseContext = {},
): JsonObject {
  const choice = response.choices[0];
  const hidesThoughts = context.request?.reasoning?.exclude === true;
  const parts = withTextLast(
    (choice?.parts ?? []).filter((part) => !(hidesThoughts && part.type === "reasoning")),
  );
  const refused = parts.some((part) => part.type === "refusal" && part.refusal !== "");
  return {
    id: context.id ?? response.id,
    type: "message",
    role: "assistant",
    model: context.model ?? response.model,
    content: parts.flatMap(encodeBlock),
    ...encodeFinish(withRefusal(choice?.finish ?? { reason: "stop" }, refused)),
    usage: encodeUsage(response.usage ?? nothingReported, response.gateway),
    ...fieldsOfOwn(response.extensions),
    ...gatewayFields(response.gateway),
  };
}

/**
 * Moves reasoning that ends an answer before the texts that it follows: agents take the last block
 * for the answer.
 */
function withTextLast(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const lastOther = parts.findLastIndex(({ type }) => type !== "reasoning");
  if (lastOther === parts.length - 1 || !isText(parts[lastOther])) return parts;
  const firstText = parts.findLastIndex((part, index) => index < lastOther && !isText(part)) + 1;
  return [
    ...parts.slice(0, firstText),
    ...parts.slice(lastOther + 1),
    ...parts.slice(firstText, lastOther + 1),
  ];
}

const isText = (part: AssistantPart | undefined): boolean =>
  part?.type === "text" || part?.type === "refusal" || part?.type === "audio-output";

/** The usage where none was reported, since clients throw without one. */
const nothingReported = { usage: {}, estimated: true, clamped: false };

/** Returns the blocks of a part; none for what Messages has no block for. */
function encodeBlock(part: AssistantPart): JsonObject[] {
  switch (part.type) {
    case "text": {
      const citations = (part.annotations ?? []).flatMap(encodeCitation);
      return part.text === ""
        ? []
        : [{ type: "text", text: part.text, ...(citations.length > 0 && { citations }) }];
    }
    case "refusal":
      return part.refusal === "" ? [] : [{ type: "text", text: part.refusal }];
    case "reasoning":
      return encodeThought(part);
    case "tool-call":
      return [encodeCall(part)];
    case "audio-output":
      return part.transcript ? [{ type: "text", text: part.transcript }] : [];
    case "opaque":
      return opaqueBlocks(part);
    case "image":
      return [];
  }
}

/**
 * Detects pictures, sound and parts of other dialects, which Messages has no block for. The
 * transcript of sound is carried as text.
 */
export const createLossDetector = (): LossDetector => (part) => {
  switch (part.type) {
    case "image":
      return "image";
    case "audio-delta":
      return part.data === undefined ? undefined : "audio";
    case "annotation":
      return encodeCitation(part.annotation).length === 0 ? "annotations" : undefined;
    case "opaque":
      return part.part.dialect === "anthropic-messages" || isRanSearch(part.part)
        ? undefined
        : opaqueName(part.part);
    default:
      return undefined;
  }
};

/**
 * Encodes reasoning: words in a readable block, and what is sealed as a whole (Responses has both
 * in one) in an unreadable one.
 */
function encodeThought({
  text,
  summary,
  signature,
  encrypted,
  provenance,
}: ReasoningPart): JsonObject[] {
  const words = text ?? summary?.join("\n\n");
  const seal = signature === undefined ? "" : sealWithProvenance(signature, provenance);
  return [
    ...(words === undefined && signature === undefined
      ? []
      : [{ type: "thinking", thinking: words ?? "", signature: seal }]),
    ...(encrypted === undefined
      ? []
      : [{ type: "redacted_thinking", data: sealWithProvenance(encrypted, provenance) }]),
  ];
}

const encodeCall = (call: ToolCallPart): JsonObject => ({
  type: "tool_use",
  id: legalCallId(call.id),
  name: call.name,
  input: argumentsObject(call.kind === "custom" ? wrapInput(call.arguments) : call.arguments),
  ...fieldsOfOwn(call.extensions),
});
