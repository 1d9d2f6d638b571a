import type { JsonObject } from "../../canonical/json.ts";
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
import {
  type EncodePlace,
  EncodeState,
  losePromptCaching,
  loseServiceTier,
} from "../shared/encode-state.ts";
import { jsonWord, objectSchema, wrappedDescription, wrappedParameters } from "../shared/tools.ts";
import { unitedParameters } from "../shared/schemas/united-forms.ts";
import { cachingFields, furtherSampling, openaiStrict } from "../shared/openai-fields.ts";
import { flatEffort } from "../shared/reasoning-rules.ts";
import { joined, withoutUndefined } from "../shared/wire-fields.ts";
import { fitBody } from "./fitting/fit-body.ts";
import { encodeMessages } from "./messages/encode-messages.ts";
import { translatedCapName } from "../shared/output-cap.ts";
import type { ToolKind } from "../../canonical/message.ts";

/** OpenAI's limit of tool name length. */
const toolNameLengthMax = 64;

/** Encodes a chat completion request for an upstream; see `UpstreamDialect.encodeRequest`. */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const wrapsCustom = request.dialect !== "openai-chat" && options.deviations?.customTools !== true;
  const state = new EncodeState(request, options, {
    id: "openai-chat",
    toolNameLengthMax,
    wrapsCustom,
  });
  const messages = encodeMessages(state);
  const word = jsonWord(request, messages);
  const asked = word === undefined ? [] : [{ role: "system", content: word }];
  const body = joined<JsonObject>(
    { model: options.upstreamModel, messages: [...asked, ...messages] },
    encodeStream(state),
    encodeToolFields(state),
    encodeSampling(state),
    encodeOutput(state),
    encodeReasoningRequest(state),
    encodeIdentity(state),
    encodePromptCaching(state),
    state.at("").extensionFields(request.extensions),
  );
  const fit = fitBody(state.withoutUnsupported(body), {
    deviations: state.deviations,
    reasons: options.reasons === true,
    upstreamModel: options.upstreamModel,
  });
  for (const { field, reason } of fit.losses) state.lose(field, reason);
  return {
    body: fit.body,
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

/**
 * Encodes the stream options. Usage is always requested, because the gateway meters every stream.
 */
function encodeStream({ request, options, deviations, sameDialect }: EncodeState): JsonObject {
  if (!options.stream) return {};
  if (deviations.noStreamOptions === true) return { stream: true };
  const obfuscation = sameDialect ? request.streamOptions?.includeObfuscation : undefined;
  return {
    stream: true,
    stream_options: {
      include_usage: true,
      ...(obfuscation !== undefined && { include_obfuscation: obfuscation }),
    },
  };
}

/** OpenAI's limit of stop texts. */
const maxStopCount = 4;

function encodeSampling(state: EncodeState): JsonObject {
  const { request, deviations } = state;
  const { sampling = {}, logProbabilities, stop } = request;
  if (stop !== undefined && stop.length > maxStopCount)
    state.lose(`stop[${maxStopCount}]`, `chat takes ${maxStopCount} stop texts`);
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    ...furtherSampling(sampling),
    n: request.choiceCount,
    stop: stop?.slice(0, maxStopCount),
    [translatedCapName(deviations)]: request.maxOutputTokens,
    logprobs: logProbabilities && true,
    top_logprobs: logProbabilities?.top,
  };
}

function encodeOutput(state: EncodeState): JsonObject {
  const { request } = state;
  const { webSearch } = request;
  return {
    response_format: request.output && encodeFormat(request.output, state),
    verbosity: request.verbosity,
    modalities: request.modalities,
    audio: request.audio,
    prediction: request.prediction,
    web_search_options:
      webSearch &&
      withoutUndefined<JsonObject>({
        search_context_size: webSearch.contextSize,
        user_location: webSearch.userLocation && {
          type: "approximate",
          approximate: webSearch.userLocation,
        },
        ...(webSearch.extensions?.dialect === "openai-chat" ? webSearch.extensions.fields : {}),
      }),
    moderation: request.moderation,
  };
}

function encodeFormat(format: OutputFormat, state: EncodeState): JsonObject {
  if (format.type === "text") return { type: "text" };
  if (format.type === "json") return { type: "json_object" };
  const { name = "response", description, schema } = format;
  const path = "response_format.strict";
  const strict = openaiStrict(state, { schema, strict: format.strict, path });
  return {
    type: "json_schema",
    json_schema: withoutUndefined<JsonObject>({ name, description, schema, strict }),
  };
}

function encodeReasoningRequest(state: EncodeState): JsonObject {
  const {
    request: { reasoning },
    deviations,
  } = state;
  if (reasoning === undefined) return {};
  if (reasoning.display !== undefined) state.lose("reasoning.display", "chat has no such field");
  if (deviations.reasoningObject === true) {
    const { budgetTokens, enabled, exclude } = reasoning;
    const effort = enabled === false ? undefined : reasoning.effort;
    // OpenRouter refuses an effort and a budget together.
    const budget = effort === undefined ? budgetTokens : undefined;
    return {
      reasoning: withoutUndefined<JsonObject>({
        effort,
        max_tokens: budget,
        enabled,
        exclude,
        summary: reasoning.summary,
      }),
    };
  }
  if (reasoning.summary !== undefined) state.lose("reasoning.summary", "chat has no such field");
  if (reasoning.budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "chat states an effort instead");
  return { reasoning_effort: flatEffort(reasoning) };
}

/**
 * Encodes identity fields. Storage and metadata of other dialects are handled by the gateway and
 * not passed on.
 */
function encodeIdentity(state: EncodeState): JsonObject {
  const { request, sameDialect } = state;
  if (!sameDialect && request.safetyIdentifier !== undefined)
    state.lose("safety_identifier", "servers that speak chat have no such field");
  if (serviceTier(request) === undefined) loseServiceTier(state);
  return {
    user: state.endUserId(),
    safety_identifier: sameDialect ? request.safetyIdentifier : undefined,
    service_tier: serviceTier(request),
    store: sameDialect ? request.store : undefined,
    metadata: sameDialect ? request.metadata : undefined,
  };
}

/** Returns the service tier. Responses has the same tiers as chat; Messages has its own. */
const serviceTier = ({ dialect, serviceTier: tier }: CanonicalRequest): string | undefined =>
  dialect === "openai-chat" || dialect === "openai-responses" ? tier : undefined;

function encodePromptCaching(state: EncodeState): JsonObject {
  const {
    request: { promptCaching },
    sameDialect,
    deviations,
  } = state;
  if (promptCaching === undefined) return {};
  if (!sameDialect && deviations.cacheMarkers !== "prompt_cache_breakpoint") {
    losePromptCaching(state, "the upstream knows no prompt cache keys");
    return {};
  }
  return cachingFields(promptCaching);
}

/** Encodes tools. Where none are left, the choice among them is omitted too. */
function encodeToolFields(state: EncodeState): JsonObject {
  const { toolChoice, parallelToolCalls, legacyFunctions } = state.request;
  const tools = offeredTools(state);
  const wire = tools.flatMap((tool) =>
    encodeTool(tool, state.at(`tools[${state.request.tools?.indexOf(tool) ?? 0}]`)),
  );
  if (wire.length === 0) return {};
  if (legacyFunctions === true) return encodeLegacy(wire, toolChoice);
  return withoutUndefined<JsonObject>({
    tools: wire,
    tool_choice: toolChoice && encodeToolChoice(toolChoice, state),
    parallel_tool_calls: toolChoice?.type === "none" ? undefined : parallelToolCalls,
  });
}

/**
 * Returns the tools to offer. `allowed_tools` exists only at OpenAI; for others, tools that it does
 * not allow are left out.
 */
function offeredTools(state: EncodeState): readonly Tool[] {
  const { tools = [], toolChoice } = state.request;
  if (toolChoice?.type !== "allowed" || state.sameDialect) return tools;
  state.lose(
    "tool_choice.allowed_tools",
    "sent as a shorter list of tools, which a prompt cache notices",
  );
  return tools.filter(
    (tool) =>
      tool.type !== "hosted" &&
      toolChoice.tools.some((allowed) => allowed.type === tool.type && allowed.name === tool.name),
  );
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place)];
    case "custom":
      return [
        place.state.namer.wraps({ kind: "custom" })
          ? wrapCustom(tool, place.state)
          : encodeCustom(tool, place),
      ];
    case "hosted":
      if (tool.dialect === "openai-chat") return [tool.value];
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

function encodeFunction(tool: FunctionTool, place: EncodePlace): JsonObject {
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("chat tools have no such field");
  const schema = unitedParameters(tool.parameters, place);
  return {
    type: "function",
    function: withoutUndefined<JsonObject>({
      name: place.state.namer.wireName({ ...tool, kind: "function" }),
      description: tool.description,
      parameters: objectSchema(schema),
      strict: openaiStrict(place.state, {
        schema,
        strict: tool.strict,
        path: `${place.path}.strict`,
      }),
    }),
    ...place.state.cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  };
}

const encodeCustom = (tool: CustomTool, place: EncodePlace): JsonObject => ({
  type: "custom",
  custom: withoutUndefined<JsonObject>({
    name: place.state.namer.wireName({ ...tool, kind: "custom" }),
    description: tool.description,
    format: encodeToolFormat(tool.format),
  }),
  ...place.state.cacheFields(tool.cache),
  ...place.extensionFields(tool.extensions),
});

function encodeToolFormat(format: CustomTool["format"]): JsonObject | undefined {
  if (format?.type !== "grammar") return format && { type: format.type };
  return { type: "grammar", grammar: { syntax: format.syntax, definition: format.definition } };
}

/** Wraps a custom tool for upstreams that know only functions; the grammar becomes advice. */
function wrapCustom(tool: CustomTool, state: EncodeState): JsonObject {
  const description = wrappedDescription(tool, () =>
    state.lose(`tools.${tool.name}.format`, "the grammar is described, not enforced"),
  );
  return {
    type: "function",
    function: {
      name: state.namer.wireName({ ...tool, kind: "custom" }),
      ...(description !== undefined && { description }),
      parameters: wrappedParameters,
    },
    ...state.cacheFields(tool.cache),
  };
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
      if (!state.sameDialect) return choice.mode;
      return {
        type: "allowed_tools",
        allowed_tools: {
          mode: choice.mode,
          tools: choice.tools.map((tool) => encodeAllowed(tool, state)),
        },
      };
    case "hosted":
      if (choice.dialect === "openai-chat") return choice.value;
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}

function namedTool(
  { kind, name }: { kind: ToolKind; name: string },
  state: EncodeState,
): JsonObject {
  const wire = state.namer.wireName({ kind, name });
  return kind === "custom" && !state.namer.wraps({ kind })
    ? { type: "custom", custom: { name: wire } }
    : { type: "function", function: { name: wire } };
}

const encodeAllowed = (tool: AllowedTool, state: EncodeState): JsonObject =>
  tool.type === "hosted" ? tool.value : namedTool({ kind: tool.type, name: tool.name }, state);

/** Encodes the older fields, for clients that still use them. */
function encodeLegacy(tools: readonly JsonObject[], choice: ToolChoice | undefined): JsonObject {
  return withoutUndefined<JsonObject>({
    functions: tools.map((tool) => tool.function as JsonObject),
    function_call: choice && legacyChoice(choice),
  });
}

function legacyChoice(choice: ToolChoice): JsonObject | string | undefined {
  if (choice.type === "tool") return { name: choice.name };
  return choice.type === "none" || choice.type === "auto" ? choice.type : undefined;
}
