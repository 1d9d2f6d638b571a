import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantMessage, AssistantPart } from "../../canonical/message.ts";
import {
  isForeignReasoning,
  isSealedReasoning,
  type ReasoningPart,
} from "../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import type { EncodePlace } from "../encode-state.ts";
import { asObject } from "../request-fields.ts";
import { wrapInput } from "../tool-aliases.ts";
import { cacheFields } from "./cache-fields.ts";
import { encodeText } from "./encode-blocks.ts";
import { legalCallId } from "./legal-call-id.ts";

/** The blocks of a turn of the model, in the order in which they were made. */
export const encodeAssistant = (message: AssistantMessage, place: EncodePlace): JsonObject[] =>
  message.parts.flatMap((part, index) => encodePart(part, place.at(`.content[${index}]`)));

function encodePart(part: AssistantPart, place: EncodePlace): JsonObject[] {
  switch (part.type) {
    case "text":
      return encodeText(part, place);
    case "refusal":
      return part.refusal.trim() === "" ? [] : [{ type: "text", text: part.refusal }];
    case "reasoning":
      return encodeThought(part, place);
    case "tool-call":
      return [encodeCall(part, place)];
    case "image":
      place.lose("messages history holds no images of the model's");
      return [];
    case "audio-output":
      place.lose("messages history holds no sound");
      return [];
    case "opaque":
      if (part.dialect === "anthropic-messages") return [part.value];
      place.lose(`a ${String(part.value.type)} of ${part.dialect}`);
      return [];
  }
}

/**
 * A thought goes back to its maker as it was, or not at all: Anthropic verifies the seal, and takes a
 * turn without its thoughts. Unsealed ones are only for servers that ask for them.
 */
function encodeThought(part: ReasoningPart, place: EncodePlace): JsonObject[] {
  const { signature, encrypted, text } = part;
  if (isForeignReasoning(part, place.state.options.providerId)) {
    place.lose("sealed by another provider");
    return [];
  }
  const own = place.extensionFields(part.extensions);
  if (signature !== undefined && isSealedReasoning(part))
    return [{ type: "thinking", thinking: text ?? "", signature, ...own }];
  if (encrypted !== undefined && text === undefined && !part.summary?.length) {
    return [{ type: "redacted_thinking", data: encrypted, ...own }];
  }
  const words = text ?? part.summary?.join("\n\n");
  if (place.state.quirks.reasoningReplay === "content" && words)
    return [{ type: "thinking", thinking: words, signature: "" }];
  place.lose("the upstream takes back no thoughts that it did not seal");
  return [];
}

function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { namer } = place.state;
  return {
    type: "tool_use",
    id: legalCallId(call.id),
    name: namer.wireName(call),
    input: inputObject(namer.wraps(call) ? wrapInput(call.arguments) : call.arguments),
    ...cacheFields(call.cache),
    ...place.extensionFields(call.extensions),
  };
}

/** Arguments as the object that they should be; text that is none is passed on under a name of its own. */
export function inputObject(text: string): JsonObject {
  if (text.trim() === "") return {};
  try {
    return asObject(JSON.parse(text)) ?? { _raw: text };
  } catch {
    return { _raw: text };
  }
}
