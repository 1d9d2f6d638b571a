import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type {
  CanonicalRequest,
  OutputFormat,
  AllowedTool,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { type EncodePlace, EncodeState, loseServiceTier } from "../shared/encode-state.ts";
import {
  answerField,
  jsonWord,
  objectSchema,
  wrappedDescription,
  wrappedParameters,
} from "../shared/tools.ts";
import { unitedParameters } from "../shared/schemas/united-forms.ts";
import { cachingFields, furtherSampling, openaiStrict } from "../shared/openai-fields.ts";
import { flatEffort } from "../shared/reasoning-rules.ts";
import {
  asArray,
  asObject,
  unsupportedContent,
  joined,
  withoutUndefined,
} from "../shared/wire-fields.ts";
import {
  choosesSearch,
  isTranslated,
  locationOf,
  searchesAtOpenai,
  searchTerms,
} from "../shared/extras/web-search.ts";
import { includedProbabilities, includedSeals } from "./decode-request.ts";
import { encodeInput } from "./items/encode-input.ts";
import type { ToolKind } from "../../canonical/message.ts";

/** OpenAI's limit of tool name length here. */
const toolNameLengthMax = 128;

/** The smallest output cap; OpenAI answers 400 to less. */
export const maxOutputTokensMin = 16;

/**
 * Encodes a Responses request for an upstream; see `UpstreamDialect.encodeRequest`. The upstream
 * stores nothing, and is asked for the sealed reasoning of a model that reasons, so that the next
 * turn can return it.
 */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const wrapsCustom = options.deviations?.customTools === false;
  const state = new EncodeState(request, options, {
    id: "openai-responses",
    toolNameLengthMax,
    wrapsCustom,
  });
  const { instructions: written, input } = encodeInput(state);
  const word = jsonWord(request, [written ?? "", ...input]);
  const instructions = [written, word].filter((text) => text !== undefined).join("\n\n");
  const extensions = state.at("").extensionFields(request.extensions);
  const tools = encodeToolFields(state);
  const body = joined<JsonObject>(
    { model: options.upstreamModel, input, instructions: instructions || undefined, store: false },
    encodeStream(state),
    tools,
    encodeSampling(state),
    encodeBounds(state),
    { reasoning: encodeReasoning(state, tools.tools) },
    encodeIdentity(state),
    encodePromptCaching(state),
    extensions,
    {
      include: encodeInclude(state, extensions.include),
      text: encodeText(state, { own: extensions.text, tools: tools.tools }),
    },
  );
  return {
    body: state.withoutUnsupported(body),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

function encodeStream({ request, options, sameDialect }: EncodeState): JsonObject {
  if (!options.stream) return {};
  const obfuscation = sameDialect ? request.streamOptions?.includeObfuscation : undefined;
  return {
    stream: true,
    ...(obfuscation !== undefined && { stream_options: { include_obfuscation: obfuscation } }),
  };
}

/**
 * Encodes sampling, including fields that the API does not have: a client of this dialect that sent
 * them nevertheless meant this upstream.
 */
function encodeSampling(state: EncodeState): JsonObject {
  const {
    request: { sampling = {} },
    sameDialect,
  } = state;
  const others = furtherSampling(sampling);
  const shared = { temperature: sampling.temperature, top_p: sampling.topP };
  if (sameDialect) return { ...shared, ...others };
  for (const field in others)
    if (others[field] !== undefined) state.lose(field, "Responses has no such field");
  return shared;
}

function encodeBounds(state: EncodeState): JsonObject {
  const { request } = state;
  if ((request.choiceCount ?? 1) > 1)
    throw unsupportedContent(
      answerField(request, "n"),
      "asks for several answers, and this model gives one; ask for one.",
    );
  if (request.modalities?.includes("audio")) {
    throw unsupportedContent(
      answerField(request, "modalities"),
      'asks for sound, which this model\'s API does not give; send ["text"].',
    );
  }
  const others = request.modalities?.filter((kind) => kind !== "text") ?? [];
  if (!state.sameDialect && others.length > 0)
    state.lose("modalities", "Responses answers in text, and with pictures by a tool");
  if (request.stop !== undefined) state.lose("stop", "Responses has no stop texts");
  if (request.prediction !== undefined) state.lose("prediction", "Responses has no such field");
  if (request.audio !== undefined) state.lose("audio", "Responses has no such field");
  const { maxOutputTokens } = request;
  if (maxOutputTokens !== undefined && maxOutputTokens < maxOutputTokensMin) {
    state.lose(
      "max_output_tokens",
      `raised to ${maxOutputTokensMin}, the least that Responses takes`,
    );
  }
  return {
    max_output_tokens: maxOutputTokens && Math.max(maxOutputTokens, maxOutputTokensMin),
    top_logprobs: request.logProbabilities?.top,
    modalities: state.sameDialect ? request.modalities : undefined,
    moderation: request.moderation,
  };
}

/**
 * Encodes other dialects' reasoning settings as an effort. Reasoning is shown as summaries where
 * that was requested.
 */
function encodeReasoning(state: EncodeState, tools: JsonValue | undefined): JsonObject | undefined {
  const { reasoning } = state.request;
  if (reasoning === undefined) return undefined;
  if (state.options.refuses?.always.includes("reasoning_effort") === true) {
    state.lose("reasoning", "the model does not reason");
    return undefined;
  }
  const { budgetTokens, display } = reasoning;
  if (budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "Responses states an effort instead");
  if (display !== undefined && display !== "summarized")
    state.lose("reasoning.display", "Responses shows summaries or nothing");
  const fields = withoutUndefined<JsonObject>({
    effort: effortBeside(tools, state),
    summary: shownSummary(state),
    ...state.at("reasoning").extensionFields(reasoning.extensions),
  });
  return Object.keys(fields).length === 0 ? undefined : fields;
}

/** Returns the effort, which is not the least where the model searches. */
function effortBeside(tools: JsonValue | undefined, state: EncodeState): string | undefined {
  const effort = state.request.reasoning && flatEffort(state.request.reasoning);
  if (effort !== "minimal" || state.sameDialect || !searchesAtOpenai(tools)) return effort;
  state.lose("reasoning.effort", "the model does not search with the least effort");
  return "low";
}

/** Returns the summaries that are asked for, unless the upstream refuses to be asked. */
function shownSummary(state: EncodeState): string | undefined {
  const { summary, display } = state.request.reasoning ?? {};
  const asked = summary ?? (!state.sameDialect && display === "summarized" ? "auto" : undefined);
  if (asked === undefined || state.deviations.noReasoningSummary !== true) return asked;
  state.lose("reasoning.summary", "the upstream takes no wish for summaries");
  return undefined;
}

/** Encodes `include`; undefined where the upstream is asked for nothing further. */
function encodeInclude(state: EncodeState, further: JsonValue | undefined): JsonValue | undefined {
  const { dialect, tools = [] } = state.request;
  const showsPages =
    dialect === "anthropic-messages" && tools.some((tool) => isTranslated(tool, state));
  const include = [
    ...(asksForSeals(state) ? [includedSeals] : []),
    ...(showsPages ? ["web_search_call.action.sources"] : []),
    ...(state.request.logProbabilities === undefined ? [] : [includedProbabilities]),
    ...(asArray(further) ?? []),
  ];
  return include.length === 0 ? undefined : include;
}

/**
 * Returns whether the upstream is asked for its sealed reasoning: where the model reasons as far as
 * the catalog or the request tells. Of other models, OpenAI answers 400 "Encrypted content is not
 * supported with this model".
 */
function asksForSeals({ request: { reasoning }, options }: EncodeState): boolean {
  if (options.refuses?.always.includes("reasoning_effort") === true) return false;
  const effort = reasoning && flatEffort(reasoning);
  if (options.reasons === true) return true;
  return effort === undefined ? Boolean(reasoning?.summary) : effort !== "none";
}

function encodeText(
  state: EncodeState,
  { own, tools }: { own: JsonValue | undefined; tools: JsonValue | undefined },
): JsonObject | undefined {
  const { output, verbosity } = state.request;
  if (own === undefined && output === undefined && verbosity === undefined) return undefined;
  const fields = withoutUndefined<JsonObject>({
    ...asObject(own),
    ...(output && {
      format: isJsonOfSearch(state, tools) ? openFormat : encodeFormat(output, state),
    }),
    verbosity,
  });
  return Object.keys(fields).length === 0 ? undefined : fields;
}

/** A form of JSON that says nothing of its members. */
const openFormat: JsonObject = {
  type: "json_schema",
  name: "response",
  schema: { type: "object" },
  strict: false,
};

/** Returns whether a search needs JSON in another form: models refuse it in JSON mode. */
function isJsonOfSearch(state: EncodeState, tools: JsonValue | undefined): boolean {
  if (state.request.output?.type !== "json" || state.sameDialect || !searchesAtOpenai(tools))
    return false;
  state.lose("response_format", "the model does not search in JSON mode; it has an open schema");
  return true;
}

function encodeFormat(format: OutputFormat, state: EncodeState): JsonObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  const { name = "response", description, schema } = format;
  const path = "response_format.strict";
  const strict = openaiStrict(state, { schema, strict: format.strict, path });
  return withoutUndefined<JsonObject>({ type: "json_schema", name, description, schema, strict });
}

/**
 * Encodes identity fields. Metadata of other dialects is handled by the gateway and not passed on.
 */
function encodeIdentity(state: EncodeState): JsonObject {
  const { request, sameDialect } = state;
  const namesTiers = sameDialect || request.dialect === "openai-chat";
  if (!namesTiers) loseServiceTier(state);
  return {
    user: state.endUserId(),
    safety_identifier: namesTiers ? request.safetyIdentifier : undefined,
    service_tier: namesTiers ? request.serviceTier : undefined,
    metadata: sameDialect ? request.metadata : undefined,
  };
}

function encodePromptCaching({ request: { promptCaching, dialect } }: EncodeState): JsonObject {
  if (promptCaching === undefined || (dialect !== "openai-responses" && dialect !== "openai-chat"))
    return {};
  return cachingFields(promptCaching);
}

/** Encodes tools. Where none are left, the choice among them is omitted too. */
function encodeToolFields(state: EncodeState): JsonObject {
  const { tools = [], toolChoice, parallelToolCalls } = state.request;
  const search = encodeSearch(state);
  const wire = [...encodeTools(tools, state), ...search.tools];
  if (wire.length === 0) return {};
  return withoutUndefined<JsonObject>({
    tools: wire,
    max_tool_calls: search.maxCalls,
    tool_choice:
      toolChoice?.type === "hosted" &&
      choosesSearch(toolChoice) &&
      search.tools.length === wire.length
        ? "required"
        : toolChoice && encodeToolChoice(toolChoice, state),
    parallel_tool_calls: toolChoice?.type === "none" ? undefined : parallelToolCalls,
  });
}

/** Encodes the tools. Consecutive ones of one namespace become one entry again. */
function encodeTools(tools: readonly Tool[], state: EncodeState): JsonObject[] {
  const wire: JsonObject[] = [];
  let open: { name: string; tools: JsonObject[] } | undefined;
  tools.forEach((tool, index) => {
    const place = state.at(`tools[${index}]`);
    const encoded = encodeTool(tool, place);
    if (encoded === undefined) return;
    const namespace = tool.type === "hosted" ? undefined : tool.namespace;
    if (namespace === undefined) {
      open = undefined;
      wire.push(encoded);
      return;
    }
    const { namespace_description: description, ...definition } = encoded;
    if (open?.name !== namespace) {
      open = { name: namespace, tools: [] };
      wire.push(
        withoutUndefined<JsonObject>({
          type: "namespace",
          name: namespace,
          description,
          tools: open.tools,
        }),
      );
    }
    open.tools.push(definition);
  });
  return wire;
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject | undefined {
  switch (tool.type) {
    case "function":
      return encodeFunction(tool, place);
    case "custom":
      return place.state.namer.wraps({ kind: "custom" })
        ? wrapCustom(tool, place.state)
        : encodeCustom(tool, place);
    case "hosted":
      if (tool.dialect === "openai-responses") return tool.value;
      if (isTranslated(tool, place.state)) return undefined;
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return undefined;
  }
}

/**
 * Returns whether a tool waits for a search, which needs a search tool; otherwise it is offered at
 * once.
 */
const isDeferred = (tool: FunctionTool | CustomTool, state: EncodeState): true | undefined =>
  tool.deferred === true &&
  (state.request.tools ?? []).some(
    (other) =>
      other.type === "hosted" &&
      other.dialect === "openai-responses" &&
      other.value.type === "tool_search",
  )
    ? true
    : undefined;

function encodeFunction(tool: FunctionTool, place: EncodePlace): JsonObject {
  const { state } = place;
  const schema = unitedParameters(tool.parameters, place);
  const strict = openaiStrict(state, { schema, strict: tool.strict, path: `${place.path}.strict` });
  if (tool.deferred === true && isDeferred(tool, state) === undefined)
    place.at(".defer_loading").lose("offered at once, since there is no tool search");
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("Responses tools have no such field");
  return withoutUndefined<JsonObject>({
    type: "function",
    name: state.namer.wireName({ kind: "function", name: tool.name }),
    description: tool.description,
    parameters: state.sameDialect ? (schema ?? null) : objectSchema(schema),
    // An absent `strict` means true in Responses, and false in other dialects.
    strict: strict ?? (state.sameDialect ? undefined : false),
    defer_loading: isDeferred(tool, state),
    ...state.cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });
}

const encodeCustom = (tool: CustomTool, place: EncodePlace): JsonObject =>
  withoutUndefined<JsonObject>({
    type: "custom",
    name: place.state.namer.wireName({ kind: "custom", name: tool.name }),
    description: tool.description,
    format: tool.format && { ...tool.format },
    defer_loading: isDeferred(tool, place.state),
    ...place.state.cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });

/** Wraps a custom tool for upstreams that know only functions; the grammar becomes advice. */
function wrapCustom(tool: CustomTool, state: EncodeState): JsonObject {
  const description = wrappedDescription(tool, () =>
    state.lose(`tools.${tool.name}.format`, "the grammar is described, not enforced"),
  );
  return {
    type: "function",
    name: state.namer.wireName({ kind: "custom", name: tool.name }),
    ...(description !== undefined && { description }),
    parameters: wrappedParameters,
    strict: false,
  };
}

/**
 * Encodes a search that other dialects ask for. Its bound is one of all tools that OpenAI runs, of
 * which the search is the only one.
 */
function encodeSearch(state: EncodeState): { tools: JsonObject[]; maxCalls?: JsonValue } {
  const terms = searchTerms(state, [
    "allowedDomains",
    "blockedDomains",
    "contextSize",
    "maxUses",
    "userLocation",
  ]);
  if (terms === undefined) return { tools: [] };
  const filters = withoutUndefined<JsonObject>({
    allowed_domains: terms.allowedDomains,
    blocked_domains: terms.blockedDomains,
  });
  const tool = withoutUndefined<JsonObject>({
    type: "web_search",
    search_context_size: terms.contextSize,
    user_location: locationOf(terms.userLocation),
    filters: Object.keys(filters).length > 0 ? filters : undefined,
  });
  return { tools: [tool], ...(terms.maxUses !== undefined && { maxCalls: terms.maxUses }) };
}

function encodeToolChoice(choice: ToolChoice, state: EncodeState): JsonObject | string | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return namedTool(choice, state);
    case "allowed":
      return {
        type: "allowed_tools",
        mode: choice.mode,
        tools: choice.tools.map((tool) => encodeAllowed(tool, state)),
      };
    case "hosted":
      if (choice.dialect === "openai-responses") return choice.value;
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}

function namedTool(
  { kind, name }: { kind: ToolKind; name: string },
  state: EncodeState,
): JsonObject {
  return {
    type: state.namer.wraps({ kind }) ? "function" : kind,
    name: state.namer.wireName({ kind, name }),
  };
}

const encodeAllowed = (tool: AllowedTool, state: EncodeState): JsonObject =>
  tool.type === "hosted" ? tool.value : namedTool({ kind: tool.type, name: tool.name }, state);
