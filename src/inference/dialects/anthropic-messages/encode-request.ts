import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type {
  CanonicalRequest,
  Sampling,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import {
  claudeAbilities,
  encodeClaudeThinking,
  type ClaudeThinking,
} from "../shared/reasoning-rules.ts";
import {
  jsonAdvice,
  refuseOtherAnswers,
  typedObjectSchema,
  wrappedDescription,
  wrappedParameters,
} from "../shared/tools.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { withMarkedPrompt } from "../../canonical/marked-prompt.ts";
import {
  EncodeState,
  loseOpenaiFields,
  losePromptCaching,
  type EncodePlace,
} from "../shared/encode-state.ts";
import { type HeldSchema, heldSchema, loseDescribed } from "../shared/schemas/held-schema.ts";
import { claudeParameters, withMembers } from "../shared/schemas/member-names.ts";
import { asArray, asObject, joined, withoutUndefined } from "../shared/wire-fields.ts";
import {
  choosesSearch,
  isTranslated,
  locationOf,
  searchTerms,
} from "../shared/extras/web-search.ts";
import { encodeMessages } from "./messages/encode-messages.ts";
import { cacheFields, laterToolNames, takesLaterSystem } from "./answer-fields.ts";

/** Encodes tools. Where none are left, only those that were called are named. */
function encodeToolFields(state: EncodeState): JsonObject {
  const search = encodeSearch(state);
  if (search.length > 0) state.namer.reserve(searchName);
  const wire = [
    ...offeredTools(state).flatMap((tool) =>
      encodeTool(tool, state.at(`tools[${state.request.tools?.indexOf(tool) ?? 0}]`)),
    ),
    ...search,
  ];
  if (wire.length === 0) return state.sameDialect ? {} : encodeCalledTools(state);
  return withoutUndefined<JsonObject>({ tools: wire, tool_choice: encodeToolChoice(state) });
}

/**
 * Declares the tools that earlier turns called, and that none may be called now. Anthropic answers
 * 400 "Requests which include `tool_use` or `tool_result` blocks must define tools"; other dialects
 * take a conversation with calls and no tools.
 */
function encodeCalledTools(state: EncodeState): JsonObject {
  const tools = state
    .calledToolNames()
    .map((name) => ({ name, input_schema: typedObjectSchema(undefined) }));
  return tools.length === 0 ? {} : { tools, tool_choice: { type: "none" } };
}

/**
 * Returns the tools to offer. `allowed_tools` exists only in OpenAI's dialects; tools that it does
 * not allow are left out.
 */
function offeredTools(state: EncodeState): readonly Tool[] {
  const { tools = [], toolChoice } = state.request;
  if (toolChoice?.type !== "allowed")
    return state.sameDialect ? withoutLater(tools, state) : state.uniqueTools();
  state.lose(
    "tool_choice.allowed_tools",
    "sent as a shorter list of tools, which a prompt cache notices",
  );
  return state
    .uniqueTools()
    .filter(
      (tool) =>
        tool.type !== "hosted" &&
        toolChoice.tools.some(
          (allowed) => allowed.type === tool.type && allowed.name === tool.name,
        ),
    );
}

/** Leaves out tools that the conversation itself defines. */
function withoutLater(
  tools: readonly Tool[],
  { request, options, deviations }: EncodeState,
): readonly Tool[] {
  if (!takesLaterSystem(options.upstreamModel, deviations)) return tools;
  const later = laterToolNames(request);
  return later.size === 0
    ? tools
    : tools.filter((tool) => tool.type === "hosted" || !later.has(tool.name));
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place)];
    case "custom":
      return [wrapCustom(tool, place)];
    case "hosted":
      if (tool.dialect === "anthropic-messages") return [tool.value];
      if (isTranslated(tool, place.state)) return [];
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

/** The one name of Anthropic's search, beside which no other tool may have it. */
const searchName = "web_search";

/**
 * Encodes a search that other dialects ask for, in the version that every Claude knows. Only one of
 * the two lists of domains may be sent.
 */
function encodeSearch(state: EncodeState): JsonObject[] {
  const terms = searchTerms(state, ["allowedDomains", "blockedDomains", "maxUses", "userLocation"]);
  if (terms === undefined) return [];
  const { allowedDomains, blockedDomains, maxUses, userLocation } = terms;
  if (allowedDomains !== undefined && blockedDomains !== undefined)
    state.lose("blocked_domains", "Anthropic takes one list of domains, and the allowed are sent");
  return [
    withoutUndefined<JsonObject>({
      type: "web_search_20250305",
      name: searchName,
      max_uses: maxUses,
      allowed_domains: allowedDomains,
      blocked_domains: allowedDomains === undefined ? blockedDomains : undefined,
      user_location: locationOf(userLocation),
    }),
  ];
}

const encodeFunction = (tool: FunctionTool, place: EncodePlace): JsonObject =>
  withoutUndefined<JsonObject>({
    name: place.state.namer.wireName({ ...tool, kind: "function" }),
    description: tool.description,
    ...encodeParameters(tool, place),
    defer_loading: tool.deferred,
    input_examples: encodeExamples(tool, place),
    ...cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });

/** Encodes examples, whose members are named as in the schema. */
const encodeExamples = (tool: FunctionTool, { state }: EncodePlace): JsonValue | undefined =>
  tool.inputExamples?.map((example) =>
    withMembers(example, state.namer.membersOf({ ...tool, kind: "function" })),
  );

function encodeParameters(tool: FunctionTool, place: EncodePlace): JsonObject {
  const { sameDialect, options } = place.state;
  const { strict } = tool;
  const schema = claudeParameters(tool, place);
  if (sameDialect || strict !== true) return { input_schema: schema, strict };
  const held = claudeAbilities(options.upstreamModel).takesSchemas ? heldSchema(schema) : undefined;
  if (held === undefined) {
    place.at(".strict").lose("this model follows this schema without being held to it");
    return { input_schema: schema };
  }
  loseDescribed(held, place.at(".parameters"));
  return { input_schema: held.schema, strict };
}

/** Wraps a custom tool in a function with one text argument; a grammar becomes advice. */
function wrapCustom(tool: CustomTool, place: EncodePlace): JsonObject {
  return withoutUndefined<JsonObject>({
    name: place.state.namer.wireName({ ...tool, kind: "custom" }),
    description: wrappedDescription(tool, () =>
      place.at(".format").lose("the grammar is described, not enforced"),
    ),
    input_schema: wrappedParameters,
    defer_loading: tool.deferred,
    ...cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });
}

/**
 * Encodes the choice with its switch for parallel calls, which needs a choice that carries it:
 * `auto`, never a forced one.
 */
function encodeToolChoice(state: EncodeState): JsonObject | undefined {
  const { toolChoice, parallelToolCalls } = state.request;
  const oneAtATime =
    parallelToolCalls === false
      ? { disable_parallel_tool_use: true }
      : parallelToolCalls === true && state.sameDialect && toolChoice !== undefined
        ? { disable_parallel_tool_use: false }
        : undefined;
  if (toolChoice === undefined) return oneAtATime && { type: "auto", ...oneAtATime };
  const choice = takenChoice(choiceFields(toolChoice, state), state);
  return choice === undefined || choice.type === "none" ? choice : { ...choice, ...oneAtATime };
}

/** Leaves a forced call to the model where it always thinks, since it would answer 400. */
function takenChoice(choice: JsonObject | undefined, state: EncodeState): JsonObject | undefined {
  const isForced = choice?.type === "any" || choice?.type === "tool";
  const { alwaysThinks } = claudeAbilities(state.options.upstreamModel);
  if (!isForced || !alwaysThinks || state.sameDialect) return choice;
  state.lose("tool_choice", "a model that always thinks chooses its tools itself");
  return { type: "auto" };
}

function choiceFields(choice: ToolChoice, state: EncodeState): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
      return { type: choice.type };
    case "required":
      return { type: "any" };
    case "allowed":
      return { type: choice.mode === "required" ? "any" : "auto" };
    case "tool":
      return { type: "tool", name: state.namer.wireName(choice) };
    case "hosted":
      if (choice.dialect === "anthropic-messages") return choice.value;
      if (state.options.searches === true && choosesSearch(choice))
        return { type: "tool", name: searchName };
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}

/** Encodes a Messages request for an upstream; see `UpstreamDialect.encodeRequest`. */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const state = new EncodeState(withMarkedPrompt(request), options, {
    id: "anthropic-messages",
    toolNameLengthMax: 128,
    wrapsCustom: true,
  });
  refuseOtherAnswers(request);
  const {
    output_config: ownConfig,
    metadata: ownMetadata,
    ...own
  } = state.at("").extensionFields(request.extensions);
  const tools = encodeToolFields(state);
  const { system, messages } = encodeMessages(state);
  const thinking = encodeClaudeThinking(state);
  const body = joined<JsonObject>(
    {
      model: options.upstreamModel,
      max_tokens: thinking.maxTokens,
      stream: options.stream || undefined,
    },
    { system: withJsonAdvice(system, state), messages },
    tools,
    {
      thinking: thinking.thinking,
      output_config: encodeOutputConfig(state, { thinking, own: asObject(ownConfig) }),
    },
    encodeSampling(state, {
      thinks: thinking.thinking !== undefined && thinking.thinking.type !== "disabled",
    }),
    encodeIdentity(state, asObject(ownMetadata)),
    own,
  );
  declareUnsaid(state);
  return {
    body: state.withoutUnsupported(fitCacheMarkers(body, state)),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

function encodeOutputConfig(
  state: EncodeState,
  { thinking, own }: { thinking: ClaudeThinking; own: JsonObject | undefined },
): JsonObject | undefined {
  const format = encodeFormat(state);
  if (thinking.effort === undefined && format === undefined && own === undefined) return undefined;
  const config = withoutUndefined<JsonObject>({ effort: thinking.effort, format, ...own });
  return Object.keys(config).length === 0 ? undefined : config;
}

function encodeFormat(state: EncodeState): JsonObject | undefined {
  const {
    request: { output },
    options,
    sameDialect,
  } = state;
  if (output?.type !== "json-schema" || output.schema === undefined) return undefined;
  const held = sameDialect ? { schema: output.schema, described: [] } : heldFormat(state);
  if (held === undefined) return undefined;
  loseDescribed(held, state.at("response_format"));
  if (output.description !== undefined)
    state.lose("response_format.description", `${options.upstreamModel} is sent the schema alone`);
  return { type: "json_schema", schema: held.schema };
}

/** Returns the schema that the answer is held to; undefined where the model can be held to none. */
function heldFormat({ request: { output }, options }: EncodeState): HeldSchema | undefined {
  if (output?.type !== "json-schema" || output.schema === undefined) return undefined;
  return claudeAbilities(options.upstreamModel).takesSchemas
    ? heldSchema(output.schema)
    : undefined;
}

/**
 * Asks in words for JSON without a schema, or with one that cannot be enforced, and declares the
 * loss.
 */
function withJsonAdvice(system: JsonObject["system"], state: EncodeState): JsonObject["system"] {
  const { output } = state.request;
  const asksJson =
    output?.type === "json" ||
    (output?.type === "json-schema" && !state.sameDialect && heldFormat(state) === undefined);
  if (!asksJson) return system;
  state.lose("response_format", "the model is asked to answer in JSON, and not held to it");
  const advice = jsonAdvice(output.type === "json-schema" ? output.schema : undefined);
  if (system === undefined) return advice;
  return typeof system === "string"
    ? `${system}\n\n${advice}`
    : [...(system as readonly JsonObject[]), { type: "text", text: advice }];
}

function encodeIdentity(state: EncodeState, ownMetadata: JsonObject | undefined): JsonObject {
  const { endUserId, safetyIdentifier } = state.request;
  if (endUserId !== undefined && safetyIdentifier !== undefined)
    state.lose("safety_identifier", "messages names one id of the end user, and user is sent");
  const userId = userIdOf(state);
  const metadata = userId === undefined ? ownMetadata : { user_id: userId, ...ownMetadata };
  return {
    metadata: metadata === undefined || Object.keys(metadata).length === 0 ? undefined : metadata,
    service_tier: serviceTier(state),
  };
}

/** Returns the service tier. Anthropic has two tiers; OpenAI's `default` is its standard one. */
function serviceTier(state: EncodeState): string | undefined {
  const { serviceTier: tier } = state.request;
  if (tier === undefined || state.sameDialect || tier === "auto") return tier;
  if (tier === "default") return "standard_only";
  state.lose("service_tier", "messages names other tiers");
  return undefined;
}

/**
 * Declares fields of other dialects that Messages cannot express. Storage and metadata are handled
 * by the gateway.
 */
function declareUnsaid(state: EncodeState): void {
  loseOpenaiFields(state, "messages has no such field");
  losePromptCaching(state, "messages has no such field", { marked: true });
}

/** Sampling parameters that Messages does not have. */
const unsaidSampling: readonly (readonly [key: keyof Sampling, field: string])[] = [
  ["minP", "min_p"],
  ["topA", "top_a"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
  ["repetitionPenalty", "repetition_penalty"],
  ["seed", "seed"],
  ["logitBias", "logit_bias"],
];

/** Encodes sampling, within what the model accepts, and stop texts. */
function encodeSampling(state: EncodeState, { thinks }: { thinks: boolean }): JsonObject {
  const { sampling = {}, stop } = state.request;
  for (const [key, field] of unsaidSampling)
    if (sampling[key] !== undefined) state.lose(field, "messages has no such field");
  return joined<JsonObject>(samplers(state, { sampling, thinks }), {
    stop_sequences: stopTexts(state, stop),
  });
}

function samplers(
  state: EncodeState,
  { sampling, thinks }: { sampling: Sampling; thinks: boolean },
): JsonObject {
  const { temperature, topP, topK } = sampling;
  const { refusesSampling, takesOneSampler } = claudeAbilities(state.options.upstreamModel);
  if (refusesSampling || (thinks && !state.sameDialect)) {
    const reason = refusesSampling
      ? "the model takes no sampling parameters"
      : "a model that thinks takes no sampling parameters";
    if (temperature !== undefined && temperature !== 1) state.lose("temperature", reason);
    if (topP !== undefined && topP !== 1) state.lose("top_p", reason);
    if (topK !== undefined) state.lose("top_k", reason);
    return {};
  }
  const both =
    temperature !== undefined && topP !== undefined && takesOneSampler && !state.sameDialect;
  if (both) state.lose("top_p", "the model takes it or a temperature, not both");
  if (temperature !== undefined && temperature > 1) state.lose("temperature", "at most 1 here");
  return {
    temperature: temperature === undefined ? undefined : Math.min(1, temperature),
    top_p: both ? undefined : topP,
    top_k: topK,
  };
}

/** Returns the stop texts. Anthropic refuses those of white space alone. */
function stopTexts(
  state: EncodeState,
  stop: readonly string[] | undefined,
): readonly string[] | undefined {
  const written = stop?.filter((text, index) => {
    if (text.trim() === "")
      state.lose(`stop[${index}]`, "messages takes no stop text of white space alone");
    return text.trim() !== "";
  });
  return written?.length ? written : undefined;
}

/** Anthropic's limit of cache markers in one request. */
const markersMax = 4;

/**
 * Returns the body with cache markers as Anthropic accepts them, since other dialects have no such
 * rules: the last ones, because each covers everything before it, and none that is kept for longer
 * than one before it (400 "a ttl='1h' cache_control block must not come after a ttl='5m'").
 */
function fitCacheMarkers(body: JsonObject, state: EncodeState): JsonObject {
  const markers = state.sameDialect
    ? []
    : promptFields.flatMap((field) => markersIn(body[field] ?? null));
  const kept = markers.slice(-markersMax);
  const firstShort = kept.findIndex(({ ttl }) => ttl !== "1h");
  const late = firstShort < 0 ? [] : kept.slice(firstShort).filter(({ ttl }) => ttl === "1h");
  if (kept.length < markers.length)
    state.lose("cache_control", `messages takes ${markersMax} cache markers; the last are kept`);
  if (late.length > 0)
    state.lose("cache_control.ttl", "nothing is kept for longer than what comes before it");
  if (kept.length === markers.length && late.length === 0) return body;
  const fitted = new Map(kept.map((marker) => [marker, marker]));
  for (const marker of late) fitted.set(marker, { type: "ephemeral" });
  const fit = (value: JsonValue): JsonValue => {
    const list = asArray(value);
    if (list !== undefined) return list.map(fit);
    const object = asObject(value);
    if (object === undefined) return value;
    const { cache_control: written, ...rest } = object;
    const marker = fitted.get(asObject(written) ?? {});
    return {
      ...rest,
      ...(rest.content !== undefined && { content: fit(rest.content) }),
      ...(marker !== undefined && { cache_control: marker }),
    };
  };
  return { ...body, ...mapFields(body, fit) };
}

/** The fields with cache markers, in the order in which the model reads them. */
const promptFields = ["tools", "system", "messages"] as const;

const mapFields = (body: JsonObject, change: (value: JsonValue) => JsonValue): JsonObject =>
  Object.fromEntries(
    promptFields.flatMap((field) => {
      const value = body[field];
      return value === undefined ? [] : [[field, change(value)] as const];
    }),
  );

/** Returns the cache markers of blocks or tools, in order. */
function markersIn(value: JsonValue): JsonObject[] {
  const list = asArray(value);
  if (list !== undefined) return list.flatMap(markersIn);
  const object = asObject(value);
  if (object === undefined) return [];
  const own = asObject(object.cache_control);
  return [...markersIn(object.content ?? null), ...(own === undefined ? [] : [own])];
}

/** Matches an e-mail address, or a number that could be a telephone's. */
const personal = /@|^\+?[\d\s().-]{7,}$/;

/**
 * Returns the end user's id. Anthropic asks for one that reveals nothing about the person, so what
 * looks like an address is sent as its hash, which is the same for the same user.
 */
function userIdOf({ request, sameDialect }: EncodeState): string | undefined {
  const id = request.endUserId ?? request.safetyIdentifier;
  if (id === undefined || sameDialect || !personal.test(id)) return id;
  return `user_${new Bun.CryptoHasher("sha256").update(id).digest("hex").slice(0, 32)}`;
}
