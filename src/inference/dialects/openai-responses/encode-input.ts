import type { TextPart } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  splitLeadingSystem,
  type Message,
  type SystemMessage,
  type ToolMessage,
} from "../../canonical/message.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";
import { isBillingLine } from "../billing-line.ts";
import { repairToolTurns } from "../repair-tool-turns.ts";
import { encodeAssistant } from "./encode-assistant.ts";
import { encodeInputText, encodeUserPart, plainOrParts } from "./encode-content.ts";

/** `instructions` and `input` of a request. */
export interface EncodedInput {
  instructions?: string;
  input: readonly JsonObject[];
}

/** The conversation on the wire: leading instructions in their field, tool results right after their calls. */
export function encodeInput(state: EncodeState): EncodedInput {
  const { leading, rest } = splitLeadingSystem(repairToolTurns(state.request.messages));
  const head = state.sameDialect ? ownHead(leading, state) : translatedHead(leading, state);
  const items = rest.flatMap((message, index) =>
    encodeMessage(message, state.at(`messages[${leading.length + index}]`)),
  );
  return {
    ...(head.instructions !== undefined && { instructions: head.instructions }),
    input: [...head.input, ...items],
  };
}

/** The first of a Responses client's instructions are its `instructions`; the others are items, as it wrote them. */
function ownHead(leading: readonly SystemMessage[], state: EncodeState): EncodedInput {
  const [first, ...others] = leading;
  const text =
    first && first.developer !== true && first.extensions === undefined
      ? plainText(first)
      : undefined;
  const items = text === undefined ? leading : others;
  const skipped = leading.length - items.length;
  return {
    ...(text !== undefined && { instructions: text }),
    input: items.map((message, index) =>
      encodeSystem(message, state.at(`messages[${skipped + index}]`)),
    ),
  };
}

function plainText({ parts }: SystemMessage): string | undefined {
  const [part] = parts;
  const plain =
    part !== undefined &&
    parts.length === 1 &&
    part.cache === undefined &&
    part.extensions === undefined;
  return plain && part.text !== "" ? part.text : undefined;
}

/** Other dialects' instructions are one text, or one item where cache markers stand on its parts. */
function translatedHead(leading: readonly SystemMessage[], state: EncodeState): EncodedInput {
  const parts = leading
    .flatMap((message) => message.parts)
    .filter((part) => part.text !== "" && !isBillingLine(part.text));
  if (parts.length === 0) return { input: [] };
  const place = state.at("messages[0]");
  const wire = parts.map((part, index) => encodeInputText(part, place.at(`.content[${index}]`)));
  if (wire.every((part) => Object.keys(part).length === 2))
    return { instructions: parts.map((part) => part.text).join("\n\n"), input: [] };
  return { input: [{ type: "message", role: "system", content: wire }] };
}

function encodeMessage(message: Message, place: EncodePlace): JsonObject[] {
  switch (message.role) {
    case "system":
      return [encodeSystem(message, place)];
    case "user": {
      if (message.name !== undefined) place.at(".name").lose("Responses messages have no names");
      const content = message.parts.flatMap((part, index) =>
        encodeUserPart(part, place.at(`.content[${index}]`)),
      );
      return [
        {
          type: "message",
          role: "user",
          content: plainOrParts(content),
          ...place.extensionFields(message.extensions),
        },
      ];
    }
    case "assistant":
      return encodeAssistant(message, place);
    case "tool":
      return [encodeResult(message, place)];
  }
}

const encodeSystem = (message: SystemMessage, place: EncodePlace): JsonObject => ({
  type: "message",
  role: message.developer === true ? "developer" : "system",
  content: plainOrParts(
    message.parts.map((part, index) => encodeInputText(part, place.at(`.content[${index}]`))),
  ),
  ...place.extensionFields(message.extensions),
});

function encodeResult(message: ToolMessage, place: EncodePlace): JsonObject {
  const { state } = place;
  const wrapped = message.kind === "custom" && state.namer.wraps({ kind: "custom" });
  return {
    type:
      message.kind === "custom" && !wrapped ? "custom_tool_call_output" : "function_call_output",
    call_id: message.toolCallId,
    output: resultOutput(message, place),
    ...place.extensionFields(message.extensions),
  };
}

/** Text alone is sent as text, which every server takes; whether a tool failed has to be said in words. */
function resultOutput(message: ToolMessage, place: EncodePlace): JsonValue {
  if (message.cache !== undefined) place.state.cacheFields(message.cache);
  const failed: TextPart[] = message.isError === true ? [{ type: "text", text: "Error:" }] : [];
  const texts = message.parts.filter((part): part is TextPart => part.type === "text");
  if (texts.length === message.parts.length && (texts.length <= 1 || !place.state.sameDialect)) {
    return (message.isError === true ? "Error: " : "") + texts.map((part) => part.text).join("\n");
  }
  return [
    ...failed.map((part) => encodeInputText(part, place)),
    ...message.parts.flatMap((part, index) => encodeUserPart(part, place.at(`.content[${index}]`))),
  ];
}
