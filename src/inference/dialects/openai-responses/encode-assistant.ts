import type { RefusalPart, TextPart } from "../../canonical/content.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantMessage, AssistantPart } from "../../canonical/message.ts";
import { isForeignReasoning, type ReasoningPart } from "../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";
import { wrapInput } from "../tool-aliases.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { encodeAnnotation } from "./annotation-fields.ts";
import { markers } from "./encode-content.ts";
import { summaryParts } from "./reasoning-item.ts";

/** A turn of the model as items: a message for texts that stand together, and one item for everything else. */
export function encodeAssistant(message: AssistantMessage, place: EncodePlace): JsonObject[] {
  const items: JsonObject[] = [];
  let open: { content: JsonObject[]; phase: string | undefined } | undefined;
  message.parts.forEach((part, index) => {
    const partPlace = place.at(`.content[${index}]`);
    const said = spokenPart(part, partPlace);
    if (said === undefined) {
      const item = encodeItem(part, partPlace);
      if (item !== undefined) open = undefined;
      if (item !== undefined) items.push(item);
      return;
    }
    const phase = part.type === "text" ? part.phase : open?.phase;
    if (
      open === undefined ||
      open.phase !== phase ||
      (part.type === "text" && part.startsMessage === true)
    ) {
      open = { content: [], phase };
      items.push(
        withoutUndefined<JsonObject>({
          type: "message",
          role: "assistant",
          content: open.content,
          phase,
        }),
      );
    }
    open.content.push(said);
  });
  if (message.parts.length === 0) items.push({ type: "message", role: "assistant", content: "" });
  return withExtensions(items, place.extensionFields(message.extensions));
}

function withExtensions(items: JsonObject[], fields: JsonObject): JsonObject[] {
  const at = items.findIndex((item) => item.type === "message");
  return items.map((item, index) => (index === at ? { ...item, ...fields } : item));
}

/** What belongs into a message; undefined for parts that are items of their own. */
function spokenPart(part: AssistantPart, place: EncodePlace): JsonObject | undefined {
  switch (part.type) {
    case "text":
      return spokenText(part, place);
    case "refusal":
      return { type: "refusal", refusal: part.refusal } satisfies RefusalPart;
    case "opaque":
      return part.dialect === "openai-responses" && part.value.type === "output_audio"
        ? part.value
        : undefined;
    default:
      return undefined;
  }
}

function spokenText(part: TextPart, place: EncodePlace): JsonObject {
  const annotations = part.annotations?.flatMap(encodeAnnotation);
  return {
    type: "output_text",
    text: part.text,
    ...(annotations && { annotations }),
    ...markers(part, place),
  };
}

function encodeItem(part: AssistantPart, place: EncodePlace): JsonObject | undefined {
  switch (part.type) {
    case "tool-call":
      return encodeCall(part, place);
    case "reasoning":
      return encodeReasoning(part, place);
    case "opaque":
      if (part.dialect === "openai-responses") return part.value;
      place.lose(`a ${String(part.value.type)} of ${part.dialect}`);
      return undefined;
    case "audio-output":
      place.lose("Responses history holds no sound of the model's");
      return undefined;
    default:
      place.lose("Responses history holds no images of the model's");
      return undefined;
  }
}

/**
 * Ids of items are left out: an upstream that stores nothing would look for them in vain. The name of a
 * call that was wrapped stands for its custom tool.
 */
function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { state } = place;
  const wraps = state.namer.wraps(call);
  const shared = withoutUndefined<JsonObject>({
    call_id: call.id,
    name: state.namer.wireName({ kind: call.kind, name: call.name }),
    namespace: call.namespace,
  });
  const extra = place.extensionFields(call.extensions);
  if (call.kind === "custom" && !wraps)
    return { type: "custom_tool_call", ...shared, input: call.arguments, ...extra };
  const text = call.arguments.trim() === "" ? "{}" : call.arguments;
  return {
    type: "function_call",
    ...shared,
    arguments: wraps ? wrapInput(call.arguments) : text,
    ...extra,
  };
}

/**
 * A thought goes back sealed by its own maker, or readable to those who take it so. Its id goes along
 * with ciphertext only, which it is part of; alone it would be looked for in a store that does not have it.
 */
function encodeReasoning(part: ReasoningPart, place: EncodePlace): JsonObject | undefined {
  const { state } = place;
  const problem = whyNotReplayed(part, state);
  if (problem !== undefined) {
    place.lose(problem);
    return undefined;
  }
  return withoutUndefined<JsonObject>({
    type: "reasoning",
    id: part.encrypted === undefined ? undefined : part.id,
    summary: summaryParts(part.summary ?? []),
    content: part.text === undefined ? undefined : [{ type: "reasoning_text", text: part.text }],
    encrypted_content: part.encrypted,
    ...place.extensionFields(part.extensions),
  });
}

function whyNotReplayed(part: ReasoningPart, state: EncodeState): string | undefined {
  if (part.signature !== undefined) return "signed for another dialect";
  if (part.encrypted !== undefined) {
    const own =
      part.provenance === undefined
        ? state.sameDialect
        : !isForeignReasoning(part, state.options.providerId);
    return own ? undefined : "sealed by another provider";
  }
  if (part.text === undefined && part.summary === undefined) return "an id without its content";
  return state.sameDialect || state.quirks.reasoningReplay !== undefined
    ? undefined
    : "the upstream takes no earlier thoughts";
}
