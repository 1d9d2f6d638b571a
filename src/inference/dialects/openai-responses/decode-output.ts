import type { ImagePart } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { AssistantPart } from "../../canonical/message.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import type { DecodeContext } from "../dialect.ts";
import { asArray, asObject, asString } from "../request-fields.ts";
import { unwrapInput } from "../tool-aliases.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeAnnotations } from "./annotation-fields.ts";
import { argumentsText } from "./decode-input.ts";
import { decodeReasoningItem, sealsOf } from "./reasoning-item.ts";

/** What decoding one item of an upstream's output needs to know. */
export interface ItemSurroundings {
  context: DecodeContext;
  /** A message came before it in the same answer. */
  startsMessage: boolean;
  /** Id for a call that came without one. */
  mintedId: string;
}

/** An item of an upstream's output, whole; none where it says nothing. */
export function decodeItem(item: JsonObject, surroundings: ItemSurroundings): AssistantPart[] {
  switch (item.type) {
    case "message":
      return decodeMessage(item, surroundings);
    case "reasoning": {
      const thought = decodeThought(item, surroundings.context);
      return thought === undefined ? [] : [thought];
    }
    case "function_call":
    case "custom_tool_call":
      return decodeCall(item, surroundings);
    case "image_generation_call": {
      const image = decodeImage(item);
      return [image ?? { type: "opaque", dialect: "openai-responses", value: item }];
    }
    case undefined:
      return [];
    default:
      return [{ type: "opaque", dialect: "openai-responses", value: item }];
  }
}

function decodeMessage(item: JsonObject, { startsMessage }: ItemSurroundings): AssistantPart[] {
  const phase = asString(item.phase);
  const parts = (asArray(item.content) ?? []).flatMap((value): AssistantPart[] =>
    decodeContent(value),
  );
  const first = parts.find((part) => part.type === "text");
  if (first !== undefined && startsMessage) first.startsMessage = true;
  if (phase !== undefined) for (const part of parts) if (part.type === "text") part.phase = phase;
  return parts;
}

function decodeContent(value: JsonValue): AssistantPart[] {
  const part = asObject(value);
  if (part === undefined) return [];
  const refusal = asString(part.refusal);
  if (part.type === "refusal") return refusal ? [{ type: "refusal", refusal }] : [];
  const text = asString(part.text);
  if (text === undefined) return [{ type: "opaque", dialect: "openai-responses", value: part }];
  const annotations = decodeAnnotations(part.annotations);
  return text === "" ? [] : [{ type: "text", text, ...(annotations && { annotations }) }];
}

/** A thought with its maker's seal; undefined when it is an id alone. */
export function decodeThought(item: JsonObject, context: DecodeContext): ReasoningPart | undefined {
  const thought = decodeReasoningItem(item, sealsOf(context.providerId));
  if ("callId" in thought) return undefined;
  const isEmpty =
    thought.text === undefined &&
    thought.summary === undefined &&
    thought.encrypted === undefined &&
    thought.signature === undefined;
  return isEmpty ? undefined : thought;
}

/** What a call is to the client. */
export interface CallFacts extends Pick<ToolCallPart, "kind" | "name" | "namespace"> {
  /** It went out as a function: its input is a member of the arguments. */
  unwraps: boolean;
}

/** What a call is to the client, whatever its tool is called on this wire. */
export function callFacts(item: JsonObject, context: DecodeContext): CallFacts {
  const wireName = asString(item.name) ?? "";
  const alias = context.toolAliases?.get(wireName);
  const unwraps = alias?.unwrapsInput === true;
  return withoutUndefined({
    kind: item.type === "custom_tool_call" || unwraps ? ("custom" as const) : ("function" as const),
    name: alias?.name ?? wireName,
    namespace: alias?.namespace ?? asString(item.namespace),
    unwraps,
  });
}

function decodeCall(item: JsonObject, { context, mintedId }: ItemSurroundings): AssistantPart[] {
  const { unwraps, ...facts } = callFacts(item, context);
  if (facts.name === "") return [];
  const text =
    item.type === "custom_tool_call" ? (asString(item.input) ?? "") : argumentsText(item.arguments);
  return [
    withoutUndefined<ToolCallPart>({
      type: "tool-call",
      ...facts,
      id: asString(item.call_id) || asString(item.id) || mintedId,
      arguments: unwraps ? unwrapInput(text) : text,
      itemId: asString(item.id) || undefined,
    }),
  ];
}

/** An image that the model made; undefined while there is none. */
export function decodeImage(item: JsonObject): ImagePart | undefined {
  const data = asString(item.result);
  if (!data) return undefined;
  return {
    type: "image",
    source: { type: "base64", mediaType: `image/${asString(item.output_format) ?? "png"}`, data },
  };
}
