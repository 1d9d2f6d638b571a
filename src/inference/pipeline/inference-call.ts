import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import type { UsagePart } from "../../platform/kernel/usage.ts";
import type { CatalogModel, Surface, UpstreamRoute } from "../catalog/model.ts";
import type { SortKey } from "../routing/provider-preferences.ts";
import type { CanonicalRequest } from "../canonical/request.ts";
import type { ErrorPart, MeteredUsage } from "../canonical/response.ts";
import type { Provenance } from "../canonical/reasoning.ts";
import type { OriginalRequest, Passthrough, WholeAnswer } from "../dialects/passthrough.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { ClientDialect } from "../dialects/dialect.ts";
import {
  estimateInputTokens,
  mayUsePart,
  parametersOf,
  wishesOf,
  type RequirementReader,
} from "../dialects/requirements.ts";
import { adapt } from "./adapt.ts";

/** What a request asks for, as far as routing and holds look at it. */
export interface RequestRequirements {
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
  /** Its rate windows, where they are still being counted; absent means that they have room. */
  admission?: Admission | undefined;
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
  requirements: RequestRequirements;
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
interface CallSignature {
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
export interface AnswerDeviations {
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
  readonly answerDeviations: AnswerDeviations;
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

/** A chat-shaped request as its route has read it. */
interface ReadChat
  extends Pick<ClientRequest, "text" | "body" | "dialectHeaders" | "signatures" | "nowSeconds"> {
  dialect: ClientDialect;
  presetId: string | undefined;
}

/**
 * The call of a chat-shaped request. Members are named one by one: copying objects of this size
 * costs a microsecond.
 */
export function chatCall(origin: CallOrigin, read: ReadChat): ChatCall {
  const { dialect } = read;
  let canonical: CanonicalRequest | undefined;
  const call: ChatCall = {
    traceId: origin.traceId,
    generationId: origin.generationId,
    shownId: origin.shownId,
    caller: origin.caller,
    startedMs: origin.startedMs,
    signalOf: origin.signalOf,
    wantsBalance: origin.wantsBalance,
    forcedProviders: origin.forcedProviders,
    tokensUsed: origin.tokensUsed,
    sessionId: origin.sessionId,
    origin: origin.origin,
    appTitle: origin.appTitle,
    traceParent: origin.traceParent,
    admission: origin.admission,
    dialect: dialect.id,
    text: read.text,
    body: read.body,
    dialectHeaders: read.dialectHeaders,
    signatures: read.signatures,
    nowSeconds: read.nowSeconds,
    canonical: () => (canonical ??= dialect.decodeRequest(read.body)),
    surface: "chat",
    recordedAs: dialect.recordedAs,
    presetId: read.presetId,
    requirements: chatRequirements(dialect, read),
    adapt: (route) => adapt(call, route),
    assertServes: assertServesChat,
  };
  return call;
}

/** A request's body and its text. */
type AskingRequest = Pick<ClientRequest, "body" | "text">;

/**
 * What a chat-shaped request asks for; what few requests need is worked out when it is asked for.
 */
class ChatRequirements implements RequestRequirements {
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly thinks: boolean | undefined;
  readonly thoughtTokens: number | undefined;
  readonly thoughtBudget: number | undefined;
  readonly neededOutputTokens: number | undefined;
  readonly wishedOutputTokens: number | undefined;
  readonly choices: number;
  readonly wishedParameters: readonly string[];
  readonly needsTools: boolean;
  private readonly reader: RequirementReader;
  private readonly request: AskingRequest;

  constructor(reader: RequirementReader, request: AskingRequest) {
    const { body } = request;
    this.reader = reader;
    this.request = request;
    this.stream = body["stream"] === true;
    this.maxOutputTokens = reader.outputCap(body);
    this.thinks = reader.thinks(body);
    this.thoughtTokens = reader.thoughtTokens(body, this.thinks);
    this.thoughtBudget = reader.thoughtBudget(body, this.thoughtTokens);
    const isNeeded = reader.capChoosesRoutes === true;
    this.neededOutputTokens = isNeeded ? this.maxOutputTokens : undefined;
    this.wishedOutputTokens = isNeeded ? undefined : this.maxOutputTokens;
    this.choices = reader.choices(body);
    this.wishedParameters = wishesOf(reader, body);
    this.needsTools = reader.needsTools(body);
  }

  parameters(): string[] {
    return parametersOf(this.reader, this.request.body);
  }

  mayUse(part: UsagePart): boolean {
    return mayUsePart(this.request, part);
  }

  estimateInputTokens(): number {
    return estimateInputTokens(this.request.text, this.request.body);
  }
}

/** What a chat-shaped request asks for. */
export const chatRequirements = (
  { requirements }: Pick<ClientDialect, "requirements">,
  request: AskingRequest,
): RequestRequirements => new ChatRequirements(requirements, request);

/** Chat-shaped routes serve chat models alone. */
export function assertServesChat({ id, surface }: CatalogModel): void {
  if (surface === "chat") return;
  const message = `The model ${id} does not chat; it serves ${surface}. Call that endpoint, or another model.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

/** Calls whose signatures are kept: some hundred bytes each, and an agent's turn has a few. */
const keptMax = 20_000;

/**
 * Signatures that providers put on tool calls (Gemini) and want to see again, for clients whose
 * dialect has no place for them. In memory and bounded: where one is gone, the request goes out
 * without it, which costs the model its thought and nothing else.
 */
export class CallSignatures {
  private readonly kept = new Map<string, CallSignature>();

  /**
   * The signatures of one workspace's calls, since ids of calls are the providers' and no secret.
   */
  of(workspaceId: string): WorkspaceSignatures {
    return new SignaturesOfWorkspace(this, workspaceId);
  }

  find(key: string): CallSignature | undefined {
    return this.kept.get(key);
  }

  keep(key: string, signature: CallSignature): void {
    this.kept.delete(key);
    this.kept.set(key, signature);
    if (this.kept.size <= keptMax) return;
    for (const oldest of this.kept.keys()) {
      this.kept.delete(oldest);
      break;
    }
  }
}

class SignaturesOfWorkspace implements WorkspaceSignatures {
  private readonly all: CallSignatures;
  private readonly workspaceId: string;

  constructor(all: CallSignatures, workspaceId: string) {
    this.all = all;
    this.workspaceId = workspaceId;
  }

  keep(callId: string, signature: CallSignature): void {
    this.all.keep(`${this.workspaceId} ${callId}`, signature);
  }

  find(callId: string): CallSignature | undefined {
    return this.all.find(`${this.workspaceId} ${callId}`);
  }
}
