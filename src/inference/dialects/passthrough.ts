import type { DialectId } from "../canonical/dialect-id.ts";
import type { Loss } from "../canonical/request.ts";
import type { ReasoningLevels } from "../canonical/reasoning.ts";
import {
  inputParts,
  outputParts,
  totalInputTokens,
  totalOutputTokens,
  type Usage,
  type UsagePart,
} from "../../platform/kernel/usage.ts";
import { estimateUsage, type MeteredUsage } from "../canonical/response.ts";
import type { GatewayError } from "../../platform/kernel/errors.ts";
import type { DialectDeviations } from "./dialect.ts";
import type { ModelFallback } from "./gateway-facts.ts";

/** A request as its client wrote it. */
export interface OriginalRequest {
  /** The dialect of the route that it came in by. */
  dialect: DialectId;
  /** The body as it came. */
  text: string;
  /** The body parsed and its envelope checked; only read, never changed. */
  body: Readonly<Record<string, unknown>>;
  /** 32 hexadecimal digits; the ids that the client sees are made of them. */
  traceId: string;
  /**
   * Headers of the client's that its dialect wants passed on, such as `anthropic-beta`; lower-case
   * names.
   */
  dialectHeaders: Readonly<Record<string, string>>;
  /** Returns Unix time in seconds, for answers that name the time they were finished. */
  nowSeconds(): number;
}

/** The route that a request is sent to, as far as its body depends on it. */
export interface TargetRoute {
  model: { reasoning?: ReasoningLevels };
  route: {
    upstreamModel: string;
    maxCompletionTokens?: number;
    /** Parameters that the route declares; absent is permissive. */
    supportedParameters?: readonly string[];
    /** Effort levels of this route; absent means the model's own. */
    reasoning?: ReasoningLevels;
    /** The route can think, whether or not it declares levels. */
    reasoningFeature?: boolean;
    provider: { id: string; deviations: DialectDeviations };
  };
  /**
   * The most output tokens of each answer, below what was asked for: what the caller can bear at
   * the route's price.
   */
  outputCap?: number;
}

/** What the gateway adds to an answer of its own, once the charge is committed. */
export interface ShownAnswer {
  /** Id of the answer as the client sees it, with its dialect's prefix. */
  id: string;
  /** Public id of the model that served. */
  model: string;
  /**
   * What the charge was made for: the provider's usage as far as it can be true, or an estimate.
   */
  metered: MeteredUsage;
  chargedNano: bigint;
  /** The answer costs its caller nothing, however many tokens it used. */
  free?: boolean;
  /** The caller's own provider key paid for it. */
  isByok?: boolean;
  fallback: ModelFallback | undefined;
  /** JSON text of `service_metadata`, made when a dialect wants it in the body. */
  metadataText(): string;
}

/** A whole answer as far as settlement reads it. */
export interface WholeAnswer {
  upstreamId: string | null;
  /** How it ended, in the words of its upstream; null when it did not say. */
  finishReason: string | null;
  /** The provider's usage; undefined when it sent none. */
  metered: MeteredUsage | undefined;
  /** Characters of everything that the model said, for an estimate. */
  outputCharacters: number;
  /** Whether there is anything that a client can use. */
  hasContent: boolean;
  /** The whole output budget went into reasoning and nothing came out. */
  spentOnReasoning: boolean;
  /** What the client's dialect cannot carry of the answer; absent where the bytes are kept. */
  losses?: readonly Loss[];
  /** The body for the client, in its dialect. */
  render(shown: ShownAnswer): string;
}

/** One server-sent event: its `event:` name, where it had one, and its data. */
export interface SseEvent {
  event?: string;
  data: string;
}

/**
 * The text that events stand in. A relay that knows events by their text may take them from it, and
 * moves the position behind them.
 */
export interface EventText {
  /** Whole lines, each ended by a line feed. */
  readonly text: string;
  /** The index of the first character that was not taken. */
  position: number;
  /** No event has been read in part before the position. */
  readonly isBetween: boolean;
}

/** What a stream is relayed with. */
export interface RelayOptions {
  /** Id and catalog model that the client sees; the id has its dialect's prefix. */
  shown: { id: string; model: string };
  /** The estimate of the input, for a provider that reports no usage. */
  inputTokens: number;
  /** What the model can hold, beyond which reported usage is not believed. */
  windowTokens: number;
  fallback: ModelFallback | undefined;
  /**
   * Charges what `metered()` says by now and settles when the charge is durable. The first call
   * counts; later ones get the same promise. Only what was settled may be shown as cost.
   */
  settle(): Promise<{ chargedNano: bigint; isByok?: boolean }>;
  /** JSON text of `service_metadata`; to be asked for after `settle`. */
  metadataText(): string;
}

/**
 * One upstream's events to one client's frames, for one stream. Frames are whole SSE text; an empty
 * string says nothing yet. A relay throws `StreamFault` for what its upstream did wrong, and has
 * then said its last but for `fail`.
 */
export interface StreamRelay {
  /**
   * Takes events in the text itself and gives their frames, as `accept` would for each; an empty
   * string where the next is for `accept`.
   */
  acceptAlike?(events: EventText): string;
  /**
   * The frames of an event; a promise only for the one that ends the stream, which waits for the
   * settlement. Every event of every stream comes by here, so that the others make none (decision
   * 0038).
   */
  accept(event: SseEvent): string | Promise<string>;
  /**
   * The connection ended before a terminal event: closes what is whole. Throws `StreamFault` where
   * the answer was cut (malformed) or had no content (empty answer).
   */
  finish(): Promise<string>;
  /**
   * Ends the stream as an answer that has reached its limit: what has come stands, and nothing more
   * is read of its upstream.
   */
  endAtCap(): Promise<string>;
  /**
   * The frames that end the stream with an error in the client's dialect, after as much as it has
   * seen.
   */
  fail(error: GatewayError): string;
  /**
   * What was consumed so far: the provider's count, bounded by the model's window, or an estimate.
   */
  metered(): MeteredUsage;
  /** Characters of everything that was said so far. */
  readonly outputCharacters: number;
  /** The terminal frames were given: nothing follows. */
  readonly ended: boolean;
  /** Anything that a client could show or act on has come. */
  readonly hasContent: boolean;
  /** Everything has said how it finished; only the upstream's own end is awaited. */
  readonly finished: boolean;
  readonly finishReason: string | null;
  readonly upstreamId: string | null;
  /**
   * What the client's dialect could not carry of the answer so far; absent where the bytes are
   * kept.
   */
  readonly losses?: readonly Loss[];
  /** What is sent while the upstream is silent; never within an event. */
  readonly pingFrame: string;
}

/** A request and its answer where client and upstream speak the same dialect: the bytes are kept. */
export interface Passthrough {
  /** Body that is sent upstream, as JSON text. */
  readonly requestText: string;
  /** Headers that go with it, beside the provider's own. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
  /** Parts of the request that the upstream does not get. */
  readonly losses: readonly Loss[];
  /** Reads a whole answer; undefined when the body is none. `body` is `text` parsed. */
  readWhole(text: string, body: object): WholeAnswer | undefined;
  createRelay(options: RelayOptions): StreamRelay;
}

/**
 * Passes a request on to a route of its own dialect: the original text, with only those members
 * replaced that have to change.
 */
export type PassThrough = (request: OriginalRequest, route: TargetRoute) => Passthrough;

/** Anthropic's least budget for thoughts, and the least that any budget is lowered to. */
const budgetTokensMin = 1_024;

/**
 * A budget for thoughts below a cap that counts them: lowered with it, to four fifths of it where
 * there is room, so that there is something left for the answer.
 */
export const budgetWithin = (cap: number, budgetTokens: number): number =>
  budgetTokens < cap
    ? budgetTokens
    : Math.min(cap - 1, Math.max(budgetTokensMin, Math.floor(cap * 0.8)));

/**
 * The lower of a cap that was asked for and the one that is borne; undefined where there is
 * neither.
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
 * The cap that was asked for, cut to what the caller can bear and to what the route allows, since
 * providers answer more with 400.
 */
export function fittedCap(
  asked: unknown,
  {
    field,
    route: { maxCompletionTokens: largest },
    outputCap,
  }: {
    field: "max_tokens" | "max_output_tokens";
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
 * A count so many times the model's window is no count of tokens. Less than that may be: catalogs
 * are late, and a window that was raised must not make requests cheaper.
 */
const absurdWindows = 10;

/**
 * Usage that the model could have had: where a provider reports many times what fits its window,
 * the counts are cut to the window and flagged, so that no balance is emptied by a provider's
 * error.
 */
export function boundUsage(metered: MeteredUsage, windowTokens: number): MeteredUsage {
  const { usage } = metered;
  const most = windowTokens * absurdWindows;
  if (totalInputTokens(usage) <= most && totalOutputTokens(usage) <= most) return metered;
  return {
    ...metered,
    usage: { ...cut(usage, inputParts, windowTokens), ...cut(usage, outputParts, windowTokens) },
    clamped: true,
  };
}

/** The provider's usage as far as it can be true, or an estimate of what was said. */
export const boundOrEstimated = (
  reported: MeteredUsage | undefined,
  said: { inputTokens: number; windowTokens: number; outputCharacters: number },
): MeteredUsage =>
  reported === undefined
    ? estimateUsage({
        inputCharacters: said.inputTokens * 4,
        outputCharacters: said.outputCharacters,
      })
    : boundUsage(reported, said.windowTokens);

/** The parts of one side, cut so that together they fit; absent ones stay absent. */
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
}

/** How a stream broke: without content, in another shape than its dialect's, or by a report. */
export type StreamBreak =
  | { kind: "empty" }
  | { kind: "malformed"; observation: string }
  | {
      kind: "reported";
      details: ReportedDetails;
      /** Usage that the provider counted for an answer that the model failed at. */
      consumed?: MeteredUsage;
    };

/** What a relay reads of the events of a stream; each dialect says where it stands. */
interface StreamMeter {
  /** How the answer ended, in the words of its upstream; null while it has not said. */
  readonly finishReason: string | null;
  /** Characters of everything that was said so far. */
  readonly outputCharacters: number;
  /**
   * There is content, or an end without any that still tells the client something, such as that of
   * its own limit.
   */
  readonly isAcceptable: boolean;
}

/**
 * Relays a stream in the dialect that it came in: events go on as they came, but for what is the
 * gateway's in them, and a stream that was cut never looks complete. A dialect says how its events
 * are read (`meter`) and which of them change (`accept`).
 */
export abstract class KeptRelay<Event extends object, Meter extends StreamMeter>
  implements StreamRelay
{
  ended = false;
  // A comment that ends in a single line break, so that no client mistakes it for an event.
  readonly pingFrame: string = ": ping\n";
  abstract readonly upstreamId: string | null;
  abstract readonly finished: boolean;
  protected abstract readonly meter: Meter;

  get hasContent(): boolean {
    return this.meter.outputCharacters > 0;
  }

  get outputCharacters(): number {
    return this.meter.outputCharacters;
  }

  get finishReason(): string | null {
    return this.meter.finishReason;
  }

  abstract metered(): MeteredUsage;
  abstract accept(event: SseEvent): string | Promise<string>;
  abstract finish(): Promise<string>;
  abstract endAtCap(): Promise<string>;
  abstract fail(error: GatewayError): string;

  /**
   * The event that the data says; undefined for heartbeats that are no JSON, such as `data: :
   * keepalive`, and for terminators of other dialects. Some servers end a stream with `event:
   * error` and a sentence.
   */
  protected eventOf({ event, data }: SseEvent): Event | undefined {
    if (!data.startsWith("{")) {
      if (event !== "error") return undefined;
      throw reportedFault({ message: data });
    }
    try {
      return JSON.parse(data) as Event;
    } catch {
      if (event === "error") throw reportedFault({ message: data });
      throw malformedStream("an event of the stream is not valid JSON");
    }
  }

  /** An end without content is the provider's failure, and nothing is charged for it. */
  protected assertContent(): void {
    if (!this.meter.isAcceptable) throw emptyStream();
  }
}

/** The fault of a stream that ended before its answer was finished. */
export const unfinishedStream = (): StreamFault =>
  malformedStream("the stream ended before the answer was finished");

/**
 * An event's data in one line: between the members of JSON a line break is a blank, and the client
 * would take it for the end of its line.
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

/** The fault of a stream that ended without content. */
export const emptyStream = (): StreamFault => new StreamFault({ kind: "empty" });

/** The fault of a stream that its dialect cannot read. */
export const malformedStream = (observation: string): StreamFault =>
  new StreamFault({ kind: "malformed", observation });

/** The fault that a provider reported in one of its events. */
export const reportedFault = (details: ReportedDetails, consumed?: MeteredUsage): StreamFault =>
  new StreamFault({ kind: "reported", details, ...(consumed && { consumed }) });

/**
 * Whether an event says something, in any dialect; those that repeat what was said have neither
 * member.
 */
export const saysSomething = (data: string): boolean =>
  data.includes('"delta"') || data.includes('"candidates"');

/** Pictures and sound are long, and say nothing of how many tokens they are. */
export const holdsMedia = (data: string): boolean =>
  data.length > 4_096 && /"(?:images?|audio|inlineData|image_url)"/.test(data);
