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
import type { ReasoningField } from "../canonical/reasoning.ts";
import type { PassThrough } from "./passthrough.ts";
import type { RequirementReader } from "./requirements.ts";
import type { ToolAliases } from "./tools.ts";
import { asObject } from "./wire-fields.ts";

/** How a client is answered in its own dialect. */
export interface ResponseContext {
  /** The request that is answered: what it asked to see or hide, and what a dialect echoes. */
  request?: CanonicalRequest;
  /** The gateway's own id of the answer, the same in every event; absent means the upstream's. */
  id?: string;
  /** The model's public name; absent means the upstream's. */
  model?: string;
  /** The estimate of the input, for dialects that report it before the upstream does. */
  inputTokens?: number;
  /** What the gateway knows before the answer, for dialects that report it at its start. */
  gateway?: Pick<GatewayFacts, "requestedModel" | "fallback">;
  /**
   * The request's body as its client wrote it, for dialects whose answers repeat it (Responses).
   */
  requestBody?: Readonly<Record<string, unknown>>;
  /**
   * Unix time in seconds, for dialects that tell when an answer was finished; absent means when it
   * was begun.
   */
  nowSeconds?: () => number;
  /**
   * The client breaks on events that its SDK does not know (`openai.responses.stream()`, which
   * sends
   * `X-Stainless-Helper-Method: stream`): the metadata stands in its last event instead of in one of its own.
   */
  metadataInLastEvent?: boolean;
}

/** Canonical stream parts to one client's wire; one encoder serves one stream. */
export interface StreamEncoder {
  /** Whole SSE frames as text, in order; none when the part says nothing yet. */
  encode(part: StreamPart): string[];
}

/**
 * Returns a name, such as `image`, for what a dialect cannot carry of a part of an answer;
 * undefined where it carries all of it.
 */
export type LossDetector = (part: ItemPart) => string | undefined;

/** What an error body tells beside the error. */
export interface ErrorContext {
  traceId: string;
}

/** The side of a wire format that faces clients. */
export interface ClientDialect {
  id: DialectId;
  /** The name of the surface in records. */
  recordedAs: string;
  /** The field that bounds the output of an answer. */
  capField: "max_tokens" | "max_output_tokens";
  /** Whole answers carry the gateway's metadata; absent means that headers do. */
  metadataInAnswer?: true;
  /** A whole answer has no word for an end by the provider's failure, so that it is an error. */
  refusesBrokenAnswers?: true;
  /** Passes a request on to a route of the same dialect, with its bytes kept. */
  passThrough: PassThrough;
  /** Writes the settings of a preset into a request. */
  presetFields: PresetFields;
  /** Reads what a request asks of routes and of holds. */
  requirements: RequirementReader;
  /**
   * Throws GatewayError `bad_request` whose `param` names the field, such as `messages[2].role`.
   */
  decodeRequest(body: unknown): CanonicalRequest;
  encodeResponse(response: CanonicalResponse, context?: ResponseContext): JsonObject;
  createStreamEncoder(context?: ResponseContext): StreamEncoder;
  /**
   * Detects what the encoders leave out of an answer; one detector serves one answer, whole or
   * streamed.
   */
  createLossDetector(context?: ResponseContext): LossDetector;
  /** What is sent while the upstream is silent; absent means a comment. */
  pingFrame?: string;
  /** The JSON body of an error answer. */
  encodeError(error: GatewayError, context: ErrorContext): JsonObject;
  /** The SSE frames that end a stream in failure, for a stream whose encoder is not at hand. */
  encodeStreamError(error: GatewayError, context: ErrorContext): string[];
}

/** How a dialect fits the output cap of a request. */
interface OutputCapRule {
  /** The least cap that it takes; smaller ones are raised. */
  leastTokens?: number;
  /**
   * Every request states a cap, this one where neither the client nor the catalog names any; a
   * budget for thoughts is added to it.
   */
  statedTokens?: number;
}

/** How the tokens of a prompt are counted without an answer. */
export interface InputCount {
  /** Estimates them from a request's body, for upstreams that do not count. */
  estimate(body: Readonly<Record<string, unknown>>): number;
  /** Reads an upstream's count; undefined where it answers something else. */
  read(text: string): number | undefined;
}

/** Named deviations of an upstream from its dialect. Absent means it does as the dialect says. */
export interface DialectDeviations {
  /**
   * Which of the two names of the output cap the upstream knows. Absent means `max_tokens`, which
   * nearly every server obeys: one that does not know the name it is sent under ignores the cap.
   * `either` leaves the client's own name.
   */
  maxTokensField?: "max_tokens" | "max_completion_tokens" | "either";
  /** The upstream answers 400 to `stream_options`; usage comes by itself or not at all. */
  noStreamOptions?: boolean;
  /** Where the upstream wants earlier thoughts replayed; absent means it refuses them. */
  reasoningReplay?: ReasoningField;
  /** The upstream takes OpenRouter's `reasoning` object in place of `reasoning_effort`. */
  reasoningObject?: boolean;
  /** Which cache marker the upstream knows on parts; absent means none. */
  cacheMarkers?: "cache_control" | "prompt_cache_breakpoint";
  /** The upstream knows custom tools; absent means they are wrapped as functions. */
  customTools?: boolean;
  /** The upstream knows the role `developer`; absent means such messages go out as `system`. */
  developerRole?: boolean;
  /** The upstream takes a system message at the head only; later ones go out as the user's text. */
  systemOnlyFirst?: boolean;
  /** Request fields that the upstream answers with 400, by wire name. */
  unsupportedFields?: readonly string[];
}

/** Whom a request is encoded for. */
export interface EncodeRequestOptions {
  /** Wire name of the model. */
  upstreamModel: string;
  stream: boolean;
  /** Slug of the provider that is asked; only its own reasoning seals are replayed to it. */
  providerId: string;
  /** The model's own bound on output tokens, for dialects that must state one. */
  maxCompletionTokens?: number;
  deviations?: DialectDeviations;
}

/** A request in an upstream's dialect. */
export interface EncodedRequest {
  body: JsonObject;
  /** What the upstream will not hear; reported to the caller. */
  losses: readonly Loss[];
  /** Tool names that had to change, for the way back. */
  toolAliases: ToolAliases;
}

/** What decoding an answer needs to know of the request that was sent. */
export interface DecodeContext {
  /** Slug of the provider that answers; marks its reasoning seals. */
  providerId?: string;
  toolAliases?: ToolAliases;
}

/** One upstream's events to canonical stream parts; one decoder serves one stream. */
export interface StreamDecoder {
  decode(event: { event?: string; data: string }): StreamPart[];
  /** The connection has ended: closes what is whole, and makes an error of what was cut. */
  end(): StreamPart[];
  /**
   * Everything has said how it ended, although no `finish` was given out yet: for dialects that
   * have no terminal event. Absent means that `finish` tells.
   */
  readonly isComplete?: boolean;
  /** The latest usage that the upstream reported, for a stream that is abandoned before its end. */
  readonly latestUsage: MeteredUsage | undefined;
}

/** The side of a wire format that faces upstreams. */
export interface UpstreamDialect {
  id: DialectId;
  /** Calls carry signatures that the upstream has to be sent again. */
  signsCalls?: true;
  /** Streams come in Amazon's binary messages instead of server-sent events. */
  binaryStreams?: true;
  /**
   * The form of a failure as an event where a stream comes in such messages, at some providers or
   * at all: its own name behind `exception:`, or the event `error`. Absent where none does.
   */
  exceptionForm?: "named" | "messages-error";
  /** The body of an error may mean another status than the one that it came with. */
  statusInBody?: true;
  /** Thinking goes out as a budget that counts against the output cap. */
  thinkingBudget?: true;
  /** Models think only where the request says so, with or without levels of effort. */
  thinksWhenAsked?: true;
  /** Answers have a field for thoughts as they were thought, which models of open weights fill. */
  showsOpenThoughts?: true;
  /** How the output cap of a request is fitted; absent means that it goes out as it is. */
  capRule?: OutputCapRule;
  /** Headers that requests of this dialect need beside the provider's own, such as a version. */
  requestHeaders?: Readonly<Record<string, string>>;
  /** Throws GatewayError `unsupported_content` for content that must not be dropped in silence. */
  encodeRequest(request: CanonicalRequest, options: EncodeRequestOptions): EncodedRequest;
  /** Throws GatewayError `upstream_error` when the body is no answer of this dialect. */
  decodeResponse(body: unknown, context?: DecodeContext): CanonicalResponse;
  /**
   * What was used for an answer that `decodeResponse` refuses since the model failed at it; absent
   * where no provider counts that.
   */
  usageOfFailure?(body: unknown): MeteredUsage | undefined;
  createStreamDecoder(context?: DecodeContext): StreamDecoder;
  /**
   * The event stream that a whole answer means, from a server that does not stream although it was
   * asked to; absent means that the answer is decoded, and encoded by the client's side.
   */
  eventsOfWhole?(text: string): string;
  /**
   * The whole answer that the data of a stream's events add up to, from a server that streams
   * although it was not asked to; absent as above.
   */
  wholeOfEvents?(data: readonly string[]): string;
  /** Counting the tokens of a prompt; absent where the dialect has no endpoint for it. */
  inputCount?: InputCount;
  /** What an error answer says; `body` is parsed JSON, or the text as it came. */
  readError(status: number, body: unknown): ReportedError;
}

type JsonFields = Readonly<Record<string, unknown>>;

/** The settings of a preset that dialects write each in their own way, by the names of the contract. */
export interface PresetSettings {
  temperature?: number;
  max_tokens?: number;
  max_completion_tokens?: number;
  top_p?: number;
  top_k?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  repetition_penalty?: number;
  stop?: string | readonly string[];
  seed?: number;
  response_format?: JsonFields;
  /** As chat has them. */
  tools?: readonly JsonFields[];
  tool_choice?: string | JsonFields;
  reasoning?: { effort?: string; max_tokens?: number; exclude?: boolean; enabled?: boolean };
  stream_options?: JsonFields;
}

/** How the settings of a preset are written in one client dialect. Pure. */
export interface PresetFields {
  /**
   * Members that the preset gives a request beside `model`, `models` and `provider`, which all
   * dialects share: only those that the request has not set itself. What the dialect has no member
   * for is left out.
   */
  settings(settings: PresetSettings, body: JsonFields): JsonFields;
  /** Whether the request brings a system message, wherever the dialect has a place for one. */
  hasSystem(body: JsonFields): boolean;
  /** The member that says `system`, as JSON text; `textOf` gives a member's own text. */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}

/** Null means absent, as it does everywhere in requests. */
export const isAbsent = (value: unknown): value is null | undefined =>
  value === null || value === undefined;

/** The members among `offered` that a request has not set itself. */
export function unlessSet(offered: JsonFields, body: JsonFields): JsonFields {
  return Object.fromEntries(
    Object.entries(offered).filter(
      ([member, value]) => value !== undefined && isAbsent(body[member]),
    ),
  );
}

/** The preset's bound on output tokens, whichever of the two names it has; the newer name wins. */
export const outputBound = ({
  max_completion_tokens: newer,
  max_tokens: older,
}: PresetSettings): number | undefined => newer ?? older;

/** A preset's wish for thinking: off, or some effort, or a budget of tokens. */
interface PresetEffort {
  off: boolean;
  effort: string | undefined;
  budgetTokens: number | undefined;
}

/** What a preset says of thinking; undefined where it says nothing of how much. */
export function presetEffort({ reasoning }: PresetSettings): PresetEffort | undefined {
  if (reasoning === undefined) return undefined;
  const off = reasoning.enabled === false || reasoning.effort === "none";
  const { effort, max_tokens: budgetTokens } = reasoning;
  return off || effort !== undefined || budgetTokens !== undefined
    ? { off, effort, budgetTokens }
    : undefined;
}

/** Whether a request's own `reasoning` object says how much is to be thought. */
export function saysEffort(reasoning: unknown): boolean {
  const fields = asObject(reasoning);
  return (
    fields !== undefined &&
    ["effort", "max_tokens", "enabled"].some((field) => !isAbsent(fields[field]))
  );
}

/**
 * A preset's tools and choice as a request takes them over: the choice goes with tools, and never
 * without any.
 */
export function presetTools(
  { tools, tool_choice: choice }: PresetSettings,
  body: JsonFields,
): Pick<PresetSettings, "tools" | "tool_choice"> {
  const ownTools = !isAbsent(body["tools"]);
  const taken = ownTools ? undefined : tools;
  const hasOwn = Array.isArray(body["tools"]) && body["tools"].length > 0;
  // A choice that names a tool of the preset means nothing to the request's own tools, and
  // providers refuse one without any.
  const fits = taken !== undefined || (hasOwn && typeof choice === "string");
  return {
    ...(taken === undefined ? {} : { tools: taken }),
    ...(fits && choice !== undefined ? { tool_choice: choice } : {}),
  };
}

/** The function that a tool of chat describes; undefined for other kinds of tools. */
export const functionOf = (tool: JsonFields): JsonFields | undefined =>
  tool["type"] === "function" ? asObject(tool["function"]) : undefined;

/** The name that a choice of chat calls for; undefined for other kinds of choices. */
export function chosenFunction(choice: JsonFields): string | undefined {
  const name = choice["type"] === "function" ? asObject(choice["function"])?.["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}
