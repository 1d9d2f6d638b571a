import type { TextPart } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { AssistantMessage, AssistantPart } from "../../canonical/message.ts";
import {
  isForeignReasoning,
  type ReasoningPart,
  type ReasoningSpelling,
} from "../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import { wrapInput } from "../tool-aliases.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { encodeText } from "./encode-content.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";
import { joinTexts } from "./join-texts.ts";
import { encodeDetails, reasoningText, signatureField } from "./reasoning-fields.ts";

/**
 * A turn of the model as history. `content` is always there: null beside calls, empty text otherwise. A
 * turn of which nothing can be replayed is left out, since an empty one would be a turn of its own.
 */
export function encodeAssistant(message: AssistantMessage, place: EncodePlace): JsonObject[] {
  const { state } = place;
  const parts = message.parts.filter((part, index) =>
    keepsPart(part, place.at(`.content[${index}]`)),
  );
  if (parts.length === 0 && message.parts.length > 0) return [];
  const calls = parts.filter((part) => part.type === "tool-call");
  const refusal = parts.flatMap((part) => (part.type === "refusal" ? [part.refusal] : [])).join("");
  const audio = parts.find((part) => part.type === "audio-output");
  const speechless = calls.length > 0 || refusal !== "" || audio !== undefined;
  return [
    withoutUndefined<JsonObject>({
      role: "assistant",
      content: assistantContent(parts, place) ?? (speechless ? null : ""),
      name: message.name,
      refusal: refusal === "" ? undefined : refusal,
      audio: audio && { id: audio.id },
      ...replayedThoughts(parts, state),
      ...encodeCalls(calls, place),
      ...place.extensionFields(message.extensions),
    }),
  ];
}

/** Whether a part can be replayed here at all; what cannot is declared. */
function keepsPart(part: AssistantPart, place: EncodePlace): boolean {
  if (part.type === "opaque" && part.dialect !== "openai-chat") {
    place.lose(`a ${String(part.value.type)} of ${part.dialect}`);
    return false;
  }
  if (part.type === "image") {
    place.lose("chat history holds no images of the model's");
    return false;
  }
  if (part.type !== "reasoning") return true;
  const spelling = replaySpelling(part, place.state);
  if (spelling === undefined) {
    place.lose("the upstream takes no earlier thoughts");
    return false;
  }
  const sealed = part.signature !== undefined || part.encrypted !== undefined;
  if (
    spelling === "reasoning_details" &&
    sealed &&
    isForeignReasoning(part, place.state.options.providerId)
  ) {
    place.lose("sealed by another provider");
    return false;
  }
  return true;
}

const replaySpelling = (part: ReasoningPart, state: EncodeState): ReasoningSpelling | undefined =>
  (state.sameDialect ? part.spelling : undefined) ?? state.quirks.reasoningReplay;

function assistantContent(
  parts: readonly AssistantPart[],
  place: EncodePlace,
): JsonValue | undefined {
  const { state } = place;
  const texts = parts.filter((part): part is TextPart => part.type === "text");
  const wire = parts.flatMap((part, index): JsonObject[] => {
    if (part.type === "text") return [encodeText(part, place.at(`.content[${index}]`))];
    if (part.type === "opaque") return [part.value];
    if (part.type === "reasoning" && replaySpelling(part, state) === "content") {
      return [{ type: "thinking", thinking: [{ type: "text", text: part.text ?? "" }] }];
    }
    return [];
  });
  if (wire.length === 0) return undefined;
  const plain =
    texts.length === wire.length && wire.every((part) => Object.keys(part).length === 2);
  return plain && (wire.length === 1 || !state.sameDialect) ? joinTexts(texts) : wire;
}

function replayedThoughts(parts: readonly AssistantPart[], state: EncodeState): JsonObject {
  const thoughts = parts.filter((part): part is ReasoningPart => part.type === "reasoning");
  const first = thoughts[0];
  const spelling = first && replaySpelling(first, state);
  if (spelling === undefined || spelling === "content") return {};
  if (spelling !== "reasoning_details") return { [spelling]: reasoningText(thoughts) };
  return { reasoning_details: encodeDetails(parts.map(withoutProvenance)) };
}

/** Towards its maker a seal is what the maker wrote, without the gateway's mark. */
function withoutProvenance(part: AssistantPart): AssistantPart {
  if (part.type !== "reasoning") return part;
  const { provenance: _provenance, ...own } = part;
  return own;
}

function encodeCalls(calls: readonly ToolCallPart[], place: EncodePlace): JsonObject {
  const only = calls[0];
  if (only === undefined) return {};
  if (place.state.request.legacyFunctions === true)
    return { function_call: { name: only.name, arguments: only.arguments } };
  return {
    tool_calls: calls.map((call, index) => encodeCall(call, place.at(`.tool_calls[${index}]`))),
  };
}

function encodeCall(call: ToolCallPart, place: EncodePlace): JsonObject {
  const { id, kind } = call;
  const { state } = place;
  const name = state.namer.wireName(call);
  const wraps = state.namer.wraps(call);
  const extra = {
    ...(replaysSignature(call, state) && signatureField({ signature: call.signature })),
    ...place.extensionFields(call.extensions),
  };
  if (kind === "custom" && !wraps)
    return { id, type: "custom", custom: { name, input: call.arguments }, ...extra };
  return {
    id,
    type: "function",
    function: { name, arguments: wraps ? wrapInput(call.arguments) : functionArguments(call) },
    ...extra,
  };
}

/** A signature goes back to its maker alone; one without a mark only as its own client wrote it. */
const replaysSignature = (
  call: ToolCallPart,
  state: EncodeState,
): call is ToolCallPart & { signature: string } =>
  call.signature !== undefined &&
  (call.provenance === undefined
    ? state.sameDialect
    : !isForeignReasoning(call, state.options.providerId));

/** Never empty: an upstream that parses the text refuses "". */
const functionArguments = (call: ToolCallPart): string =>
  call.arguments.trim() === "" ? "{}" : call.arguments;
