import type { JsonObject } from "../../canonical/json.ts";
import type { Annotation, AssistantPart, ToolCallPart } from "../../canonical/message.ts";
import type { ReasoningPart } from "../../canonical/reasoning.ts";
import {
  reconcileFinish,
  type CanonicalResponse,
  type Choice,
  type ItemPart,
} from "../../canonical/response.ts";
import type { LossDetector, ResponseContext } from "../dialect.ts";
import { opaqueName } from "../shared/encode-state.ts";
import { gatewayFields } from "../shared/gateway-facts.ts";
import { argumentsObject, wrapInput } from "../shared/tools.ts";
import { withoutUndefined } from "../shared/wire-fields.ts";
import {
  encodeFinish,
  encodeGrounding,
  encodeLogProbabilities,
  meanLogProbability,
} from "./answer-fields.ts";
import { carrySeals } from "./contents/seals.ts";
import { encodeUsage } from "./usage.ts";

/** Encodes an answer for a client, as one chunk of a stream has it too. */
export function encodeResponse(
  response: CanonicalResponse,
  context: ResponseContext = {},
): JsonObject {
  const { createdAtSeconds: seconds } = response;
  return {
    candidates: response.choices.map((choice) => encodeChoice(choice, context)),
    usageMetadata: encodeUsage(response.usage ?? nothingReported, response.gateway),
    modelVersion: context.model ?? response.model,
    responseId: context.id ?? response.id,
    ...(seconds > 0 && seconds < lastSecond && { createTime: timeOf(seconds) }),
    ...gatewayFields(response.gateway),
  };
}

/** The end of the times that a date can have; what providers name beyond it is left out. */
const lastSecond = 8.64e12;

const timeOf = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** The usage where none was reported, since clients read one from every answer. */
export const nothingReported = { usage: {}, estimated: true, clamped: false };

/** Returns whether a client wants one of a list of texts by itself. */
export const picksText = ({ request }: ResponseContext): boolean =>
  request?.output?.type === "json-schema" && request.output.picksText === true;

/** Returns the text that was picked, which other vendors answer in the JSON that they were asked for. */
export function pickedText(text: string): string {
  try {
    const { value } = Object(JSON.parse(text)) as { value?: unknown };
    return typeof value === "string" ? value : text;
  } catch {
    return text;
  }
}

const withPickedText = (parts: readonly AssistantPart[]): AssistantPart[] =>
  parts.map((part) => (part.type === "text" ? { ...part, text: pickedText(part.text) } : part));

function encodeChoice(choice: Choice, context: ResponseContext): JsonObject {
  const { index, finish, logProbabilities } = choice;
  const parts = picksText(context) ? withPickedText(choice.parts) : choice.parts;
  const texts = parts.flatMap((part) => (part.type === "text" ? [part] : []));
  return withoutUndefined<JsonObject>({
    content: { parts: encodeParts(parts, { hides: hidesThoughts(context) }), role: "model" },
    ...encodeFinish(
      reconcileFinish(
        finish,
        parts.some(({ type }) => type === "tool-call"),
      ),
    ),
    index,
    ...encodeGrounding(
      texts.flatMap(({ annotations = [] }) => annotations),
      texts.map(({ text }) => text).join(""),
    ),
    avgLogprobs: logProbabilities && meanLogProbability(logProbabilities),
    logprobsResult: logProbabilities && encodeLogProbabilities(logProbabilities),
  });
}

/** Returns whether a client is not shown thoughts: Google shows them only where it is asked to. */
export const hidesThoughts = ({ request }: ResponseContext): boolean =>
  request !== undefined && request.reasoning?.exclude !== false;

/** Encodes the parts of a whole answer. */
function encodeParts(parts: readonly AssistantPart[], { hides }: { hides: boolean }): JsonObject[] {
  const writer = new PartWriter(hides);
  return [...parts.flatMap((part) => writer.write(part)), ...writer.finish()];
}

/**
 * Writes the parts of an answer. The reasoning before a part is sealed in its thought signature,
 * where clients keep it for the next turn; the thoughts themselves are shown or left out.
 */
export class PartWriter {
  private pending: ReasoningPart[] = [];

  constructor(private readonly hides: boolean) {}

  /** Returns the wire parts of a part; none for what Google's answers cannot express. */
  write(part: AssistantPart): JsonObject[] {
    switch (part.type) {
      case "text":
        return part.text === "" ? [] : [{ text: part.text, ...this.seal() }];
      case "refusal":
        return part.refusal === "" ? [] : [{ text: part.refusal, ...this.seal() }];
      case "reasoning":
        return this.think(part);
      case "tool-call":
        return [{ functionCall: encodeCall(part), ...this.seal(part) }];
      case "image":
        return encodeImage(part);
      case "audio-output":
        return encodeSound(part);
      case "opaque":
        return part.dialect === "google-generate" ? [part.value] : [];
    }
  }

  /** Notes a block of reasoning that was shown piece by piece. */
  note(thought: ReasoningPart): void {
    this.pending.push(thought);
  }

  /** Returns the part that bears the seal of reasoning that nothing followed. */
  finish(): JsonObject[] {
    const isSealed = this.pending.some(
      ({ signature, encrypted }) => signature !== undefined || encrypted !== undefined,
    );
    return isSealed ? [{ text: "", ...this.seal() }] : [];
  }

  private think(part: ReasoningPart): JsonObject[] {
    this.pending.push(part);
    const words = part.text ?? part.summary?.join("\n\n") ?? "";
    return this.hides || words === "" ? [] : [{ text: words, thought: true }];
  }

  /** Returns the signature that carries the reasoning so far. */
  seal(call?: Pick<ToolCallPart, "signature" | "provenance">): JsonObject {
    const thoughts = this.pending;
    this.pending = [];
    const signed = call?.signature === undefined ? undefined : call;
    if (thoughts.length === 0 && signed === undefined) return {};
    return { thoughtSignature: carrySeals({ thoughts, ...(signed && { call: signed }) }) };
  }
}

/** Encodes a call, complete as Google's are. */
export const encodeCall = ({
  id,
  name,
  kind,
  arguments: text,
}: Pick<ToolCallPart, "id" | "name" | "kind" | "arguments">): JsonObject => ({
  id,
  name,
  args: argumentsObject(kind === "custom" ? wrapInput(text) : text),
});

/** Encodes a picture; addresses and uploads of other vendors are no bytes. */
export const encodeImage = ({ source }: Extract<AssistantPart, { type: "image" }>): JsonObject[] =>
  source.type === "base64"
    ? [{ inlineData: { mimeType: source.mediaType, data: source.data } }]
    : [];

/** Encodes sound and its transcript, which is text here. */
export const encodeSound = ({
  data,
  transcript,
}: {
  data?: string;
  transcript?: string;
}): JsonObject[] => [
  ...(transcript ? [{ text: transcript }] : []),
  ...(data ? [{ inlineData: { mimeType: "audio/wav", data } }] : []),
];

/** Detects what Google's answers have no part for. */
export const createLossDetector = (): LossDetector => (part: ItemPart) => {
  switch (part.type) {
    case "image":
      return part.image.source.type === "base64" ? undefined : "image";
    case "annotation":
      return isCited(part.annotation) ? undefined : "annotations";
    case "opaque":
      return part.part.dialect === "google-generate" ? undefined : opaqueName(part.part);
    default:
      return undefined;
  }
};

const isCited = ({ type }: Annotation): boolean => type === "url";
