import type { TextPart, AssistantPart, ToolCallPart } from "../../canonical/message.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import type { CanonicalResponse, Choice } from "../../canonical/response.ts";
import { opaqueName } from "../shared/encode-state.ts";
import { dataUrl } from "../shared/openai-fields.ts";
import type { LossDetector, ResponseContext } from "../dialect.ts";
import { withoutUndefined } from "../shared/wire-fields.ts";
import {
  encodeAnnotation,
  encodeDetails,
  encodeFinish,
  encodeLogProbabilities,
  errorOfFinish,
  joinTexts,
  needsDetails,
  providerMember,
  reasoningText,
  signatureField,
} from "./answer-fields.ts";
import { encodeUsage } from "./usage.ts";
import { addGatewayFields } from "../shared/gateway-facts.ts";

/** Encodes a chat completion for a client. */
export function encodeResponse(
  response: CanonicalResponse,
  context: ResponseContext = {},
): JsonObject {
  const { usage, gateway, extensions } = response;
  const body: Record<string, JsonValue | undefined> = {
    id: context.id ?? response.id,
    object: "chat.completion",
    created: response.createdAtSeconds,
    model: context.model ?? response.model,
    choices: response.choices.map((choice) => encodeChoice(choice, context)),
  };
  if (usage !== undefined) body.usage = encodeUsage(usage, gateway);
  if (response.serviceTier !== undefined) body.service_tier = response.serviceTier;
  // OpenRouter's client (1.3.19) refuses a completion without this member; in chunks it may be
  // missing.
  body.system_fingerprint = response.systemFingerprint ?? null;
  if (context.providerId !== undefined) body[providerMember] = context.providerId;
  const broken = response.choices.find(({ finish }) => finish.reason === "error");
  if (broken !== undefined) body.error = errorOfFinish(broken.finish);
  if (extensions?.dialect === "openai-chat") Object.assign(body, extensions.fields);
  addGatewayFields(body, gateway);
  return body;
}

/**
 * Detects what chat has no member for, and calls beyond the one that the older `function_call`
 * holds.
 */
export function createLossDetector({ request }: ResponseContext = {}): LossDetector {
  let calls = 0;
  return (part) => {
    switch (part.type) {
      case "image":
        return encodeImage(part.image).length === 0 ? "image" : undefined;
      case "annotation":
        return encodeAnnotation(part.annotation, [0, 0]).length === 0 ? "annotations" : undefined;
      case "opaque":
        return opaqueName(part.part);
      case "tool-call-start":
        calls += 1;
        return request?.legacyFunctions === true && calls > 1 ? "tool_calls" : undefined;
      default:
        return undefined;
    }
  };
}

function encodeChoice(choice: Choice, { request }: ResponseContext): JsonObject {
  const legacyFunctions = request?.legacyFunctions === true;
  const parts =
    request?.reasoning?.exclude === true
      ? choice.parts.filter((part) => part.type !== "reasoning")
      : choice.parts;
  return {
    index: choice.index,
    message: encodeMessage(parts, { choice, legacyFunctions }),
    logprobs: choice.logProbabilities ? encodeLogProbabilities(choice.logProbabilities) : null,
    ...encodeFinish(choice.finish, { legacyFunctions }),
  };
}

function encodeMessage(
  parts: readonly AssistantPart[],
  facts: { choice: Choice; legacyFunctions: boolean },
): JsonObject {
  const [only] = parts;
  // Most answers are one text.
  if (parts.length === 1 && only?.type === "text" && only.annotations === undefined) {
    return { role: "assistant", content: only.text, refusal: explainedRefusal(facts.choice) };
  }
  const texts = parts.filter((part): part is TextPart => part.type === "text");
  const calls = parts.filter((part): part is ToolCallPart => part.type === "tool-call");
  const annotations = encodeSources(texts);
  const audio = parts.find((part) => part.type === "audio-output");
  const images = parts.flatMap((part) => (part.type === "image" ? encodeImage(part) : []));
  return withoutUndefined<JsonObject>({
    role: "assistant",
    content: texts.length === 0 ? null : joinTexts(texts),
    refusal: refusalText(parts, facts.choice),
    ...encodeThoughts(parts),
    annotations: annotations.length === 0 ? undefined : annotations,
    audio: audio && encodeAudio(audio),
    images: images.length === 0 ? undefined : images,
    ...encodeCalls(calls, facts.legacyFunctions),
  });
}

/** Encodes the citations of the texts that are joined to one. */
function encodeSources(texts: readonly TextPart[]): JsonObject[] {
  return texts.flatMap(({ annotations = [], text }, index) => {
    if (annotations.length === 0) return [];
    const end = joinTexts(texts.slice(0, index + 1)).length;
    return annotations.flatMap((each) => encodeAnnotation(each, [end - text.length, end]));
  });
}

function refusalText(parts: readonly AssistantPart[], choice: Choice): string | null {
  const said = parts.flatMap((part) => (part.type === "refusal" ? [part.refusal] : [])).join("");
  return said === "" ? explainedRefusal(choice) : said;
}

const explainedRefusal = ({ finish }: Choice): string | null =>
  finish.reason === "refusal" ? (finish.explanation ?? null) : null;

function encodeThoughts(parts: readonly AssistantPart[]): JsonObject {
  const thoughts = parts.filter((part): part is ReasoningPart => part.type === "reasoning");
  if (thoughts.length === 0) return {};
  const text = reasoningText(thoughts);
  // Clients like DeepSeek's read the first name, OpenRouter's the second; each reads only one of
  // them.
  return {
    reasoning_content: text,
    reasoning: text,
    reasoning_details: needsDetails(thoughts) ? encodeDetails(parts) : undefined,
  };
}

/** Encodes sound as chat shows it, in answers and in deltas. */
export const encodeAudio = (audio: {
  id?: string;
  data?: string;
  transcript?: string;
  expiresAtSeconds?: number;
}): JsonObject =>
  withoutUndefined<JsonObject>({
    id: audio.id,
    data: audio.data,
    expires_at: audio.expiresAtSeconds,
    transcript: audio.transcript,
  });

/**
 * Encodes an image that the model generated, as OpenRouter shows it; one that is only an uploaded
 * file cannot be shown.
 */
export function encodeImage({ source }: Extract<AssistantPart, { type: "image" }>): JsonObject[] {
  if (source.type === "file") return [];
  return [
    { type: "image_url", image_url: { url: source.type === "url" ? source.url : dataUrl(source) } },
  ];
}

function encodeCalls(calls: readonly ToolCallPart[], legacyFunctions: boolean): JsonObject {
  const first = calls[0];
  if (first === undefined) return {};
  if (legacyFunctions) return { function_call: { name: first.name, arguments: first.arguments } };
  return { tool_calls: calls.map(encodeCall) };
}

const encodeCall = (call: ToolCallPart): JsonObject => ({
  id: call.id,
  ...(call.kind === "custom"
    ? { type: "custom", custom: { name: call.name, input: call.arguments } }
    : {
        type: "function",
        function: {
          name: call.name,
          arguments: call.arguments.trim() === "" ? "{}" : call.arguments,
        },
      }),
  ...signatureField(call),
});
