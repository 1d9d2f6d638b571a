import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import type { MediaUse } from "../../billing/ledger/price.ts";
import type { UsagePart } from "../../platform/kernel/usage.ts";
import type { CatalogModel, Surface, UpstreamRoute } from "../catalog/model.ts";
import type { Affinity } from "../routing/affinity.ts";
import type { SortKey } from "../routing/provider-preferences.ts";
import type { CanonicalRequest, Loss, RequestNeeds } from "../canonical/request.ts";
import type { ErrorPart, MeteredUsage } from "../canonical/response.ts";
import type { OriginalRequest, RelayedExchange, WholeAnswer } from "../dialects/shared/exchange.ts";
import type { ErrorCode } from "../../platform/kernel/errors.ts";
import type { RequestFile } from "../dialects/file-parts.ts";
import type { SentExtras } from "../dialects/shared/extras/charged-extras.ts";
import type { BodyPart, UpstreamResponse } from "../upstream/upstream-client.ts";
import type { WorkspaceSignatures } from "./stream/call-signatures.ts";
import type { BatchLeg } from "../../platform/kernel/models/batch-leg.ts";
import type { CommitUnit } from "../../platform/storage/commit-queue.ts";
import type { ServedWhole } from "./served-answer.ts";
import type { SocketTurn } from "./provider-sockets/socket-turn.ts";
import type { KeptText } from "../../platform/kernel/json/text-keeper.ts";

/** The requirements of a request that matter to routing and holds. */
export interface RequestRequirements {
  stream: boolean;
  /**
   * The output cap that the caller set, in tokens; undefined where it set none, or where nothing is
   * generated.
   */
  maxOutputTokens: number | undefined;
  /**
   * Reasoning tokens that the gateway may add to the cap for an upstream that counts them within
   * it; absent means none.
   */
  thoughtTokens?: number | undefined;
  /**
   * The output cap that a route must allow ("only providers supporting that length are routed to");
   * undefined where any will do.
   */
  neededOutputTokens: number | undefined;
  /**
   * The output cap that a route should allow. Other routes are tried last, with the largest cap
   * that they allow.
   */
  wishedOutputTokens: number | undefined;
  /**
   * The reasoning budget, in tokens, that the caller's settings imply for upstreams that take one;
   * absent where they imply none.
   */
  thoughtBudget?: number | undefined;
  /** Whether the model is to reason; undefined where the caller does not say. */
  thinks?: boolean | undefined;
  /**
   * Returns whether a rarely used part of the usage may occur; absent means that none of those do.
   */
  mayUse?(part: UsagePart): boolean;
  /** Whether the length of the answer follows from the request, so that it cannot be capped. */
  isUncut?: boolean;
  /** The number of answers that are asked for. */
  choices: number;
  /**
   * The number of texts that are sent to the model, each of which may fill its context window;
   * absent means one.
   */
  texts?: number;
  /** Parameters that a route should support. Routes that do not declare them are tried last. */
  wishedParameters: readonly string[];
  /** Whether only providers that support tools may serve. */
  needsTools: boolean;
  /** Whether the provider is to search the web; absent on surfaces where none does. */
  searches?: boolean;
  /** Returns the names of the declared parameters that the request sets. */
  parameters(): string[];
  /**
   * The tokens of the conversation that the provider holds, to which the request adds; absent means
   * none.
   */
  heldTokens?: number;
  /** Returns the abilities that the request needs; absent means those of its typed parts. */
  needs?(): RequestNeeds;
  /** Estimates the input tokens, for holds and for usage that no provider reported. */
  estimateInputTokens(): number;
  /**
   * Returns what a route would be sent that its provider charges beside tokens at the ordinary
   * price; undefined for nothing. Absent on surfaces without such fields.
   */
  extrasAt?(route: UpstreamRoute): SentExtras | undefined;
  /**
   * Returns the most pictures and sound that a route may charge for, which is held whole; absent on
   * surfaces without them. It must not depend on `this`.
   */
  mediaAt?: (route: UpstreamRoute) => MediaUse;
}

/** The name of a conversation, and the field or header that it came from. */
export interface ConversationName {
  id: string;
  by: string;
}

/** The origin of a request. */
export interface CallOrigin {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** The `gen_` id of the record and of its hold, made of the digits of the trace id. */
  generationId: string;
  /**
   * The id of the answer as the client sees it: the surface's prefix and the digits of the trace
   * id.
   */
  shownId: string;
  caller: LlmKeyCaller;
  /** When the gateway received the request, in milliseconds of the monotonic clock. */
  startedMs: number;
  /** Returns the signal that fires when the client disconnects. It is created on the first call. */
  signalOf: (() => AbortSignal) | undefined;
  /** Whether the caller asked for the charge and for the balance after it. */
  wantsBalance: boolean;
  /** Providers named by header, in order. */
  forcedProviders: readonly string[] | undefined;
  /**
   * Receives the total tokens used, once they are settled; undefined where no rate window counts
   * them.
   */
  tokensUsed: ((total: number) => void) | undefined;
  /**
   * The session that the request belongs to, named in the body or by header; undefined where it
   * names none.
   */
  sessionId: string | undefined;
  /**
   * The conversation that the request belongs to, by its session or by another name that clients
   * send; absent where it names none.
   */
  conversation?: ConversationName | undefined;
  /** The end user that the request names; absent where it names none. */
  customer?: string | undefined;
  /** The metadata of the request, whose members budgets may count as tags. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The attribution that the caller sent. */
  origin: string | undefined;
  appTitle: string | undefined;
  /** The caller's `User-Agent` header. */
  userAgent: string | undefined;
  /** The caller's `traceparent` header (W3C Trace Context). */
  traceParent: string | undefined;
  /** Returns a request header, for conditions of names; absent where there are none. */
  headerOf?: ((name: string) => string | null) | undefined;
  /** The `gen_` id of the request that this one is a later round of; absent for any other. */
  roundOf?: string | undefined;
  /** The request's rate windows while they are being counted; absent means that they have room. */
  admission?: Admission | undefined;
  /** Set for a request that no client waits for. It does not count as an outage of a provider. */
  line?: BackgroundLine | undefined;
  /** Set for a request that travels in a provider's own batch. */
  leg?: BatchLeg | undefined;
  /** The batch whose line the request is, as its client knows it. */
  batchId?: string | undefined;
}

/** What is committed with the charge of a request that no client waits for. */
export interface BackgroundLine {
  /** Returns the row with the answer; `served` is undefined for a charge without one. */
  rowOf(served: ServedWhole | undefined, call: InferenceCall): CommitUnit["inserts"][number];
}

/** An inference request, in the form that is the same for every surface. */
export interface InferenceCall extends CallOrigin {
  surface: Surface;
  /** The surface's name in records and metrics, such as `messages`. */
  recordedAs: string;
  /** The body as it was received. */
  text: string;
  /** The parsed body, whose envelope was checked. It is never changed. */
  body: Readonly<Record<string, unknown>>;
  requirements: RequestRequirements;
  /** The preset that the request named as its model. */
  presetId?: string | undefined;
  /** The operator's name that the request used in place of a model's id; set by planning. */
  requestedAs?: string;
  /** The order of routes; takes precedence over the body. */
  sort?: SortKey | undefined;
  /** What ties the request to one provider; absent on surfaces without conversations. */
  affinity?: Affinity;
  /** Whether the caller pays nothing for the usage (contract: decisions). */
  unbilled?: true;
  /** How a request with pictures or sound is kept; absent where that is not asked for. */
  keptForm?: KeptForm;
  /** Set where a provider's socket may be used; calls that are made from this one have none. */
  socketTurn?: SocketTurn;
  /** The workspace's files whose contents are in the request; absent where it names none. */
  files?: readonly RequestFile[] | undefined;
  /** Encodes the request in a route's dialect. Throws `GatewayError` for what it cannot express. */
  adapt(route: AdaptedRoute): Adapter;
  /** Returns the route in the dialect that suits the request; absent where each has only one. */
  routeFor?(route: UpstreamRoute): UpstreamRoute;
  /** Throws `GatewayError` for a model that this surface does not serve. */
  assertServes(model: CatalogModel): void;
  /**
   * Releases the conversation once a stream has begun: no other candidate is tried, and an open
   * stream would keep it in memory for minutes. `text` is empty then, and `body` is
   * `withoutConversation`. Absent on surfaces without streams.
   */
  releaseConversation?(): void;
}

/** A request on one of the chat-like surfaces. */
export interface ChatCall extends InferenceCall, ClientRequest {}

/** A request in its client's dialect, which can be translated. */
export interface ClientRequest extends OriginalRequest {
  /** Keeps the signatures of tool calls for clients that cannot return them. */
  signatures: WorkspaceSignatures;
  /** What was lost before the body had its present form; absent means nothing. */
  losses?: readonly Loss[] | undefined;
  /**
   * Returns the canonical form of the request, which is decoded on the first call. Throws
   * `GatewayError` `bad_request`.
   */
  canonical(): CanonicalRequest;
}

/** The route that a request is adapted to. */
export interface AdaptedRoute {
  model: CatalogModel;
  route: UpstreamRoute;
  /**
   * The most output tokens of each answer, where that is less than requested: what the caller can
   * pay for at the route's price.
   */
  outputCap?: number;
}

/** The whole answer that a stream's events add up to, or the error that ended it. */
export type AssembledAnswer = { ok: true; text: string } | { ok: false; error: ErrorPart };

/** The deviations to expect from the answers of an upstream, by its dialect. */
export interface AnswerDeviations {
  /**
   * Assembles the whole answer from a stream that was sent unasked; absent where there are no
   * streams.
   */
  wholeOfEvents?(text: string): AssembledAnswer;
  /**
   * Converts a whole answer that was sent in place of a stream to events; absent where there are no
   * streams.
   */
  eventsOfWhole?(text: string): string;
  /**
   * Returns the status that an error answer means, where that differs from the status that was
   * sent.
   */
  meantStatus?(status: number, text: string): number;
}

/** The requests that one call is split into, for an upstream that takes it only in pieces. */
export interface RequestPieces {
  /** At least two. Each reads its own answer. */
  readonly each: readonly Adapter[];
  /** The number of pieces that are in flight at once. */
  readonly parallel: number;
  /**
   * Whether the answers that came are worth something by themselves, so that the failure of one
   * piece does not end the others.
   */
  readonly keepsSome?: true;
  /** Joins the answers to all pieces, once each was read. */
  join(): WholeAnswer;
}

/** A client's request as one candidate is sent it, and how its answer is read for the client. */
export interface Adapter extends RelayedExchange {
  readonly answerDeviations: AnswerDeviations;
  /**
   * The pieces that are sent in place of `requestText`, where the upstream takes a request only in
   * pieces.
   */
  readonly pieces?: RequestPieces;
  /**
   * The body in place of `requestText`, such as a form with stored files; its content type is among
   * `requestHeaders`.
   */
  readonly requestBody?: readonly BodyPart[];
  /**
   * The path and query below the provider's address, where they depend on the request. The content
   * type is then among `requestHeaders`.
   */
  readonly requestPath?: string;
  /** Returns the decoder of an answer that is bytes, by its headers; absent where it is text. */
  decodeBytes?(headers: UpstreamResponse["headers"]): BytesDecoder;
  /**
   * Returns the request with another id of the caller's end user; absent where that is a member of
   * `requestText`.
   */
  withEndUser?(scope: (endUserId: string) => string): Adapter;
  /**
   * The code that the caller receives for an unusable answer, where it is neither `empty_stream`
   * nor `bad_gateway`.
   */
  readonly unusableCode?: ErrorCode;
  /** Returns the usage of an answer that `readWhole` refuses because the model failed. */
  usageOfFailure?(body: object): MeteredUsage | undefined;
}

/**
 * Adapts a client's request to a route: the bytes are kept where both speak the same dialect, and
 * translated through the canonical form otherwise. Throws `GatewayError` `unsupported_content` for
 * content that must not be dropped silently.
 */
export type Adapt = (request: ClientRequest, route: AdaptedRoute) => Adapter;

/** Reads the bytes for the client from those of a provider. */
export interface BytesDecoder {
  /** The media type of the bytes. */
  readonly type: string;
  /** Returns bytes that come before all others, such as the header of a file; absent where none. */
  begin?(): Uint8Array;
  /** Returns the bytes of a piece; empty where it has none yet. Throws where it is malformed. */
  push(piece: Uint8Array): Uint8Array;
  /** Returns the last bytes. Throws where the answer was cut. */
  end(): Uint8Array;
  /** Returns what was consumed so far. */
  metered(): MeteredUsage;
}

/** Takes in an answer as its client is sent it, as far as it is kept. */
export interface AnswerKeeper {
  /** Whether the answer is kept as the text of its events. */
  readonly isEvents: boolean;
  /** Takes frames of a stream, or bytes of a sound, which are valid only during the call. */
  add(piece: string | Uint8Array): void;
  /** What is kept of all that was added. */
  readonly kept: KeptText;
}

/** How a request with pictures or sound is kept, whose text the call does not have. */
export interface KeptForm {
  /** Reads the request as JSON, with as many bytes of its files as are kept. */
  readRequest(): Promise<KeptText>;
  /** Returns what takes in a streamed answer, or an answer of bytes of a media type. */
  keeperOf(bytesType: string | undefined): AnswerKeeper;
  /** Frees the files of the request; called once, when they are read or not kept after all. */
  free(): Promise<void>;
}
