import type { DialectId } from "../canonical/dialect-id.ts";
import type { Loss } from "../canonical/loss.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { ErrorPart } from "../canonical/stream-part.ts";
import type { MeteredUsage } from "../canonical/usage.ts";
import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import type { EventText } from "../upstream/event-reader.ts";
import type { SseEvent } from "../upstream/sse-event.ts";
import type { ErrorCode, GatewayError } from "../../platform/lib/errors.ts";
import type { WorkspaceSignatures } from "./call-signatures.ts";
import type { ModelFallback } from "./model-fallback.ts";

/** A request as its client wrote it. */
export interface ClientRequest {
  /** The dialect of the route that it came in by. */
  dialect: DialectId;
  /** The body as it came. */
  text: string;
  /** The body parsed and its envelope checked; only read, never changed. */
  body: Readonly<Record<string, unknown>>;
  /** 32 hexadecimal digits; the ids that the client sees are made of them. */
  traceId: string;
  /** Headers of the client's that its dialect wants passed on, such as `anthropic-beta`; lower-case names. */
  dialectHeaders: Readonly<Record<string, string>>;
  /** What is kept of tool calls for clients that cannot keep it themselves. */
  signatures: WorkspaceSignatures;
  /** Unix time in seconds, for answers that tell when they were finished. */
  nowSeconds(): number;
  /** The request in no one's dialect; decoded when it is first asked for. Throws `GatewayError` `bad_request`. */
  canonical(): CanonicalRequest;
}

/** The route that a request is interpreted for. */
export interface InterpretedRoute {
  model: CatalogModel;
  route: UpstreamRoute;
  /** The most output tokens of each answer, below what was asked for: what the caller can bear at the route's price. */
  outputCap?: number;
}

/** What the gateway adds to an answer of its own, once the charge is committed. */
export interface ShownAnswer {
  /** Id of the answer as the client sees it, with its dialect's prefix. */
  id: string;
  /** Public id of the model that served. */
  model: string;
  /** What the charge was made for: the provider's usage as far as it can be true, or an estimate. */
  metered: MeteredUsage;
  chargedNano: bigint;
  /** The answer costs its caller nothing whatever it used. */
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
   * Charges what `metered()` says by now and settles when the charge is durable. The first call counts;
   * later ones get the same promise. Only what was settled may be shown as cost.
   */
  settle(): Promise<{ chargedNano: bigint; isByok?: boolean }>;
  /** JSON text of `service_metadata`; to be asked for after `settle`. */
  metadataText(): string;
  /** HTTP status of the upstream's answer, for faults. */
  status: number;
}

/**
 * One upstream's events to one client's frames, for one stream. Frames are whole SSE text; an empty
 * string says nothing yet. A relay throws `StreamFault` for what its upstream did wrong, and has then
 * said its last but for `fail`.
 */
export interface StreamRelay {
  /** Takes events in the text itself and gives their frames, as `accept` would for each; an empty string where the next is for `accept`. */
  acceptAlike?(events: EventText): string;
  accept(event: SseEvent): string | Promise<string>;
  /**
   * The connection ended before a terminal event: closes what is whole. Throws `StreamFault` where the
   * answer was cut (malformed) or had no content (empty answer).
   */
  finish(): string | Promise<string>;
  /**
   * Ends the stream as an answer that has reached its limit: what has come stands, and nothing more is read of its upstream.
   */
  endAtCap(): string | Promise<string>;
  /** The frames that end the stream with an error in the client's dialect, after as much as it has seen. */
  fail(error: GatewayError): string;
  /** What was consumed so far: the provider's count, bounded by the model's window, or an estimate. */
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
  /** What the client's dialect could not carry of the answer so far; absent where the bytes are kept. */
  readonly losses?: readonly Loss[];
  /** What is sent while the upstream is silent; never within an event. */
  readonly pingFrame: string;
}

/** A whole answer that was told as events, or the error that ended it. */
export type ToldAnswer = { ok: true; text: string } | { ok: false; error: ErrorPart };

/** What an upstream may do beside answering as it was asked, by its dialect. */
export interface UpstreamHabits {
  /** The whole answer that a stream adds up to which nobody asked for; absent where there are no streams. */
  wholeOfEvents?(text: string): ToldAnswer;
  /** The events that a whole answer says which came in place of a stream; absent where there are no streams. */
  eventsOfWhole?(text: string): string;
  /** The status that an error answer means, where it is not the one that it came with. */
  meantStatus?(status: number, text: string): number;
}

/** The requests that one call is sent in, where its upstream takes it only piece by piece. */
export interface RequestPieces {
  /** At least two; each reads its own answer. */
  readonly each: readonly Interpretation[];
  /** How many are under way at once. */
  readonly parallel: number;
  /** The one answer that those to all pieces add up to, once each was read. */
  join(): WholeAnswer;
}

/** What stands between one client and one candidate for one request. */
export interface Interpretation {
  readonly habits: UpstreamHabits;
  /** Body that is sent upstream, as JSON text. */
  readonly requestText: string;
  /** Headers that go with it, beside the provider's own. */
  readonly requestHeaders?: Readonly<Record<string, string>>;
  /** What the upstream will not hear. */
  readonly losses: readonly Loss[];
  /** What is sent in place of `requestText` where the upstream takes a request only piece by piece. */
  readonly pieces?: RequestPieces;
  /** What the caller is told of an answer that cannot be used, where that is not `empty_stream` or `bad_gateway`. */
  readonly unusableCode?: ErrorCode;
  /** Reads a whole answer; undefined when the body is none. `body` is `text` parsed. */
  readWhole(text: string, body: object): WholeAnswer | undefined;
  /** What was used for an answer that `readWhole` refuses since the model failed at it. */
  usageOfFailure?(body: object): MeteredUsage | undefined;
  createRelay(options: RelayOptions): StreamRelay;
}

/**
 * How a client's dialect meets an upstream's: by keeping the bytes where both speak the same, through
 * the canonical form otherwise. Throws `GatewayError` `unsupported_content` for what must not be
 * dropped in silence.
 */
export type Interpret = (request: ClientRequest, route: InterpretedRoute) => Interpretation;
