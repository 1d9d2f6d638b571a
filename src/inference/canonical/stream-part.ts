import type { Annotation, ImagePart, OpaquePart } from "./message.ts";
import type { Extensions } from "./dialect-id.ts";
import type { Finish, GatewayFacts, LogProbabilities, MeteredUsage } from "./response.ts";
import type { Provenance } from "./reasoning.ts";
import type { ToolKind } from "./request.ts";
import type { JsonObject } from "./json.ts";

/**
 * Where a part belongs: which choice, and which content item of it, counted from 0 in order of
 * opening.
 */
export interface ItemPlace {
  choiceIndex: number;
  itemIndex: number;
}

/**
 * One step of a streamed answer. `response-start` comes first; an item's deltas stand between its
 * start and its end; several tool calls may be open at once, of text and reasoning one each;
 * `finish` comes once for every choice, after its items have ended; `usage` at most once, after the
 * last `finish`;
 * `response-end` or `error` is last.
 */
export type StreamPart =
  | ResponseStart
  | ({ type: "text-start"; startsMessage?: boolean; phase?: string } & ItemPlace)
  | ({ type: "text-delta"; text: string } & ItemPlace)
  | ({ type: "text-end" } & ItemPlace)
  | ({ type: "reasoning-start"; id?: string; format?: string } & ItemPlace)
  /** With `summaryIndex` the text belongs to that summary, without it to the thought itself. */
  | ({ type: "reasoning-delta"; text: string; summaryIndex?: number } & ItemPlace)
  | ReasoningEnd
  | ToolCallStart
  /** JSON text of a function's arguments, or the input of a custom tool, to be appended. */
  | ({ type: "tool-call-delta"; arguments: string } & ItemPlace)
  | ({ type: "tool-call-end" } & ItemPlace)
  | ({ type: "refusal-delta"; refusal: string } & ItemPlace)
  /** Belongs to the text item at its place, which may have ended. */
  | ({ type: "annotation"; annotation: Annotation } & ItemPlace)
  /** Stands before the text or refusal delta whose tokens it describes. */
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

/** Begins the answer; the upstream's own names for it. */
export interface ResponseStart {
  type: "response-start";
  id: string;
  model: string;
  createdAtSeconds: number;
  serviceTier?: string;
  systemFingerprint?: string;
}

/** Closes a thought; its seal is known only now. */
export interface ReasoningEnd extends ItemPlace {
  type: "reasoning-end";
  signature?: string;
  encrypted?: string;
  provenance?: Provenance;
}

/** Announces a call with its name; the arguments follow. */
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
  /** To be appended. */
  transcript?: string;
  expiresAtSeconds?: number;
}

/** Nothing follows. A cut stream is an error, so that it never looks complete. */
export interface ErrorPart {
  type: "error";
  error: ReportedError;
  /**
   * `reported`: the upstream said so; `cut`: it went away; `malformed`: it could not be understood.
   */
  fault: "reported" | "cut" | "malformed";
}

/** An error as an upstream reported it or as a client sees it; only the message is certain. */
export interface ReportedError {
  message: string;
  code?: string;
  type?: string;
  param?: string;
  /** HTTP status, where the report names one. */
  status?: number;
  /** Seconds that the caller should wait before it tries again. */
  retryAfterSeconds?: number;
  metadata?: JsonObject;
  /** The model did generate, but no answer: what the provider counted was used. */
  generated?: true;
}
