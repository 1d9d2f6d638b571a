import type { Extensions } from "./dialect-id.ts";
import type { AssistantPart, Annotation, ImagePart, OpaquePart, ToolKind } from "./message.ts";
import type { JsonObject } from "./json.ts";
import type { ReasoningPart, Provenance } from "./reasoning.ts";
import { totalOutputTokens, type PictureKind, type Usage } from "../../platform/kernel/usage.ts";

/** An answer, of which `n` may ask for several. */
export interface Choice {
  index: number;
  /** The parts in the order in which they were generated. */
  parts: readonly AssistantPart[];
  finish: Finish;
  logProbabilities?: LogProbabilities;
  extensions?: Extensions;
}

/** A whole answer, independent of any dialect. */
export interface CanonicalResponse {
  /** The upstream's id. */
  id: string;
  /** The upstream's name of the model. */
  model: string;
  createdAtSeconds: number;
  choices: readonly Choice[];
  /** Absent when the provider sent none. */
  usage?: MeteredUsage;
  serviceTier?: string;
  systemFingerprint?: string;
  gateway?: GatewayFacts;
  extensions?: Extensions;
}

/** The reason for which a choice ended. */
export type FinishReason =
  | "stop"
  | "stop_sequence"
  | "length"
  | "tool_calls"
  | "content_filter"
  | "refusal"
  | "pause"
  | "error";

/** A finish reason with what the provider reported about it. */
export interface Finish {
  reason: FinishReason;
  /** The stop text that matched, where the provider reports it. */
  stopSequence?: string;
  /** The provider's explanation of a refusal. */
  explanation?: string;
  /** The provider's category of a refusal. */
  category?: string;
}

/**
 * Makes a reported end agree with what was delivered: calls have to be run even when the provider
 * reported `stop`, an announced call that never came must not be waited for, and a missing or
 * unknown reason is inferred. A cut (`length`) or filtered answer keeps its reason.
 */
export function reconcileFinish(reported: Finish | undefined, hasToolCalls: boolean): Finish {
  if (reported === undefined) return { reason: hasToolCalls ? "tool_calls" : "stop" };
  if (hasToolCalls && (reported.reason === "stop" || reported.reason === "stop_sequence"))
    return { reason: "tool_calls" };
  if (!hasToolCalls && reported.reason === "tool_calls") return { ...reported, reason: "stop" };
  return reported;
}

/** A token with the logarithm of its probability. */
export interface TokenProbability {
  token: string;
  logprob: number;
  /** The UTF-8 bytes of the token; null where it has none. */
  bytes?: readonly number[] | null;
}

/** A token of an answer with its alternatives. */
export interface TokenLogProbability extends TokenProbability {
  /** The most likely candidates at this place. */
  top: readonly TokenProbability[];
}

/** Log probabilities of an answer's tokens, or of those that one stream part adds. */
export interface LogProbabilities {
  content?: readonly TokenLogProbability[];
  refusal?: readonly TokenLogProbability[];
}

/** The facts that the gateway adds to an answer, known once the charge is committed. */
export interface GatewayFacts {
  /** The charge for this request in USD; shown as `usage.cost`. */
  costUsd?: number;
  /** The provider's own figure in USD; shown as `usage.cost_details.upstream_inference_cost`. */
  upstreamCostUsd?: number;
  /**
   * Whether the caller's own provider key was used; shown as `usage.is_byok` where the dialect has
   * it.
   */
  isByok?: boolean;
  /** The canonical id of the requested model, when another one served. */
  requestedModel?: string;
  /** The `fallback` block: used, reason, attempts. */
  fallback?: JsonObject;
  /** The metadata object: timings, creditsCharged, balanceAfterDebit. */
  metadata?: JsonObject;
}

/**
 * Converts a whole answer to the equivalent stream parts, for a client that asked for a stream
 * while the upstream sent none.
 */
export function responseParts(response: CanonicalResponse): StreamPart[] {
  const { id, model, createdAtSeconds, serviceTier, systemFingerprint, usage, gateway } = response;
  return [
    {
      type: "response-start",
      id,
      model,
      createdAtSeconds,
      ...(serviceTier !== undefined && { serviceTier }),
      ...(systemFingerprint !== undefined && { systemFingerprint }),
    },
    ...response.choices.flatMap(choiceParts),
    ...(usage === undefined ? [] : [{ type: "usage", usage } as const]),
    { type: "response-end", ...(gateway !== undefined && { gateway }) },
  ];
}

function choiceParts(choice: Choice): StreamPart[] {
  const { index: choiceIndex, logProbabilities } = choice;
  return [
    ...(logProbabilities ? [{ type: "logprobs", choiceIndex, ...logProbabilities } as const] : []),
    ...choice.parts.flatMap((part, itemIndex) => itemParts(part, { choiceIndex, itemIndex })),
    { type: "finish", choiceIndex, finish: choice.finish },
  ];
}

function itemParts(part: AssistantPart, place: ItemPlace): StreamPart[] {
  switch (part.type) {
    case "text": {
      const { text, annotations = [], startsMessage, phase } = part;
      return [
        {
          type: "text-start",
          ...place,
          ...(startsMessage !== undefined && { startsMessage }),
          ...(phase !== undefined && { phase }),
        },
        { type: "text-delta", ...place, text },
        ...annotations.map((annotation) => ({ type: "annotation", ...place, annotation }) as const),
        { type: "text-end", ...place },
      ];
    }
    case "reasoning":
      return reasoningParts(part, place);
    case "refusal":
      return [{ type: "refusal-delta", ...place, refusal: part.refusal }];
    case "tool-call": {
      const { kind, id, name, namespace, signature, provenance, extensions } = part;
      return [
        {
          type: "tool-call-start",
          ...place,
          kind,
          id,
          name,
          ...(namespace !== undefined && { namespace }),
          ...(signature !== undefined && { signature }),
          ...(provenance !== undefined && { provenance }),
          ...(extensions !== undefined && { extensions }),
        },
        { type: "tool-call-delta", ...place, arguments: part.arguments },
        { type: "tool-call-end", ...place },
      ];
    }
    case "audio-output": {
      const { type: _type, ...audio } = part;
      return [{ type: "audio-delta", ...place, ...audio }];
    }
    case "image":
      return [{ type: "image", ...place, image: part }];
    case "opaque":
      return [{ type: "opaque", ...place, part }];
  }
}

function reasoningParts(part: ReasoningPart, place: ItemPlace): StreamPart[] {
  const { id, format, text, summary = [], signature, encrypted, provenance } = part;
  return [
    {
      type: "reasoning-start",
      ...place,
      ...(id !== undefined && { id }),
      ...(format !== undefined && { format }),
    },
    ...summary.map(
      (one, summaryIndex) =>
        ({ type: "reasoning-delta", ...place, text: one, summaryIndex }) as const,
    ),
    ...(text === undefined ? [] : [{ type: "reasoning-delta", ...place, text } as const]),
    {
      type: "reasoning-end",
      ...place,
      ...(signature !== undefined && { signature }),
      ...(encrypted !== undefined && { encrypted }),
      ...(provenance !== undefined && { provenance }),
    },
  ];
}

/** A usage vector, and how far it can be trusted. */
export interface MeteredUsage {
  usage: Usage;
  /** Whether the provider sent none, so that the counts are the gateway's estimate. */
  estimated: boolean;
  /** Whether the provider's counts were negative, implausible or contradictory and were clamped. */
  clamped: boolean;
  /**
   * The provider's own figure for this request in USD, as it wrote it; absent when it sent none.
   */
  providerCostUsd?: number;
  /** Facts that the provider reports beside tokens, such as the requests of its own tools. */
  extensions?: Extensions;
  /** The levels that the provider says it served the request at, as it names them. */
  levels?: { service_tier?: string; speed?: string; inference_geo?: string };
  /** The size and quality of the pictures that were made. */
  picture?: PictureKind;
}

const charactersPerToken = 4;

/**
 * Estimates usage that the provider did not send: four characters per token, and at least one token
 * where there was any text. It is flagged as estimated, so that it is never taken for a provider's
 * count.
 */
export const estimateUsage = (sizes: {
  inputCharacters: number;
  outputCharacters: number;
}): MeteredUsage => ({
  usage: {
    inputTokens: Math.ceil(sizes.inputCharacters / charactersPerToken),
    outputTokens: Math.ceil(sizes.outputCharacters / charactersPerToken),
  },
  estimated: true,
  clamped: false,
});

/**
 * Raises usage that was reported before the end of a stream to at least what was delivered, since
 * until the end many providers report no output, or that of the start.
 */
export function coveringDelivered(
  reported: MeteredUsage,
  deliveredCharacters: number,
): MeteredUsage {
  const missing =
    Math.ceil(deliveredCharacters / charactersPerToken) - totalOutputTokens(reported.usage);
  if (missing <= 0) return reported;
  return {
    ...reported,
    usage: { ...reported.usage, outputTokens: (reported.usage.outputTokens ?? 0) + missing },
    estimated: true,
  };
}

/**
 * The place of a part: the choice, and the content item of it, counted from 0 in order of opening.
 */
export interface ItemPlace {
  choiceIndex: number;
  itemIndex: number;
}

/** A piece of a text. */
export interface TextDelta extends ItemPlace {
  type: "text-delta";
  text: string;
  /** The text in JSON, as `JSON.stringify` returns it, where an upstream's event has it so. */
  json?: string;
}

/** A piece of reasoning. */
interface ReasoningDelta extends ItemPlace {
  type: "reasoning-delta";
  text: string;
  /** The summary that the text belongs to; absent where it belongs to the reasoning itself. */
  summaryIndex?: number;
}

/** A piece of a call's arguments. */
interface ToolCallDelta extends ItemPlace {
  type: "tool-call-delta";
  /** JSON text of a function's arguments, or the input of a custom tool, to be appended. */
  arguments: string;
}

/** A piece of text, of reasoning or of a call's arguments. */
export type SpokenPart = TextDelta | ReasoningDelta | ToolCallDelta;

/** Returns the text of a piece. */
export const spokenText = (part: SpokenPart): string =>
  part.type === "tool-call-delta" ? part.arguments : part.text;

/**
 * A step of a streamed answer. `response-start` comes first; an item's deltas come between its
 * start and its end; several tool calls may be open at once, but only one text and one reasoning
 * item; `finish` comes once for every choice, after its items have ended; `usage` at most once,
 * after the last `finish`; `response-end` or `error` is last.
 */
export type StreamPart =
  | ResponseStart
  | ({ type: "text-start"; startsMessage?: boolean; phase?: string } & ItemPlace)
  | TextDelta
  | ({ type: "text-end" } & ItemPlace)
  | ({ type: "reasoning-start"; id?: string; format?: string } & ItemPlace)
  | ReasoningDelta
  | ReasoningEnd
  | ToolCallStart
  | ToolCallDelta
  | ({ type: "tool-call-end" } & ItemPlace)
  | ({ type: "refusal-delta"; refusal: string } & ItemPlace)
  /** Belongs to the text item at its place, which may have ended. */
  | ({ type: "annotation"; annotation: Annotation } & ItemPlace)
  /** Precedes the text or refusal delta whose tokens it describes. */
  | ({ type: "logprobs"; choiceIndex: number } & LogProbabilities)
  | AudioDelta
  | ({ type: "image"; image: ImagePart } & ItemPlace)
  | ({ type: "opaque"; part: OpaquePart } & ItemPlace)
  | { type: "finish"; choiceIndex: number; finish: Finish }
  | { type: "usage"; usage: MeteredUsage }
  | ErrorPart
  | { type: "response-end"; gateway?: GatewayFacts };

/** A part of one item of an answer. */
export type ItemPart = Extract<StreamPart, ItemPlace>;

/** The start of the answer, with the upstream's own names for it. */
export interface ResponseStart {
  type: "response-start";
  id: string;
  model: string;
  createdAtSeconds: number;
  serviceTier?: string;
  systemFingerprint?: string;
}

/** The end of a reasoning item, whose seal is known only now. */
export interface ReasoningEnd extends ItemPlace {
  type: "reasoning-end";
  signature?: string;
  encrypted?: string;
  provenance?: Provenance;
}

/** The start of a call, with its name; the arguments follow. */
export interface ToolCallStart extends ItemPlace {
  type: "tool-call-start";
  kind: ToolKind;
  id: string;
  name: string;
  namespace?: string;
  /** Gemini's thought signature. */
  signature?: string;
  provenance?: Provenance;
  extensions?: Extensions;
}

/** A piece of sound; the id and the expiry come once. */
export interface AudioDelta extends ItemPlace {
  type: "audio-delta";
  id?: string;
  /** Base64, to be appended. */
  data?: string;
  /** A part of the transcript, to be appended. */
  transcript?: string;
  expiresAtSeconds?: number;
}

/** The end in failure. A cut stream is an error, so that it never looks complete. */
export interface ErrorPart {
  type: "error";
  error: ReportedError;
  /**
   * `reported`: the upstream reported it; `cut`: the connection ended; `malformed`: it could not be
   * read.
   */
  fault: "reported" | "cut" | "malformed";
}

/**
 * An error as an upstream reported it or as a client sees it; only the message is always present.
 */
export interface ReportedError {
  message: string;
  code?: string;
  type?: string;
  param?: string;
  /** The HTTP status, where the report names one. */
  status?: number;
  /** Seconds that the caller should wait before it tries again. */
  retryAfterSeconds?: number;
  metadata?: JsonObject;
  /** Anthropic's object of further facts, which its clients act upon. */
  details?: JsonObject;
  /**
   * Whether the model generated tokens but no usable answer, so that the provider's usage counts.
   */
  generated?: true;
}

/** A fallback, by which another model than the requested one served. */
export interface ModelFallback {
  requestedModel: string;
  reason: string;
  attempts: readonly {
    model: string;
    provider: string;
    status: number | null;
    outcome: string;
    reason: string | null;
  }[];
}
