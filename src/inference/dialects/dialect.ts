import type { GatewayError } from "../../platform/kernel/errors.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import type {
  GatewayFacts,
  CanonicalResponse,
  MeteredUsage,
  ReportedError,
  ItemPart,
  StreamPart,
} from "../canonical/response.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { Loss, CanonicalRequest } from "../canonical/request.ts";
import type { PassThrough } from "./shared/exchange.ts";
import type { Unreadable, UnsealedRequest } from "./shared/refused-thoughts.ts";
import type { RequirementReader } from "./shared/requirements.ts";
import type { ToolAliases } from "./shared/tools.ts";
import type { SocketMode } from "./socket-mode.ts";
import type { DialectDeviations, RefusedParameters } from "./deviations.ts";
import type { StreamDecoder } from "./shared/stream/stream-decoder.ts";
import type { PresetFields } from "./shared/preset-fields.ts";

/** The context of answering a client in its own dialect. */
export interface ResponseContext {
  /**
   * The request that is answered: what it asked to see or hide, and what a dialect repeats of it.
   */
  request?: Omit<CanonicalRequest, "messages">;
  /** The gateway's own id of the answer, the same in every event; absent means the upstream's. */
  id?: string;
  /** The model's public name; absent means the upstream's. */
  model?: string;
  /** The slug of the provider that answers, for dialects whose answers name it (chat). */
  providerId?: string;
  /** The estimated input tokens, for dialects that report them before the upstream does. */
  inputTokens?: number;
  /**
   * The facts that the gateway knows before the answer, for dialects that report them at the start.
   */
  gateway?: Pick<GatewayFacts, "requestedModel" | "fallback">;
  /**
   * The request's body as its client wrote it, for dialects whose answers repeat it (Responses).
   */
  requestBody?: Readonly<Record<string, unknown>>;
  /**
   * Returns the Unix time in seconds, for dialects that report when an answer was finished; absent
   * uses the time when it began.
   */
  nowSeconds?: () => number;
  /**
   * Whether the client fails on events that its SDK does not know (`openai.responses.stream()`,
   * which sends `X-Stainless-Helper-Method: stream`), so that the metadata is part of its last
   * event instead of an event of its own.
   */
  metadataInLastEvent?: boolean;
}

/** Encodes canonical stream parts for one client; one encoder serves one stream. */
export interface StreamEncoder {
  /** Returns whole SSE frames as text, in order; none when the part yields none yet. */
  encode(part: StreamPart): string[];
}

/**
 * Returns a name, such as `image`, for what a dialect cannot carry of a part of an answer;
 * undefined where it carries all of it.
 */
export type LossDetector = (part: ItemPart) => string | undefined;

/** The content of an error body beside the error. */
export interface ErrorContext {
  traceId: string;
}

/** The content of a stream that fails before its first event, beside the error. */
export interface FailedStreamContext extends ErrorContext {
  /** The model as the client named it. */
  model: string;
  nowSeconds: number;
  requestBody: Readonly<Record<string, unknown>>;
}

/** The side of a wire format that faces clients. */
export interface ClientDialect {
  id: DialectId;
  /** The name of the surface in records. */
  recordedAs: string;
  /** The field that caps the output of an answer. */
  capField: "max_tokens" | "max_output_tokens" | "maxOutputTokens";
  /** Whether whole answers carry the gateway's metadata; absent means that headers do. */
  metadataInAnswer?: true;
  /**
   * Whether an answer that the provider broke off becomes an error, because a whole answer cannot
   * express it.
   */
  refusesBrokenAnswers?: true;
  /** Passes a request on to a route of the same dialect, with its bytes kept. */
  passThrough: PassThrough;
  /** Writes the settings of a preset into a request. */
  presetFields: PresetFields;
  /** Reads what a request requires of routes and holds. */
  requirements: RequirementReader;
  /**
   * Decodes a request. Throws GatewayError `bad_request` whose `param` names the field, such as
   * `messages[2].role`.
   */
  decodeRequest(body: unknown): CanonicalRequest;
  /** Request headers that only providers of the dialect can act upon; absent means none. */
  providerHeaders?: readonly string[];
  encodeResponse(response: CanonicalResponse, context?: ResponseContext): JsonObject;
  createStreamEncoder(context?: ResponseContext): StreamEncoder;
  /**
   * Creates a detector of what the encoders leave out of an answer; one detector serves one answer,
   * whole or streamed.
   */
  createLossDetector(context?: ResponseContext): LossDetector;
  /** The frame that is sent while the upstream is silent; absent means a comment. */
  pingFrame?: string;
  /**
   * Whether clients expect the text of an answer last, so that a stream leaves out the reasoning
   * that comes after it. Its seals are kept for the next turn.
   */
  endsInText?: true;
  /** Returns the JSON body of an error answer. */
  encodeError(error: GatewayError, context: ErrorContext): JsonObject;
  /**
   * Returns the SSE frames that end a stream in failure, for a stream whose encoder is not at hand.
   */
  encodeStreamError(error: GatewayError, context: FailedStreamContext): string[];
}

/** A dialect's bounds on the output cap of a request. */
interface OutputCapRule {
  /** The smallest cap that it accepts; smaller ones are raised. */
  leastTokens?: number;
  /**
   * The cap where neither the client nor the catalog names one, for dialects whose requests always
   * have a cap; a reasoning budget is added to it.
   */
  statedTokens?: number;
}

/** The dialect's ways to count the tokens of a prompt without an answer. */
export interface InputCount {
  /** Estimates them from a request's body, for upstreams that do not count. */
  estimate(body: Readonly<Record<string, unknown>>): number;
  /** Reads an upstream's count; undefined where it answers something else. */
  read(text: string): number | undefined;
  /** Returns the body that asks for a count; absent means that of the request itself. */
  wrap?(requestText: string, upstreamModel: string): string;
}

/** The upstream that a request is encoded for. */
export interface EncodeRequestOptions {
  /** The wire name of the model. */
  upstreamModel: string;
  stream: boolean;
  /** The slug of the provider, to which only its own reasoning seals are replayed. */
  providerId: string;
  /** The model's own limit of output tokens, for dialects that have to state one. */
  maxCompletionTokens?: number;
  /** Whether the catalog says that the model reasons. Absent means that it says nothing. */
  reasons?: boolean;
  /** Fields that the model refuses; absent means none beside those of `deviations`. */
  refuses?: RefusedParameters | undefined;
  deviations?: DialectDeviations;
  /** Whether the upstream runs searches of the web that clients of other dialects ask for. */
  searches?: boolean;
}

/** A request in an upstream's dialect. */
export interface EncodedRequest {
  body: JsonObject;
  /** The parts that cannot be sent to the upstream; reported to the caller. */
  losses: readonly Loss[];
  /** Tool names that had to change, to be restored in the answer. */
  toolAliases: ToolAliases;
}

/** The facts about the sent request that decoding an answer needs. */
export interface DecodeContext {
  /** The slug of the provider that answers, with which its reasoning seals are marked. */
  providerId?: string;
  toolAliases?: ToolAliases;
  /**
   * A text that no other request has, of which ids of calls are made where neither they nor the
   * answer have one: clients tell calls of several turns apart by them.
   */
  callSeed?: string;
  /**
   * Returns the names of the request's tools, by which a call's name is known to be whole; absent
   * where the request is not known.
   */
  toolNames?: () => Iterable<string>;
  /**
   * Whether an answer that the model broke off ends in its provider's words instead of an error,
   * for a client that knows these words.
   */
  keepsFailures?: true;
}

/** The side of a wire format that faces upstreams. */
export interface UpstreamDialect {
  id: DialectId;
  /** Whether calls carry signatures that have to be sent back to the upstream. */
  signsCalls?: true;
  /** Whether streams are Amazon's binary messages instead of server-sent events. */
  binaryStreams?: true;
  /**
   * The form of a failure as an event, where some or all providers stream such messages: its own
   * name behind `exception:`, or the event `error`. Absent where none does.
   */
  exceptionForm?: "named" | "messages-error";
  /** Whether the body of an error may mean another status than the one that was sent. */
  statusInBody?: true;
  /** Whether `metadata.user_id` tells the users of an account apart; else `metadata` is notes. */
  userInMetadata?: true;
  /** Whether reasoning is sent as a budget that counts against the output cap. */
  thinkingBudget?: true;
  /**
   * Returns whether a model searches the web where it is offered functions too; absent where all do.
   */
  searchesBesideFunctions?(upstreamModel: string, deviations: DialectDeviations): boolean;
  /** Whether answers may have reasoning of which only its signature is sent. */
  hidesReasoning?: true;
  /** Whether models reason only where the request says so, with or without levels of effort. */
  thinksWhenAsked?: true;
  /** Whether answers have a field for unabridged reasoning, which models with open weights fill. */
  showsOpenThoughts?: true;
  /** Bounds on the output cap of a request; absent means that it is sent as it is. */
  capRule?: OutputCapRule;
  /** Absent where the dialect has no sockets. Asked only of providers that declare them. */
  socketMode?: SocketMode;
  /** Headers that requests of this dialect need beside the provider's own, such as a version. */
  requestHeaders?: Readonly<Record<string, string>>;
  /**
   * Encodes a request. Throws GatewayError `unsupported_content` for content that must not be
   * dropped silently.
   */
  encodeRequest(request: CanonicalRequest, options: EncodeRequestOptions): EncodedRequest;
  /**
   * Decodes an answer. Throws GatewayError `upstream_error` when the body is no answer of this
   * dialect.
   */
  decodeResponse(body: unknown, context?: DecodeContext): CanonicalResponse;
  /**
   * Returns the usage of an answer that `decodeResponse` refuses because the model failed; absent
   * where no provider reports it.
   */
  usageOfFailure?(body: unknown): MeteredUsage | undefined;
  createStreamDecoder(context?: DecodeContext): StreamDecoder;
  /**
   * Converts a whole answer to the equivalent event stream, from a server that does not stream
   * although it was asked to; absent means that the answer is decoded, and encoded by the client's
   * side.
   */
  eventsOfWhole?(text: string): string;
  /**
   * Assembles a whole answer from the data of a stream's events, from a server that streams
   * unasked; absent as above.
   */
  wholeOfEvents?(data: readonly string[]): string;
  /** The ways to count the tokens of a prompt; absent where the dialect has no endpoint for it. */
  inputCount?: InputCount;
  /**
   * Returns a sent request without the sealed reasoning that the upstream cannot read: of a refusal
   * that of earlier turns, and that of the turn under way where the refusal is about it. Undefined
   * for any other refusal, and where nothing of it is sealed. Absent where no account binds its
   * seals.
   */
  withoutSeals?(
    text: string,
    unreadable: Unreadable,
    upstreamModel: string,
  ): UnsealedRequest | undefined;
  /** Reads an error answer; `body` is parsed JSON, or the text as it came. */
  readError(status: number, body: unknown): ReportedError;
}
