import type { DialectId } from "../../canonical/dialect-id.ts";
import type { Loss } from "../../canonical/request.ts";
import type { ReasoningLevels } from "../../canonical/reasoning.ts";
import type { MeteredUsage, ModelFallback } from "../../canonical/response.ts";
import type { DialectDeviations, RefusedParameters } from "../deviations.ts";
import type { AnswerReader } from "./stream/answer-reader.ts";
import type { StreamWriter } from "./stream/stream-writer.ts";
import type { RelayOptions, StreamRelay } from "./stream/stream-relay.ts";

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
