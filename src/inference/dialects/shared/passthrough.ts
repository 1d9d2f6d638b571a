import type { DialectId } from "../../canonical/dialect-id.ts";
import type { Loss } from "../../canonical/request.ts";
import type { ReasoningLevels } from "../../canonical/reasoning.ts";
import {
  inputParts,
  isMedia,
  outputParts,
  totalInputTokens,
  totalOutputTokens,
  type Usage,
  type UsagePart,
} from "../../../platform/kernel/usage.ts";
import { estimateUsage, type MeteredUsage } from "../../canonical/response.ts";
import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Frames } from "../../../platform/kernel/frame-source.ts";
import type { DialectDeviations, RefusedParameters } from "../dialect.ts";
import type { ModelFallback } from "./gateway-facts.ts";
import type { AnswerReader } from "./stream/answer-reader.ts";
import type { StreamWriter } from "./stream/stream-writer.ts";

/** A request as its client wrote it. */
export interface OriginalRequest {
  /** The dialect of the endpoint that received it. */
  dialect: DialectId;
  /** The body as it was received. */
  text: string;
  /** The parsed body, whose envelope was checked. It is never changed. */
  body: Readonly<Record<string, unknown>>;
  /** 32 hexadecimal digits, from which the ids that the client sees are formed. */
  traceId: string;
  /**
   * The client's headers that its dialect passes on, such as `anthropic-beta`; lower-case names.
   */
  dialectHeaders: Readonly<Record<string, string>>;
  /** Returns the Unix time in seconds, for answers that name the time when they were finished. */
  nowSeconds(): number;
  /** The earlier answers that the body refers to; absent where it refers to none. */
  previousAnswers?: PreviousAnswers;
}

/** Earlier answers of the workspace by the id that its client saw, as their provider knows them. */
export type PreviousAnswers = ReadonlyMap<string, { providerId: string; upstreamId: string }>;

/**
 * Returns the members of a body that matter once its answer has begun: not the messages, the input
 * or the system prompt, and tools only of Responses, whose answers repeat them.
 */
export function withoutConversation(body: OriginalRequest["body"]): OriginalRequest["body"] {
  const { messages, input: _input, system: _system, contents, ...rest } = body;
  if (messages === undefined && contents === undefined) return rest;
  const { tools: _tools, ...others } = rest;
  return others;
}

/** The parts of a route that a request's body depends on. */
export interface TargetRoute {
  model: { reasoning?: ReasoningLevels };
  route: {
    upstreamModel: string;
    maxCompletionTokens?: number;
    /** The parameters that the route declares; absent permits all. */
    supportedParameters?: readonly string[];
    /** The effort levels of this route; absent means the model's own. */
    reasoning?: ReasoningLevels;
    /** Whether the route can reason, whether or not it declares levels. */
    reasoningFeature?: boolean;
    /** Parameters that the model answers with 400. */
    refuses?: RefusedParameters;
    provider: { id: string; deviations: DialectDeviations };
  };
  /**
   * The most output tokens of each answer, where that is less than requested: what the caller can
   * pay for at the route's price.
   */
  outputCap?: number;
}

/** The facts that the gateway adds to an answer, once the charge is committed. */
export interface ShownAnswer {
  /** The id of the answer as the client sees it, with its dialect's prefix. */
  id: string;
  /** The public id of the model that served. */
  model: string;
  /** The usage that was charged: the provider's as far as it is plausible, or an estimate. */
  metered: MeteredUsage;
  chargedNano: bigint;
  /** Whether the answer costs its caller nothing, regardless of its tokens. */
  free?: boolean;
  /** Whether the caller's own provider key paid for it. */
  isByok?: boolean;
  fallback: ModelFallback | undefined;
  /** Returns the JSON text of `service_metadata`, for a dialect that has it in the body. */
  metadataText(): string;
}

/** The parts of a whole answer that settlement reads. */
export interface WholeAnswer {
  upstreamId: string | null;
  /** The finish reason in the upstream's terms; null when it gave none. */
  finishReason: string | null;
  /** The provider's usage; undefined when it sent none. */
  metered: MeteredUsage | undefined;
  /** Characters of everything that the model generated, for an estimate. */
  outputCharacters: number;
  /** Whether there is anything that a client can use. */
  hasContent: boolean;
  /** Whether the whole output cap was spent on reasoning without any content. */
  spentOnReasoning: boolean;
  /**
   * The parts of the answer that the client's dialect cannot carry; absent where the bytes are
   * kept.
   */
  losses?: readonly Loss[];
  /** Returns the body for the client, in its dialect. */
  render(shown: ShownAnswer): string;
}

/** A server-sent event: its `event:` name, where it had one, and its data. */
export interface SseEvent {
  event?: string;
  data: string;
}

/**
 * The text that events are read from. A relay that recognises events by their text may take them
 * here, and then moves the position behind them.
 */
export interface EventText {
  /** Whole lines, each ended by a line feed. */
  readonly text: string;
  /** The index of the first character that was not taken. */
  position: number;
  /** Whether no event has been read in part before the position. */
  readonly isBetween: boolean;
}

/** The texts of events that are taken without being decoded, for one that counts them. */
export interface CountedTexts {
  /** The most characters that may be taken, less those that were noted. */
  readonly charactersMax: number;
  /** Notes what was taken. */
  note(text: string, said: { isThought: boolean }): void;
}

/** The options of a relay. */
export interface RelayOptions {
  /** The id and catalog model that the client sees; the id has its dialect's prefix. */
  shown: { id: string; model: string };
  /** The estimated input tokens, for a provider that reports no usage. */
  inputTokens: number;
  /** The model's context window, beyond which reported usage is not trusted. */
  windowTokens: number;
  fallback: ModelFallback | undefined;
  /**
   * Charges the present result of `metered()` and resolves when the charge is durable. Only the
   * first call charges; later ones get the same promise. Only what was settled may be shown as
   * cost.
   */
  settle(): Promise<{ chargedNano: bigint; isByok?: boolean }>;
  /** Returns the JSON text of `service_metadata`; to be called after `settle`. */
  metadataText(): string;
}

/**
 * Relays one upstream's events as one client's frames, for one stream. Frames are whole SSE text;
 * an empty string means none yet. A relay throws `StreamFault` for failures of its upstream, after
 * which only `fail` returns further frames.
 */
export interface StreamRelay {
  /**
   * Takes events from the text itself and returns their frames, as `accept` would for each; an
   * empty string where the next is for `accept`. With `texts`, only what those allow.
   */
  acceptAlike?(events: EventText, texts?: CountedTexts): string;
  /**
   * Returns the frames of an event. Only the event that ends the stream returns a promise, since it
   * waits for the settlement; every event of every stream passes here, so others create none
   * (decision 0038).
   */
  accept(event: SseEvent): string | Promise<string>;
  /**
   * Ends a stream whose connection closed before a terminal event: closes what is complete. Throws
   * `StreamFault` where the answer was cut (malformed) or had no content (empty answer).
   */
  finish(): Promise<string>;
  /**
   * Ends the stream as an answer that has reached its limit: what has come is kept, and nothing
   * more is read from its upstream.
   */
  endAtCap(): Promise<string>;
  /**
   * Returns the frames that end the stream with an error in the client's dialect, consistent with
   * what the client has received.
   */
  fail(error: GatewayError): string;
  /** Notes that the client has left before the end, where that changes what was consumed. */
  leave?(): void;
  /**
   * Returns what was consumed so far: the provider's count, bounded by the model's window, or an
   * estimate.
   */
  metered(): MeteredUsage;
  /** Characters of all content so far. */
  readonly outputCharacters: number;
  /** Whether the terminal frames were returned, so that nothing follows. */
  readonly ended: boolean;
  /** Whether anything has come that a client could show or act on. */
  readonly hasContent: boolean;
  /** Whether every choice has finished, so that only the upstream's own end is awaited. */
  readonly finished: boolean;
  readonly finishReason: string | null;
  readonly upstreamId: string | null;
  /**
   * The parts of the answer so far that the client's dialect could not carry; absent where the
   * bytes are kept.
   */
  readonly losses?: readonly Loss[];
  /** The frame that is sent while the upstream is silent; never within an event. */
  readonly pingFrame: string;
  /**
   * The long base64 that is not in the text of frames, which have a marker in its place; absent
   * where all of it is.
   */
  readonly aside?: BytesOfFrames | undefined;
}

/** The long base64 of a stream. */
interface BytesOfFrames {
  /** Whether there was none so far, so that frames have no markers. */
  readonly isEmpty: boolean;
  /** Bytes that are kept. */
  readonly size: number;
  /**
   * Returns the text of the pieces of an event, with markers for its long base64; undefined where it
   * has none.
   */
  textWithout(pieces: readonly Uint8Array[]): string | undefined;
  /** Returns frames with their base64, which is let go unless it may be shown again. */
  restore(frames: string): Frames;
  /** Returns the same as one text, and lets nothing go. */
  textOf(frames: string): string;
}

/** A request as its upstream is sent it, and its whole answer. */
interface Exchange {
  /** The body that is sent upstream, as JSON text. */
  readonly requestText: string;
  /** The same body in parts, which a long one is sent in without joining them; absent means one. */
  readonly requestParts?: readonly string[] | undefined;
  /** Headers that are sent with it, beside the provider's own. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
  /** Parts of the request that the upstream is not sent. */
  readonly losses: readonly Loss[];
  /** Reads a whole answer; undefined when the body is none. `body` is `text` parsed. */
  readWhole(text: string, body: object): WholeAnswer | undefined;
}

/**
 * A request and its answer where client and upstream speak the same dialect, with the bytes kept.
 */
export interface Passthrough extends Exchange {
  /** Returns what reads the answer's stream, and what writes it with its bytes kept. */
  openStream(options: RelayOptions): { reader: AnswerReader; writer: StreamWriter };
}

/** A request and its answer, with the relay of its stream. */
export interface RelayedExchange extends Exchange {
  createRelay(options: RelayOptions): StreamRelay;
}

/**
 * Passes a request on to a route of its own dialect: the original text, with only those members
 * replaced that have to change.
 */
export type PassThrough = (request: OriginalRequest, route: TargetRoute) => Passthrough;

/** Anthropic's smallest reasoning budget, below which no budget is lowered. */
export const budgetTokensMin = 1_024;

/**
 * Returns a reasoning budget below a cap that includes it: lowered with the cap, to four fifths of
 * it where there is room, so that something is left for the answer.
 */
export const budgetWithin = (cap: number, budgetTokens: number): number =>
  budgetTokens < cap
    ? budgetTokens
    : Math.min(cap - 1, Math.max(budgetTokensMin, Math.floor(cap * 0.8)));

/**
 * Returns the lower of the requested cap and the affordable one; undefined where there is neither.
 */
export function lowerCap(asked: unknown, outputCap: number | undefined): number | undefined {
  if (typeof asked !== "number") return outputCap;
  return outputCap === undefined || asked <= outputCap ? asked : outputCap;
}

/** An output cap as the gateway sends it to a route. */
interface FittedCap {
  /** Undefined where none is named. */
  cap: number | undefined;
  losses: readonly Loss[];
}

/**
 * Returns the requested cap, lowered to what the caller can pay for and to what the route allows,
 * since providers answer a larger one with 400.
 */
export function fittedCap(
  asked: unknown,
  {
    field,
    route: { maxCompletionTokens: largest },
    outputCap,
  }: {
    field: "max_tokens" | "max_output_tokens" | "maxOutputTokens";
    route: TargetRoute["route"];
    outputCap: number | undefined;
  },
): FittedCap {
  const cap = lowerCap(asked, outputCap);
  if (cap === undefined || largest === undefined || cap <= largest) return { cap, losses: [] };
  return {
    cap: largest,
    losses: [{ field, reason: `cut to the ${largest} that the provider allows for this model` }],
  };
}

/**
 * The multiple of the model's window beyond which a count is not plausible. Smaller excesses are
 * possible: catalogs lag behind, and a window that was raised must not make requests cheaper.
 */
const absurdWindows = 10;

/**
 * Bounds usage to what the model could have consumed. Where a provider reports many times what fits
 * the model's window, the counts are cut to the window and flagged, so that a provider's error
 * empties no balance.
 */
export function boundUsage(metered: MeteredUsage, windowTokens: number): MeteredUsage {
  const { usage } = metered;
  const most = windowTokens * absurdWindows;
  if (totalInputTokens(usage) <= most && totalOutputTokens(usage) <= most) return metered;
  return {
    ...metered,
    usage: {
      ...usage,
      ...cut(usage, inputParts, windowTokens),
      ...cut(usage, outputParts, windowTokens),
    },
    clamped: true,
  };
}

/**
 * The gateway's own estimate or measure of each side of an answer, for providers that report none.
 */
interface Said {
  /** The estimated tokens of the input. */
  inputTokens: number;
  windowTokens: number;
  outputCharacters: number;
}

/**
 * Returns the provider's usage, limited to what is possible. Estimates all of it where the provider
 * reports none, or the side that the provider did not count.
 */
export function boundOrEstimated(reported: MeteredUsage | undefined, said: Said): MeteredUsage {
  const { inputTokens, windowTokens, outputCharacters } = said;
  if (reported === undefined)
    return estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters });
  const bound = boundUsage(reported, windowTokens);
  // Pictures and sound are not metered by the characters of their texts.
  if (isMedia(bound.usage)) return bound;
  const lacks = (parts: readonly UsagePart[]): boolean =>
    parts.every((part) => bound.usage[part] === undefined);
  const lacksOutput = outputCharacters > 0 && lacks(outputParts);
  if (!lacksOutput && !lacks(inputParts)) return bound;
  const { usage } = estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters });
  const { inputTokens: input, outputTokens: output } = usage;
  return {
    ...bound,
    usage: {
      ...bound.usage,
      ...(lacks(inputParts) && { inputTokens: input ?? 0 }),
      ...(lacksOutput && { outputTokens: output ?? 0 }),
    },
    estimated: true,
  };
}

/** Returns the parts of one side, cut so that together they fit; absent ones stay absent. */
function cut(usage: Usage, parts: readonly UsagePart[], most: number): Usage {
  let left = most;
  const kept: Usage = {};
  for (const part of parts) {
    const count = usage[part];
    if (count === undefined) continue;
    kept[part] = Math.min(count, left);
    left -= kept[part];
  }
  return kept;
}

/** An error as a stream reports it. */
export interface ReportedDetails {
  message?: unknown;
  code?: unknown;
  type?: unknown;
  status?: unknown;
  /** Anthropic's object of further facts. */
  details?: unknown;
}

/** The failure of a stream: without content, malformed in its dialect, or a reported error. */
export type StreamBreak =
  | { kind: "empty" }
  | { kind: "malformed"; observation: string }
  | {
      kind: "reported";
      details: ReportedDetails;
      /** The usage that the provider reported for an answer at which the model failed. */
      consumed?: MeteredUsage;
    };

/** Returns the fault of a stream that ended before its answer was finished. */
export const unfinishedStream = (): StreamFault =>
  malformedStream("the stream ended before the answer was finished");

/**
 * Returns an event's data in one line: between members of JSON a line break is white space, and the
 * client would take it for the end of its line.
 */
export const inOneLine = (data: string): string =>
  data.includes("\n") ? data.replaceAll("\n", " ") : data;

/** A failure in a stream's events, as opposed to one of its transport. */
export class StreamFault extends Error {
  readonly fault: StreamBreak;

  constructor(fault: StreamBreak) {
    super(fault.kind);
    this.fault = fault;
  }
}

/** Returns the fault of a stream that ended without content. */
export const emptyStream = (): StreamFault => new StreamFault({ kind: "empty" });

/** Returns the fault of a stream that its dialect cannot read. */
export const malformedStream = (observation: string): StreamFault =>
  new StreamFault({ kind: "malformed", observation });

/** Returns the fault that a provider reported in one of its events. */
export const reportedFault = (details: ReportedDetails, consumed?: MeteredUsage): StreamFault =>
  new StreamFault({ kind: "reported", details, ...(consumed && { consumed }) });

/**
 * Returns whether an event has new content, in any dialect; events that only repeat content have
 * neither member.
 */
export const saysSomething = (data: string): boolean =>
  data.includes('"delta"') || data.includes('"candidates"');

/**
 * Returns whether an event carries a picture or sound, whose length says nothing about its tokens.
 */
export const holdsMedia = (data: string): boolean =>
  data.length > 4_096 && /"(?:images?|audio|inlineData|image_url)"/.test(data);
