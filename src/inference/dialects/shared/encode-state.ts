import type {
  AssistantMessage,
  CacheMarker,
  Message,
  OpaquePart,
  TextPart,
} from "../../canonical/message.ts";
import { writtenPath } from "../../canonical/written-places.ts";
import type { GatewayError } from "../../../platform/kernel/errors.ts";
import type { DialectId, Extensions } from "../../canonical/dialect-id.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { Loss, CanonicalRequest, Tool } from "../../canonical/request.ts";
import type { DialectDeviations } from "../deviations.ts";
import type { EncodeRequestOptions, ClientDialect, ResponseContext } from "../dialect.ts";
import { memberPath, unsupportedContent } from "./wire-fields.ts";
import { refusedFields } from "./refused-parameters.ts";
import { repairToolTurns, ToolNamer } from "./tools.ts";
import {
  responseParts,
  type CanonicalResponse,
  type Choice,
  type StreamPart,
} from "../../canonical/response.ts";

/** The names of the dialect that a request is encoded in. */
interface EncodedDialect {
  id: DialectId;
  /** The dialect's limit of tool name length. */
  toolNameLengthMax: number;
  /** Whether custom tools are sent as functions. */
  wrapsCustom: boolean;
}

const nothing: JsonObject = {};

/** The state that the steps of encoding one request share. */
export class EncodeState {
  readonly deviations: DialectDeviations;
  /** The dialect that is encoded. */
  readonly dialect: DialectId;
  /** Whether the client spoke this dialect itself, so that its own wording is kept. */
  readonly sameDialect: boolean;
  readonly namer: ToolNamer;
  private lossByField: Map<string, Loss> | undefined;
  private repaired: readonly Message[] | undefined;

  constructor(
    readonly request: CanonicalRequest,
    readonly options: EncodeRequestOptions,
    dialect: EncodedDialect,
  ) {
    this.deviations = options.deviations ?? {};
    this.dialect = dialect.id;
    this.sameDialect = request.dialect === dialect.id;
    this.namer = new ToolNamer({
      maxLength: dialect.toolNameLengthMax,
      wrapsCustom: dialect.wrapsCustom,
    });
  }

  /** The conversation that is encoded, with every tool call answered once. */
  get conversation(): readonly Message[] {
    this.repaired ??= repairToolTurns(this.request.messages);
    return this.repaired;
  }

  /**
   * Returns the tools, of those with one name the first: Anthropic and Google answer 400 to a second
   * one, which clients send that join the tools of several servers.
   */
  uniqueTools(): readonly Tool[] {
    const { tools = [] } = this.request;
    const names = new Set<string>();
    return tools.filter((tool, index) => {
      if (tool.type === "hosted" || this.sameDialect) return true;
      const name = `${tool.namespace ?? ""}\n${tool.name}`;
      const isFirst = !names.has(name);
      if (isFirst) names.add(name);
      else this.lose(`tools[${index}]`, `another tool has the name ${tool.name}`);
      return isFirst;
    });
  }

  /** The wire names of the tools that earlier turns called, each once. */
  calledToolNames(): string[] {
    const calls = this.request.messages.flatMap((message) =>
      message.role === "assistant" ? message.parts.filter((part) => part.type === "tool-call") : [],
    );
    return [...new Set(calls.map((call) => this.namer.wireName(call)))];
  }

  /** What the upstream's dialect cannot express; read once the request is encoded. */
  get losses(): Loss[] {
    if (!this.sameDialect) loseForeignFields(this);
    return this.lossByField === undefined ? [] : [...this.lossByField.values()];
  }

  /**
   * Declares something as lost, at a path in the canonical request; the same field is declared once.
   */
  lose(path: string, reason: string): void {
    const field = this.written(path);
    this.lossByField ??= new Map();
    if (!this.lossByField.has(field)) this.lossByField.set(field, { field, reason });
  }

  /** Returns a path in the canonical request as the client wrote it. */
  written(path: string): string {
    return writtenPath(path, { sent: this.request.messages, encoded: this.conversation });
  }

  /**
   * Returns the wire field of a cache marker, as the client wrote it or as the upstream knows it.
   */
  cacheFields(cache: CacheMarker | undefined): JsonObject {
    if (cache === undefined) return nothing;
    const field = (this.sameDialect ? cache.field : undefined) ?? this.deviations.cacheMarkers;
    if (field === undefined) this.lose("cache_control", "the upstream knows no cache markers");
    if (field === "cache_control") {
      return {
        cache_control: {
          type: "ephemeral",
          ...(cache.ttl !== undefined && cache.ttl !== "30m" && { ttl: cache.ttl }),
        },
      };
    }
    if (field === "prompt_cache_breakpoint") {
      return {
        prompt_cache_breakpoint: {
          mode: "explicit",
          ...(cache.ttl === "30m" && { ttl: cache.ttl }),
        },
      };
    }
    return {};
  }

  /** Returns the body without the fields that this upstream answers with 400. */
  withoutUnsupported(body: JsonObject): JsonObject {
    const { deviations } = this;
    const { fields, losses } = refusedFields(body, { deviations, refuses: this.options.refuses });
    if (fields.length === 0) return body;
    for (const { field, reason } of losses) this.lose(field, reason);
    return Object.fromEntries(Object.entries(body).filter(([field]) => !fields.includes(field)));
  }

  /**
   * Returns the end user's id where the upstream takes it. That of Claude Code tells a device and an
   * account, which are no other vendor's concern.
   */
  endUserId(): string | undefined {
    const { endUserId, dialect } = this.request;
    if (endUserId === undefined) return undefined;
    if (dialect === "anthropic-messages" && isDeviceId(endUserId)) {
      this.lose("metadata.user_id", "the device and account of Claude Code stay with Anthropic");
      return undefined;
    }
    if (endUserId.length <= (this.deviations.userLengthMax ?? Number.POSITIVE_INFINITY))
      return endUserId;
    const field = dialect === "anthropic-messages" ? "metadata.user_id" : "user";
    this.lose(field, `the provider takes at most ${this.deviations.userLengthMax} characters`);
    return undefined;
  }

  /** Returns a place in the canonical request. */
  at(path: string): EncodePlace {
    return new EncodePlace(this, path);
  }
}

/** A place in the canonical request that is being encoded, to which losses refer. */
export class EncodePlace {
  constructor(
    readonly state: EncodeState /** The path, such as `messages[2].content[1]`; empty for the request itself. */,
    readonly path: string,
  ) {}

  /** Returns a place within this one, such as `.content[1]`. */
  at(suffix: string): EncodePlace {
    return new EncodePlace(this.state, this.path + suffix);
  }

  /** Declares this place as lost. */
  lose(reason: string): void {
    this.state.lose(this.path, reason);
  }

  /** Builds the refusal of what stands here, which must not be dropped silently. */
  unsupported(problem: string): GatewayError {
    return unsupportedContent(this.state.written(this.path), problem);
  }

  /**
   * Returns the extension fields that the canonical form kept for this dialect. Records those of
   * another dialect as lost, unless they are null and so carry no information.
   */
  extensionFields(extensions: Extensions | undefined): JsonObject {
    if (extensions === undefined) return nothing;
    if (extensions.dialect === this.state.dialect) return extensions.fields;
    for (const [key, value] of Object.entries(extensions.fields)) {
      if (value !== null)
        this.state.lose(memberPath(this.path, key), `a field of ${extensions.dialect}`);
    }
    return {};
  }
}

/**
 * Declares the fields that only the client's dialect has, wherever an encoder has no place for
 * them, so that none is dropped silently. A field is declared once.
 */
function loseForeignFields(state: EncodeState): void {
  const { request, conversation } = state;
  const { reasoning, tools = [], webSearch } = request;
  state.at(reasoningField(state)).extensionFields(reasoning?.extensions);
  if (reasoning?.mode !== undefined && reasoning.mode !== "adaptive")
    state.lose(
      `${reasoningField(state)}.type`,
      `${reasoning.mode} is a rule of ${request.dialect}`,
    );
  state.at("web_search_options").extensionFields(webSearch?.extensions);
  tools.forEach((tool, index) => {
    loseCache(tool.cache, state);
    if (tool.type === "hosted") return;
    const place = state.at(`tools[${index}]`);
    place.extensionFields(tool.extensions);
    if (tool.deferred === true && !keepsTools.has(state.dialect))
      place.at(".defer_loading").lose(`${state.dialect} offers every tool at once`);
  });
  conversation.forEach((message, index) => loseOfMessage(message, state.at(`messages[${index}]`)));
}

/** Returns the field in which the client's dialect asks for reasoning. */
const reasoningField = ({ request }: EncodeState): string =>
  request.dialect === "anthropic-messages" ? "thinking" : "reasoning";

/** Dialects with a search for tools that are offered only by name until then. */
const keepsTools: ReadonlySet<DialectId> = new Set(["anthropic-messages", "openai-responses"]);

/** Dialects whose cache markers are a deviation of the upstream. */
const marksByDeviation: ReadonlySet<DialectId> = new Set(["openai-chat", "openai-responses"]);

/** Declares a cache marker as lost, or its lifetime, for an upstream that does not know it. */
function loseCache(cache: CacheMarker | undefined, state: EncodeState): void {
  if (cache === undefined) return;
  if (marksByDeviation.has(state.dialect)) state.cacheFields(cache);
  else if (cache.ttl === "30m")
    state.lose("cache_control.ttl", `${state.dialect} keeps a prompt for other times`);
}

function loseOfMessage(message: Message, place: EncodePlace): void {
  place.extensionFields(message.extensions);
  if (message.role === "tool") loseCache(message.cache, place.state);
  if (message.role !== "tool" && message.name !== undefined)
    place.at(".name").lose(`${place.state.dialect} has no such field`);
  let calls = 0;
  (message as AssistantMessage).parts.forEach((part, index) => {
    const at = part.type === "tool-call" ? `.tool_calls[${calls++}]` : `.content[${index}]`;
    losePart(part, place.at(at));
    if (part.type === "text") loseOfText(part, { place: place.at(at), role: message.role });
  });
}

/** Declares what only the client's dialect has of a part, and of the parts within a document. */
function losePart(part: Message["parts"][number], place: EncodePlace): void {
  if ("extensions" in part) place.extensionFields(part.extensions);
  if ("cache" in part) loseCache(part.cache, place.state);
  if (part.type !== "document" || part.source.type !== "parts") return;
  part.source.parts.forEach((inner, index) => {
    const at = place.at(`.source[${index}]`);
    losePart(inner, at);
    if (inner.type === "text") loseOfText(inner, { place: at, role: "user" });
  });
}

/** Declares the sources of a text that only answers and their replay have, and its phase. */
function loseOfText(
  part: TextPart,
  { place, role }: { place: EncodePlace; role: Message["role"] },
): void {
  const { state } = place;
  if (part.phase !== undefined) losePhase(place);
  const replays = role === "assistant" && state.dialect !== "google-generate";
  if ((part.annotations?.length ?? 0) > 0 && (!replays || state.dialect === "openai-chat"))
    place.at(citedIn(state)).lose(`${state.dialect} takes no sources with a text`);
  if (part.cache !== undefined && role === "system" && state.dialect !== "google-generate")
    loseLaterMarker(place);
}

const citedIn = ({ request }: EncodeState): string =>
  request.dialect === "anthropic-messages" ? ".citations" : ".annotations";

/** Declares a cache marker on instructions within the conversation, which are sent as a text. */
function loseLaterMarker({ state, path }: EncodePlace): void {
  const index = Number(/^messages\[(\d+)\]/.exec(path)?.[1]);
  if (
    !marksByDeviation.has(state.dialect) &&
    state.conversation[index - 1]?.role !== "system" &&
    index > 0
  )
    state.lose("cache_control", "instructions within the conversation take no cache marker");
}

/** Declares the phase of a message as lost: Responses has it on the message, not on its texts. */
function losePhase({ state, path }: EncodePlace): void {
  const written = state.written(path).replace(/\.content(?:\[\d+\])?$/, "");
  state.lose(`${written}.phase`, "a field of openai-responses");
}

/**
 * Collects what a client's dialect cannot carry of one answer, each kind once: `answer.image`,
 * `answer.web_search_call`.
 */
export class AnswerLosses {
  readonly list: Loss[] = [];
  private readonly detect: ReturnType<ClientDialect["createLossDetector"]>;
  private readonly reason: string;

  constructor(client: ClientDialect, context: ResponseContext) {
    this.detect = client.createLossDetector(context);
    this.reason = `answers of ${client.id} have no place for it`;
  }

  observe(part: StreamPart): void {
    const name = "itemIndex" in part ? this.detect(part) : undefined;
    if (name !== undefined) this.lose(name, this.reason);
  }

  lose(name: string, reason: string): void {
    const field = `answer.${name}`;
    if (!this.list.some((loss) => loss.field === field)) this.list.push({ field, reason });
  }

  observeWhole(response: CanonicalResponse): void {
    if (response.choices.every(isPlainText)) return;
    for (const part of responseParts(response)) this.observe(part);
  }
}

/** Returns whether an answer is one text, as most are, of which nothing can be lost. */
const isPlainText = ({ parts: [only, ...more] }: Choice): boolean =>
  more.length === 0 && only?.type === "text" && only.annotations === undefined;

/**
 * Declares the fields for caching the whole prompt as lost; the key is not where the prompt is marked
 * in its place.
 */
export function losePromptCaching(
  state: EncodeState,
  reason: string,
  { marked = false }: { marked?: boolean } = {},
): void {
  const { key, retention, options } = state.request.promptCaching ?? {};
  if (key !== undefined && !marked) state.lose("prompt_cache_key", reason);
  if (retention !== undefined) state.lose("prompt_cache_retention", reason);
  if (options !== undefined) state.lose("prompt_cache_options", reason);
}

/** The fields of OpenAI's dialects that neither Converse nor Messages has. */
const openaiAlone: readonly (readonly [key: keyof CanonicalRequest, field: string])[] = [
  ["verbosity", "verbosity"],
  ["audio", "audio"],
  ["prediction", "prediction"],
  ["moderation", "moderation"],
];

/** Declares the fields as lost that OpenAI's dialects alone have. */
export function loseOpenaiFields(state: EncodeState, reason: string): void {
  for (const [key, field] of openaiAlone)
    if (state.request[key] !== undefined) state.lose(field, reason);
}

/** Returns whether an id is Claude Code's, which names a device, an account and a session. */
const isDeviceId = (id: string): boolean =>
  /^user_[0-9a-f]{32,}_account_|^\s*\{.*"(?:device_id|account_uuid)"/s.test(id);

/**
 * Declares a service tier as lost that the upstream's dialect does not name; `auto` and `default`
 * are what an absent one means.
 */
export function loseServiceTier(state: EncodeState): void {
  const { serviceTier: tier } = state.request;
  if (tier !== undefined && tier !== "auto" && tier !== "default")
    state.lose("service_tier", `${state.dialect} names other tiers`);
}

/**
 * Returns the type of a part that only its own dialect has: its `type`, or the single member that
 * Gemini's parts have instead.
 */
export const opaqueName = ({ value }: OpaquePart): string =>
  typeof value.type === "string" ? value.type : (Object.keys(value)[0] ?? "part");

/**
 * Returns the text for a part that another dialect's model can read as one: a tool that a search
 * has found (`tool_reference` of Messages), which is offered by its name. Undefined for all others.
 */
export function readableText({ dialect, value }: OpaquePart): string | undefined {
  const { type, tool_name: name } = value;
  return dialect === "anthropic-messages" && type === "tool_reference" && typeof name === "string"
    ? `Tool found: ${name}`
    : undefined;
}
