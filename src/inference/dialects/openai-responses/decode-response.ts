import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { ImagePart, AssistantPart, ToolCallPart } from "../../canonical/message.ts";
import { reconcileFinish, type CanonicalResponse, type Choice } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import type { DecodeContext } from "../dialect.ts";
import { decodeTokens } from "../shared/openai-fields.ts";
import { readResponseUsage } from "./usage.ts";
import { asArray, asNumber, asObject, asString, withoutUndefined } from "../shared/wire-fields.ts";
import { unwrapInput } from "../shared/tools.ts";
import { decodeAnnotations, decodeFinish, decodeReasoningItem, sealsOf } from "./answer-fields.ts";
import { argumentsText } from "./items/decode-input.ts";
import { readReportedError } from "./errors.ts";

/**
 * Decodes a response from an upstream; see `UpstreamDialect.decodeResponse`. Fields of wrong types
 * count as absent.
 */
export function decodeResponse(body: unknown, context: DecodeContext = {}): CanonicalResponse {
  const fields = asObject(body);
  const output = asArray(fields?.output);
  const finish = fields && decodeFinish(fields);
  if (fields === undefined || output === undefined || finish === undefined)
    throw notAnAnswer(fields);
  const id = asString(fields.id) ?? "";
  const items = output.map((item) => asObject(item) ?? {});
  const parts = decodeItems(items, { id, context });
  return withoutUndefined<CanonicalResponse>({
    id,
    model: asString(fields.model) ?? "",
    createdAtSeconds: asNumber(fields.created_at) ?? 0,
    choices: [
      withoutUndefined<Choice>({
        index: 0,
        parts,
        finish: reconcileFinish(
          finish,
          parts.some((part) => part.type === "tool-call"),
        ),
        logProbabilities: decodeLogProbabilities(items),
      }),
    ],
    usage: readResponseUsage(fields),
    serviceTier: asString(fields.service_tier),
  });
}

function decodeItems(
  items: readonly JsonObject[],
  { id, context }: { id: string; context: DecodeContext },
): AssistantPart[] {
  let startsMessage = false;
  return items.flatMap((item, index) => {
    const parts = decodeItem(item, {
      context,
      startsMessage,
      mintedId: mintedCallId(id || (context.callSeed ?? ""), index),
    });
    startsMessage ||= item.type === "message" && parts.length > 0;
    return parts;
  });
}

/**
 * Returns an id for a call that came without one: the same for the same answer, and different for
 * every call.
 */
export const mintedCallId = (responseId: string, index: number): string =>
  `call_${responseId.replace(/[^a-zA-Z0-9]/g, "").slice(-24)}_${index}`;

function decodeLogProbabilities(items: readonly JsonObject[]): Choice["logProbabilities"] {
  const content = items.flatMap((item) =>
    (asArray(item.content) ?? []).flatMap((part) => decodeTokens(asObject(part)?.logprobs)),
  );
  return content.length === 0 ? undefined : { content };
}

/** Builds the error for a body without output, or one that has not ended well. */
function notAnAnswer(fields: JsonObject | undefined): GatewayError {
  if (!asObject(fields?.error))
    return new GatewayError("upstream_error", "The provider's answer is no finished response.");
  const { message } = readReportedError(fields as JsonObject);
  return new GatewayError("upstream_error", message, { metadata: { upstream_message: message } });
}

/** The context that decoding one item of an upstream's output needs. */
interface ItemSurroundings {
  context: DecodeContext;
  /** Whether a message preceded it in the same answer. */
  startsMessage: boolean;
  /** The id for a call that came without one. */
  mintedId: string;
}

/** Decodes a whole item of an upstream's output; none where it is empty. */
function decodeItem(item: JsonObject, surroundings: ItemSurroundings): AssistantPart[] {
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

/** Decodes a reasoning block with its maker's seal; undefined when it is an id alone. */
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

/** A call as the client knows it. */
interface CallFacts extends Pick<ToolCallPart, "kind" | "name" | "namespace"> {
  /** Whether it was sent as a function, so that its input is a member of the arguments. */
  unwraps: boolean;
}

/** Returns a call as the client knows it, regardless of its tool's name on this wire. */
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

/** Decodes an image that the model generated; undefined while there is none. */
export function decodeImage(item: JsonObject): ImagePart | undefined {
  const data = asString(item.result);
  if (!data) return undefined;
  return {
    type: "image",
    source: { type: "base64", mediaType: `image/${asString(item.output_format) ?? "png"}`, data },
  };
}
