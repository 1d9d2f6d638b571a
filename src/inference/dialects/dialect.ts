import type {
  OutputCapName,
  PresetSettings,
} from "../../platform/kernel/models/preset-settings.ts";
import type { GatewayError } from "../../platform/kernel/errors.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import type {
  GatewayFacts,
  CanonicalResponse,
  MeteredUsage,
  ReportedError,
  ItemPart,
  SpokenPart,
  StreamPart,
} from "../canonical/response.ts";
import type { JsonObject } from "../canonical/json.ts";
import type { Loss, CanonicalRequest } from "../canonical/request.ts";
import type { ReasoningField } from "../canonical/reasoning.ts";
import type { PassThrough } from "./shared/passthrough.ts";
import type { Unreadable, UnsealedRequest } from "./shared/refused-thoughts.ts";
import type { RequirementReader } from "./shared/requirements.ts";
import type { ToolAliases } from "./shared/tools.ts";
import { asObject } from "./shared/wire-fields.ts";
import type { SocketMode } from "./socket-mode.ts";

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

/**
 * Named deviations of an upstream from its dialect. Absent means that it behaves as the dialect
 * says.
 */
export interface DialectDeviations {
  /**
   * The name of the output cap that the upstream knows. Absent means `max_tokens`, which nearly
   * every server obeys: a server ignores a cap under a name that it does not know. `either` leaves
   * the client's own name.
   */
  maxTokensField?: OutputCapName | "either";
  /**
   * Whether the upstream answers 400 to `stream_options`; usage then comes by itself or not at all.
   */
  noStreamOptions?: boolean;
  /**
   * The field in which the upstream expects earlier reasoning to be replayed; absent means that it
   * refuses it.
   */
  reasoningReplay?: ReasoningField;
  /** Whether the upstream takes OpenRouter's `reasoning` object in place of `reasoning_effort`. */
  reasoningObject?: boolean;
  /** The cache marker that the upstream knows on parts; absent means none. */
  cacheMarkers?: "cache_control" | "prompt_cache_breakpoint";
  /** Whether the upstream knows custom tools; absent means that they are wrapped in functions. */
  customTools?: boolean;
  /**
   * Whether the upstream knows the role `developer`; absent means that such messages are sent as
   * `system`.
   */
  developerRole?: boolean;
  /**
   * Whether the upstream accepts a system message only at the head; later ones are sent as the
   * user's text.
   */
  systemOnlyFirst?: boolean;
  /** Request fields that the upstream answers with 400, by wire name. */
  unsupportedFields?: readonly string[];
  /**
   * Whether the upstream holds conversations that requests continue (`thread` of Messages); absent
   * means that such requests are refused, since an upstream that ignores the field would answer
   * without the conversation.
   */
  messageThreads?: boolean;
  /** The most characters of `user`; absent means any number. */
  userLengthMax?: number;
  /** Whether ids of calls have to be nine letters and digits. */
  nineCharacterCallIds?: boolean;
  /** Whether a user's turn may not follow the result of a call directly, for Mistral's models or all. */
  answersResults?: boolean | "mistral";
  /** Whether the upstream answers 400 to the role `developer` from its own clients too. */
  refusesDeveloper?: boolean;
  /** Whether the upstream answers 400 to pictures, files and recordings anywhere in a conversation. */
  readsTextAlone?: boolean;
  /** Members of messages that the upstream answers with 400. */
  unsupportedMessageFields?: readonly string[];
  /** Members of functions that the upstream answers with 400. */
  unsupportedToolFields?: readonly string[];
  /** Whether schemas of functions may have no members beside `$ref`, and no tuples. */
  plainSchemas?: boolean;
  /** Whether the upstream takes a required call, and no call of one function by its name. */
  unnamedToolChoice?: boolean;
  /** The models that take functions on chat only without reasoning, by wire name. */
  unreasonedFunctions?: RegExp;
  /** The models that take the effort `max` in another dialect alone, by wire name. */
  maxEffortElsewhere?: RegExp;
  /** Whether the upstream answers 400 to `reasoning.summary` of Responses. */
  noReasoningSummary?: boolean;
  /** Whether the upstream answers 400 to assistant's turns without text and calls. */
  refusesEmptyTurns?: boolean;
  /** Whether the upstream knows JSON, but no schema, as the form of an answer. */
  jsonWithoutSchema?: boolean;
  /**
   * Whether a model that reasons requires reasoning in every turn with calls, in the field of
   * `reasoningReplay`.
   */
  reasoningBesideCalls?: boolean;
  /**
   * Whether a model that reasons cannot be forced to call a tool. Reasoning is then turned off, by
   * `thinking`; models of these names cannot turn it off, and choose themselves.
   */
  unforcedWhileReasoning?: { alwaysReasons: RegExp };
}

/** Request fields that a model answers with 400, by their names in chat. */
export interface RefusedParameters {
  always: readonly string[];
  /** Refused unless the request turns reasoning off. */
  whileReasoning: readonly string[];
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

/** Texts of consecutive events that are not decoded. */
export interface SkippedTexts {
  /** The number of events, and the characters of their texts. */
  count: number;
  characters: number;
  /** The texts themselves, one after another; empty for a decoder that keeps none. */
  text: string;
}

/** Decodes one upstream's events to canonical stream parts; one decoder serves one stream. */
export interface StreamDecoder {
  decode(event: { event?: string; data: string }): StreamPart[];
  /**
   * Notes texts of events that are not decoded, because they differ from the latest decoded event,
   * which said `like`, only in these texts. Absent means that every event has to be decoded.
   */
  skip?(like: SpokenPart, texts: SkippedTexts): void;
  /** Whether `skip` takes arguments of calls too, and whether it needs the texts themselves. */
  readonly skipsCalls?: boolean;
  readonly keepsTexts?: true;
  /** Whether a draft of a picture has come, which no part has; absent where there are none. */
  readonly hasDraft?: boolean;
  /** Ends the stream: closes what is complete, and returns an error for what was cut. */
  end(): StreamPart[];
  /** Whether every choice has ended without a `finish`; absent for dialects with an end event. */
  readonly isComplete?: boolean;
  /** The upstream's id of the answer where it may come after the start; absent for others. */
  readonly answerId?: string | undefined;
  /** The latest usage that the upstream reported, for a stream that is abandoned before its end. */
  readonly latestUsage: MeteredUsage | undefined;
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

type JsonFields = Readonly<Record<string, unknown>>;

/** Functions that write the settings of a preset in one client dialect. Pure. */
export interface PresetFields {
  /**
   * Returns the members that the preset adds to a request, beside `model`, `models` and `provider`,
   * which all dialects share: only those that the request has not set itself. Settings without a
   * member in the dialect are left out.
   */
  settings(settings: PresetSettings, body: JsonFields): JsonFields;
  /**
   * Returns the names of the settings that the dialect has no member for; absent where it has one
   * for each.
   */
  lost?(settings: PresetSettings): readonly string[];
  /**
   * Returns whether the request has a system message, in any place where the dialect allows one.
   */
  hasSystem(body: JsonFields): boolean;
  /**
   * Returns the member that carries `system`, as JSON text; `textOf` returns a member's original
   * text.
   */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}

/** Returns whether a value is absent. Null means absent, as everywhere in requests. */
export const isAbsent = (value: unknown): value is null | undefined =>
  value === null || value === undefined;

/** Returns the members of `offered` that a request has not set itself. */
export function unlessSet(offered: JsonFields, body: JsonFields): JsonFields {
  return Object.fromEntries(
    Object.entries(offered).filter(
      ([member, value]) => value !== undefined && isAbsent(body[member]),
    ),
  );
}

/** A preset's reasoning setting: off, an effort, or a budget in tokens. */
interface PresetEffort {
  off: boolean;
  effort: string | undefined;
  budgetTokens: number | undefined;
}

/** Returns a preset's reasoning setting; undefined where it says nothing of how much. */
export function presetEffort({ reasoning }: PresetSettings): PresetEffort | undefined {
  if (reasoning === undefined) return undefined;
  const off = reasoning.enabled === false || reasoning.effort === "none";
  const { effort, max_tokens: budgetTokens } = reasoning;
  return off || effort !== undefined || budgetTokens !== undefined
    ? { off, effort, budgetTokens }
    : undefined;
}

/** Returns whether a request's own `reasoning` object says how much to reason. */
export function saysEffort(reasoning: unknown): boolean {
  const fields = asObject(reasoning);
  return (
    fields !== undefined &&
    ["effort", "max_tokens", "enabled"].some((field) => !isAbsent(fields[field]))
  );
}

/**
 * Returns a preset's tools and choice for a request: the choice is applied with tools, and never
 * without any.
 */
export function presetTools(
  { tools, tool_choice: choice }: PresetSettings,
  body: JsonFields,
): Pick<PresetSettings, "tools" | "tool_choice"> {
  const ownTools = !isAbsent(body["tools"]);
  const taken = ownTools ? undefined : tools;
  const hasOwn = Array.isArray(body["tools"]) && body["tools"].length > 0;
  // A choice that names a tool of the preset has no meaning for the request's own tools, and
  // providers refuse a choice without tools.
  const fits = taken !== undefined || (hasOwn && typeof choice === "string");
  return {
    ...(taken === undefined ? {} : { tools: taken }),
    ...(fits && choice !== undefined ? { tool_choice: choice } : {}),
  };
}

/** Returns the function that a chat tool describes; undefined for other kinds of tools. */
export const functionOf = (tool: JsonFields): JsonFields | undefined =>
  tool["type"] === "function" ? asObject(tool["function"]) : undefined;

/** Returns the function name of a chat tool choice; undefined for other kinds of choices. */
export function chosenFunction(choice: JsonFields): string | undefined {
  const name = choice["type"] === "function" ? asObject(choice["function"])?.["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}
