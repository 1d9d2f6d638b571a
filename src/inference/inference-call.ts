import type { LlmKeyCaller } from "../account/keys/caller.ts";
import type { PricePart } from "../account/ledger/price.ts";
import type { CatalogModel, Surface } from "./catalog/model.ts";
import type { SortKey } from "./routing/provider-preferences.ts";
import type {
  ClientRequest,
  Interpretation,
  InterpretedRoute,
} from "./interpret/interpretation.ts";

/** What a request asks for, as far as routing and holds look at it. */
export interface RequestAsks {
  stream: boolean;
  /** Most output tokens that the caller allows; undefined where it says nothing, or where nothing is generated. */
  maxOutputTokens: number | undefined;
  /** Tokens that the gateway may add to the cap for thoughts, where an upstream counts them within; absent means none. */
  thoughtTokens?: number | undefined;
  /** The output cap that a route has to allow ("only providers supporting that length are routed to"); undefined where none has to. */
  neededOutputTokens: number | undefined;
  /** The output cap that a route had better allow: others are asked last, and given the most that they allow. */
  wishedOutputTokens: number | undefined;
  /** Tokens that the caller's words allow for thoughts, where an upstream is told such a budget; absent means that they name none. */
  thoughtBudget?: number | undefined;
  /** Whether the model is to think; undefined where the caller does not say. */
  thinks?: boolean | undefined;
  /** Whether tokens may be used that few requests use; absent means that none are. */
  mayUse?(part: PricePart): boolean;
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

/** Where a request comes from, whatever it asks. */
export interface CallOrigin {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** `gen_` id of the record and its hold; has the digits of the trace id. */
  generationId: string;
  /** Id of the answer as the client sees it: the surface's prefix and the digits of the trace id. */
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
  /** Told of all tokens that were used, once they are settled; undefined where nobody counts them. */
  tokensUsed: ((total: number) => void) | undefined;
  /** Session that the request belongs to, named in the body or by header; undefined when in neither. */
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
  /** How routes are to be sorted, whatever the body says. */
  sort?: SortKey | undefined;
  /** Whatever is used, the caller pays nothing (contract: decisions). */
  unbilled?: true;
  /** The request as a route can be told it. Throws `GatewayError` for what it cannot be told. */
  interpret(route: InterpretedRoute): Interpretation;
  /** Throws `GatewayError` for a model that this surface does not serve. */
  assertServes(model: CatalogModel): void;
}

/** A request on one of the surfaces that are shaped like chat. */
export interface ChatCall extends InferenceCall, ClientRequest {}
