import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { UsagePart } from "../../platform/kernel/usage.ts";
import type { CatalogModel, Surface, UpstreamRoute } from "../catalog/model.ts";
import type { SortKey } from "../routing/provider-preferences.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { ErrorPart } from "../canonical/stream-part.ts";
import type { Provenance } from "../canonical/reasoning.ts";
import type { MeteredUsage } from "../canonical/usage.ts";
import type { OriginalRequest, Passthrough, WholeAnswer } from "../dialects/passthrough.ts";
import type { ErrorCode } from "../../platform/kernel/errors.ts";

/** What a request asks for, as far as routing and holds look at it. */
export interface RequestAsks {
  stream: boolean;
  /**
   * Most output tokens that the caller allows; undefined where it says nothing, or where nothing is
   * generated.
   */
  maxOutputTokens: number | undefined;
  /**
   * Tokens that the gateway may add to the cap for thoughts, where an upstream counts them within;
   * absent means none.
   */
  thoughtTokens?: number | undefined;
  /**
   * The output cap that a route has to allow ("only providers supporting that length are routed
   * to"); undefined where none has to.
   */
  neededOutputTokens: number | undefined;
  /**
   * The output cap that a route had better allow: others are asked last, and given the most that
   * they allow.
   */
  wishedOutputTokens: number | undefined;
  /**
   * Tokens that the caller's words allow for thoughts, where an upstream takes such a budget;
   * absent means that they name none.
   */
  thoughtBudget?: number | undefined;
  /** Whether the model is to think; undefined where the caller does not say. */
  thinks?: boolean | undefined;
  /** Whether tokens may be used that few requests use; absent means that none are. */
  mayUse?(part: UsagePart): boolean;
  /** The length of the answer follows from the request, so that nothing of it can be lowered. */
  isUncut?: boolean;
  /** How many answers are wanted. */
  choices: number;
  /** How many texts the model sees, each of which may fill its window; absent means one. */
  texts?: number;
  /** Parameters that a route had better support; one that does not declare them is tried last. */
  wishedParameters: readonly string[];
  /** Only tool-capable providers may serve. */
  needsTools: boolean;
  /** Names of the declared parameters that the request sets. */
  parameters(): string[];
  /** Input tokens, for holds and for usage that no provider reported. */
  estimateInputTokens(): number;
}

/** Where a request comes from. */
export interface CallOrigin {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** `gen_` id of the record and its hold; has the digits of the trace id. */
  generationId: string;
  /**
   * Id of the answer as the client sees it: the surface's prefix and the digits of the trace id.
   */
  shownId: string;
  caller: LlmKeyCaller;
  /** Monotonic time at which the request was seen, in milliseconds. */
  startedMs: number;
  /** The signal that fires when the client goes away; made when it is asked for. */
  signalOf: (() => AbortSignal) | undefined;
  /** The caller asked for the charge and the balance after it. */
  wantsBalance: boolean;
  /** Backends named by header, in order. */
  forcedProviders: readonly string[] | undefined;
  /**
   * Receives the sum of all tokens that were used, once they are settled; undefined where no window
   * counts them.
   */
  tokensUsed: ((total: number) => void) | undefined;
  /**
   * Session that the request belongs to, named in the body or by header; undefined when in neither.
   */
  sessionId: string | undefined;
  /** Attribution that the caller sent along. */
  origin: string | undefined;
  appTitle: string | undefined;
  /** The caller's `traceparent` header (W3C Trace Context). */
  traceParent: string | undefined;
}

/** One request for an answer as the spine sees it, on whichever surface it came. */
export interface InferenceCall extends CallOrigin {
  surface: Surface;
  /** What the surface is called in records and metrics, such as `messages`. */
  recordedAs: string;
  /** The body as it came. */
  text: string;
  /** The body parsed and its envelope checked; only read, never changed. */
  body: Readonly<Record<string, unknown>>;
  asks: RequestAsks;
  /** Preset that the request named as its model. */
  presetId?: string | undefined;
  /** How routes are to be sorted; takes precedence over the body. */
  sort?: SortKey | undefined;
  /** The caller pays nothing for what is used (contract: decisions). */
  unbilled?: true;
  /**
   * Writes the request in a route's dialect. Throws `GatewayError` for what the route cannot
   * express.
   */
  adapt(route: AdaptedRoute): Adapter;
  /** Throws `GatewayError` for a model that this surface does not serve. */
  assertServes(model: CatalogModel): void;
}

/** A request on one of the surfaces that are shaped like chat. */
export interface ChatCall extends InferenceCall, ClientRequest {}

/** The signature of a tool call, with its maker. */
export interface CallSignature {
  signature: string;
  provenance?: Provenance;
}

/** What a request may know of signatures. */
export interface WorkspaceSignatures {
  keep(callId: string, signature: CallSignature): void;
  find(callId: string): CallSignature | undefined;
}

/** A request as its client wrote it, which can be translated. */
export interface ClientRequest extends OriginalRequest {
  /** What is kept of tool calls for clients that cannot keep it themselves. */
  signatures: WorkspaceSignatures;
  /**
   * Returns the canonical form of the request, decoded at the first call. Throws `GatewayError`
   * `bad_request`.
   */
  canonical(): CanonicalRequest;
}

/** The route that a request is adapted to. */
export interface AdaptedRoute {
  model: CatalogModel;
  route: UpstreamRoute;
  /**
   * The most output tokens of each answer, below what was asked for: what the caller can bear at
   * the route's price.
   */
  outputCap?: number;
}

/** The whole answer of a stream of events, or the error that ended it. */
export type ToldAnswer = { ok: true; text: string } | { ok: false; error: ErrorPart };

/** What an upstream may do beside answering as it was asked, by its dialect. */
export interface UpstreamHabits {
  /**
   * The whole answer that a stream adds up to which was not asked for; absent where there are no
   * streams.
   */
  wholeOfEvents?(text: string): ToldAnswer;
  /**
   * The events that a whole answer says which came in place of a stream; absent where there are no
   * streams.
   */
  eventsOfWhole?(text: string): string;
  /** The status that an error answer means, where it is not the one that it came with. */
  meantStatus?(status: number, text: string): number;
}

/** The requests that one call is sent in, where its upstream takes it only piece by piece. */
export interface RequestPieces {
  /** At least two; each reads its own answer. */
  readonly each: readonly Adapter[];
  /** How many are under way at once. */
  readonly parallel: number;
  /** The one answer that those to all pieces add up to, once each was read. */
  join(): WholeAnswer;
}

/** A request as one candidate is sent it, and how that candidate's answer is read for the client. */
export interface Adapter extends Passthrough {
  readonly habits: UpstreamHabits;
  /**
   * What is sent in place of `requestText` where the upstream takes a request only piece by piece.
   */
  readonly pieces?: RequestPieces;
  /**
   * The code that the caller receives for an answer that cannot be used, where that is not
   * `empty_stream` or `bad_gateway`.
   */
  readonly unusableCode?: ErrorCode;
  /** What was used for an answer that `readWhole` refuses since the model failed at it. */
  usageOfFailure?(body: object): MeteredUsage | undefined;
}

/**
 * How a client's dialect meets an upstream's: by keeping the bytes where both speak the same,
 * through the canonical form otherwise. Throws `GatewayError` `unsupported_content` for what must
 * not be dropped in silence.
 */
export type Adapt = (request: ClientRequest, route: AdaptedRoute) => Adapter;
