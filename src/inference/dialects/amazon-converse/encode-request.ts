import type { JsonObject } from "../../canonical/json.ts";
import type {
  CanonicalRequest,
  Sampling,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import { claudeAbilities, encodeClaudeThinking, flatEffort } from "../shared/reasoning-rules.ts";
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
import { heldSchema, loseDescribed } from "../shared/schemas/held-schema.ts";
import { claudeParameters } from "../shared/schemas/member-names.ts";
import { joined, withoutUndefined } from "../shared/wire-fields.ts";
import { cachesPrompts, fitCachePoints } from "./cache-points.ts";
import { encodeMessages, cachePoint } from "./encode-messages.ts";
import { isReasoningDisabled, type ReasoningRequest } from "../../canonical/reasoning.ts";

/** The abilities of a model through Converse that not all models have. */
interface ConverseTraits {
  /** The maker whose own parameters the model accepts; undefined where it has none. */
  maker: "anthropic" | "amazon" | "openai" | undefined;
  /**
   * Whether it enforces output schemas and accepts strict tools. Other models answer 400 to both.
   */
  takesSchemas: boolean;
}

const makers = [
  [/claude/, "anthropic"],
  [/nova/, "amazon"],
  [/gpt-oss/, "openai"],
] as const;

/** Open models with structured outputs: docs.aws.amazon.com, "structured-output" (2026-11). */
const schemaKeepers =
  /qwen|deepseek\.v|ministral|magistral|mistral-large-3|gemma|nemotron|minimax|kimi|gpt-oss/;

/** Returns the traits by wire name, such as `us.anthropic.claude-haiku-4-5-20251001-v1:0`. */
function converseTraits(upstreamModel: string): ConverseTraits {
  const maker = makers.find(([pattern]) => pattern.test(upstreamModel))?.[1];
  const takesSchemas =
    maker === "anthropic"
      ? claudeAbilities(upstreamModel).takesSchemas
      : schemaKeepers.test(upstreamModel);
  return { maker, takesSchemas };
}

/**
 * Encodes `toolConfig`; undefined without tools. A conversation that contains calls needs the tools
 * that were called: Converse refuses `toolUse` blocks without a `toolConfig`.
 */
function encodeToolConfig(state: EncodeState): JsonObject | undefined {
  const { toolChoice, parallelToolCalls } = state.request;
  const offered = offeredTools(state).flatMap(([tool, index]) =>
    encodeTool(tool, state.at(`tools[${index}]`)),
  );
  const forbidden = toolChoice?.type === "none";
  const called = calledTools(state);
  if (forbidden && called.length === 0) return undefined;
  if (forbidden && offered.length > 0)
    state.lose("tool_choice", "tools of earlier calls have to be offered again");
  const tools = offered.length > 0 ? offered : called;
  if (tools.length === 0) return undefined;
  if (parallelToolCalls === false && offered.length > 0)
    state.lose("parallel_tool_calls", "Converse cannot ask for one call at a time");
  return withoutUndefined<JsonObject>({
    tools,
    toolChoice: offered.length > 0 && toolChoice ? takenChoice(toolChoice, state) : undefined,
  });
}

/** Returns the tools with their places, without those that `allowed_tools` excludes. */
function offeredTools(state: EncodeState): (readonly [tool: Tool, index: number])[] {
  const { tools = [], toolChoice } = state.request;
  const unique = new Set(state.uniqueTools());
  const placed = tools.flatMap((tool, index) => (unique.has(tool) ? [[tool, index] as const] : []));
  if (toolChoice?.type !== "allowed") return placed;
  state.lose(
    "tool_choice.allowed_tools",
    "sent as a shorter list of tools, which a prompt cache notices",
  );
  return placed.filter(
    ([tool]) =>
      tool.type !== "hosted" &&
      toolChoice.tools.some((allowed) => allowed.type === tool.type && allowed.name === tool.name),
  );
}

/** Returns minimal definitions of the tools that earlier turns called. */
const calledTools = (state: EncodeState): JsonObject[] =>
  state.calledToolNames().map((name) => ({
    toolSpec: { name, inputSchema: { json: typedObjectSchema(undefined) } },
  }));

function encodeTool(tool: Tool, place: EncodePlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place), ...cachePoint(tool.cache)];
    case "custom":
      return [wrapCustom(tool, place), ...cachePoint(tool.cache)];
    case "hosted":
      if (tool.dialect === "amazon-converse") return [tool.value];
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

/** Encodes a function. Only a few models enforce a schema; the others answer `strict` with 400. */
function encodeFunction(tool: FunctionTool, place: EncodePlace): JsonObject {
  const { state } = place;
  const schema = claudeParameters(tool, place);
  const takesSchemas = converseTraits(state.options.upstreamModel).takesSchemas;
  const held = tool.strict === true && takesSchemas ? heldSchema(schema) : undefined;
  if (tool.strict === true && held === undefined)
    place.at(".strict").lose("this model follows this schema without being held to it");
  if (held !== undefined) loseDescribed(held, place.at(".parameters"));
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("Converse has no such field");
  place.extensionFields(tool.extensions);
  return {
    toolSpec: withoutUndefined<JsonObject>({
      name: state.namer.wireName({ ...tool, kind: "function" }),
      description: tool.description || undefined,
      inputSchema: { json: held?.schema ?? schema },
      strict: held === undefined ? undefined : true,
    }),
  };
}

/** Wraps a custom tool in a function with one text argument; a grammar becomes advice. */
function wrapCustom(tool: CustomTool, place: EncodePlace): JsonObject {
  place.extensionFields(tool.extensions);
  return {
    toolSpec: withoutUndefined<JsonObject>({
      name: place.state.namer.wireName({ ...tool, kind: "custom" }),
      description: wrappedDescription(tool, () =>
        place.at(".format").lose("the grammar is described, not enforced"),
      ),
      inputSchema: { json: wrappedParameters },
    }),
  };
}

/** Returns the tool choice as far as the model takes one; others choose themselves. */
function takenChoice(choice: ToolChoice, state: EncodeState): JsonObject | undefined {
  const encoded = encodeToolChoice(choice, state);
  const { upstreamModel } = state.options;
  const takesIt =
    encoded === undefined ||
    !freeChoosers.test(upstreamModel) ||
    ("any" in encoded && /mistral/.test(upstreamModel));
  if (takesIt) return encoded;
  state.lose("tool_choice", "the model chooses its tools itself");
  return undefined;
}

/** Models that cannot be forced to call a tool: docs.aws.amazon.com, API_runtime_ToolChoice (2026-11). */
const freeChoosers = /llama|mistral|pixtral|deepseek|ai21\.|cohere\.|writer\./;

/** Encodes the tool choice. `auto` is every model's default, and some models refuse any choice. */
function encodeToolChoice(choice: ToolChoice, state: EncodeState): JsonObject | undefined {
  switch (choice.type) {
    case "none":
      state.lose("tool_choice", "Converse has no choice that forbids calls");
      return undefined;
    case "auto":
      return undefined;
    case "required":
      return { any: {} };
    case "allowed":
      return choice.mode === "required" ? { any: {} } : undefined;
    case "tool":
      return { tool: { name: state.namer.wireName(choice) } };
    case "hosted":
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}

/** The request's fields about reasoning, and the cap and samplers that depend on them. */
interface ThinkingFields {
  /** The output cap, which includes reasoning; undefined leaves the model's own. */
  maxTokens: number | undefined;
  /**
   * Members of `additionalModelRequestFields`, in which every maker has its own fields for
   * reasoning.
   */
  fields: JsonObject;
  /** `outputConfig.effort`, for Claude models with adaptive thinking. */
  effort?: string;
  /** Whether the model answers samplers with 400, always or while it reasons. */
  refusesSampling: boolean;
}

/** Encodes reasoning in the fields of the model's maker. */
function encodeThinking(state: EncodeState): ThinkingFields {
  const {
    request: { reasoning, maxOutputTokens: maxTokens },
    options: { upstreamModel },
  } = state;
  const maker = converseTraits(upstreamModel).maker;
  if (maker === "anthropic") return claudeThinking(state);
  const plain = { maxTokens, fields: {}, refusesSampling: false };
  if (reasoning === undefined) return plain;
  if (/nova-[2-9]/.test(upstreamModel)) return novaThinking(state, { reasoning, plain });
  if (maker === "openai") return plainEffort(state, { reasoning, plain });
  if (!isReasoningDisabled(reasoning))
    state.lose("reasoning", "the model decides itself whether it thinks");
  return plain;
}

/** Encodes reasoning for Claude, which accepts the fields of its own API, except for the effort. */
function claudeThinking(state: EncodeState): ThinkingFields {
  const { maxTokens, thinking, effort } = encodeClaudeThinking(state);
  const thinks = thinking !== undefined && thinking.type !== "disabled";
  return {
    maxTokens,
    fields: { thinking },
    ...(effort !== undefined && { effort }),
    refusesSampling: thinks || claudeAbilities(state.options.upstreamModel).refusesSampling,
  };
}

interface Asked {
  reasoning: ReasoningRequest;
  /** The fields of a request that does not ask for reasoning. */
  plain: ThinkingFields;
}

/** The three efforts of Nova and of OpenAI's open models; others become the nearest. */
const threeEfforts: Readonly<Record<string, string>> = {
  minimal: "low",
  xhigh: "high",
  max: "high",
};

/**
 * Encodes reasoning for Nova 2, which takes one of three efforts, and at the highest neither a cap
 * nor samplers. Source: docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html
 * (2026-11).
 */
function novaThinking(state: EncodeState, { reasoning, plain }: Asked): ThinkingFields {
  if (isReasoningDisabled(reasoning))
    return { ...plain, fields: { reasoningConfig: { type: "disabled" } } };
  const asked = flatEffort(reasoning);
  if (asked === undefined) return plain;
  if (reasoning.budgetTokens !== undefined && reasoning.effort !== undefined)
    state.lose("reasoning.budget_tokens", "the model takes an effort instead");
  const wanted = threeEfforts[asked] ?? asked;
  // A cap limits what the caller pays for, so it is kept and the effort is lowered.
  const isCapped = wanted === "high" && plain.maxTokens !== undefined;
  if (isCapped) state.lose("reasoning.effort", "the model takes no output cap at high effort");
  const effort = isCapped ? "medium" : wanted;
  return {
    ...plain,
    fields: { reasoningConfig: { type: "enabled", maxReasoningEffort: effort } },
    refusesSampling: effort === "high",
  };
}

/**
 * Encodes reasoning for OpenAI's open models, which take an effort and cannot turn reasoning off.
 */
function plainEffort(state: EncodeState, { reasoning, plain }: Asked): ThinkingFields {
  const effort = flatEffort(reasoning);
  if (effort === undefined) return plain;
  if (effort === "none")
    state.lose("reasoning.effort", "the model cannot stop thinking; it thinks as little as it can");
  const known = effort === "none" ? "low" : (threeEfforts[effort] ?? effort);
  return { ...plain, fields: { reasoning_effort: known } };
}

/**
 * Encodes a Converse request; see `UpstreamDialect.encodeRequest`. The path, and not the body, says
 * the model and whether the answer is streamed.
 */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const caches = cachesPrompts(options.upstreamModel);
  const state = new EncodeState(caches ? withMarkedPrompt(request) : request, options, {
    id: "amazon-converse",
    toolNameLengthMax: 64,
    wrapsCustom: true,
  });
  refuseOtherAnswers(request);
  const toolConfig = encodeToolConfig(state);
  const { system, messages } = encodeMessages(state);
  const thinking = encodeThinking(state);
  const textFormat = encodeTextFormat(state);
  const advice = encodeJsonAdvice(state, textFormat);
  const instructions = advice === undefined ? system : [...system, { text: advice }];
  const body = withoutUndefined<JsonObject>({
    messages,
    system: instructions.length === 0 ? undefined : instructions,
    inferenceConfig: ifFilled(encodeInferenceConfig(state, thinking)),
    toolConfig,
    additionalModelRequestFields: ifFilled(joined(thinking.fields, encodeTopK(state, thinking))),
    outputConfig: ifFilled({ textFormat, effort: thinking.effort }),
    serviceTier: encodeServiceTier(state),
  });
  declareUnsaid(state);
  return {
    body: fitCachePoints(state.withoutUnsupported(body), state),
    losses: state.losses,
    toolAliases: state.namer.aliases,
  };
}

/** Returns the object without absent members; undefined where none is left. */
function ifFilled(fields: JsonObject): JsonObject | undefined {
  const filled = joined<JsonObject>(fields);
  return Object.keys(filled).length === 0 ? undefined : filled;
}

/** Sampling parameters that no model accepts through Converse. */
const unsaidSampling: readonly (readonly [key: keyof Sampling, field: string])[] = [
  ["minP", "min_p"],
  ["topA", "top_a"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
  ["repetitionPenalty", "repetition_penalty"],
  ["seed", "seed"],
  ["logitBias", "logit_bias"],
];

/** Encodes the bounds and samplers that all models share. */
function encodeInferenceConfig(state: EncodeState, thinking: ThinkingFields): JsonObject {
  const { sampling = {}, stop } = state.request;
  for (const [key, field] of unsaidSampling)
    if (sampling[key] !== undefined) state.lose(field, "Converse has no such field");
  const stopSequences = stop?.filter((text) => text.trim() !== "");
  return {
    maxTokens: thinking.maxTokens,
    ...encodeSamplers(state, thinking),
    stopSequences: stopSequences?.length ? stopSequences : undefined,
  };
}

/**
 * Encodes the samplers. A temperature is at most 1 here; a model that reasons takes none, and newer
 * Claude models take one of two.
 */
function encodeSamplers(state: EncodeState, { refusesSampling }: ThinkingFields): JsonObject {
  const { temperature, topP } = state.request.sampling ?? {};
  const { takesOneSampler } = claudeAbilities(state.options.upstreamModel);
  if (refusesSampling) {
    if (temperature !== undefined && temperature !== 1) state.lose("temperature", noSampling);
    if (topP !== undefined && topP !== 1) state.lose("top_p", noSampling);
    return {};
  }
  const both = temperature !== undefined && topP !== undefined && takesOneSampler;
  if (both) state.lose("top_p", "the model takes it or a temperature, not both");
  if (temperature !== undefined && temperature > 1) state.lose("temperature", "at most 1 here");
  return {
    temperature: temperature === undefined ? undefined : Math.min(1, temperature),
    topP: both ? undefined : topP,
  };
}

const noSampling = "the model takes no sampling parameters here";

/** Encodes `top_k`, which Anthropic and Amazon name differently. */
function encodeTopK(state: EncodeState, { refusesSampling }: ThinkingFields): JsonObject {
  const topK = state.request.sampling?.topK;
  if (topK === undefined) return {};
  const maker = refusesSampling ? undefined : converseTraits(state.options.upstreamModel).maker;
  if (maker === "anthropic") return { top_k: topK };
  if (maker === "amazon") return { inferenceConfig: { topK } };
  state.lose("top_k", refusesSampling ? noSampling : "the model has no such parameter");
  return {};
}

/** Encodes the schema that the model has to follow, as JSON text (`OutputFormatStructure`). */
function encodeTextFormat(state: EncodeState): JsonObject | undefined {
  const { output } = state.request;
  if (output?.type !== "json-schema" || output.schema === undefined) return undefined;
  if (!converseTraits(state.options.upstreamModel).takesSchemas) return undefined;
  const held = heldSchema(output.schema);
  if (held === undefined) return undefined;
  loseDescribed(held, state.at("response_format"));
  return {
    type: "json_schema",
    structure: {
      jsonSchema: withoutUndefined<JsonObject>({
        schema: JSON.stringify(held.schema),
        name: output.name,
        description: output.description,
      }),
    },
  };
}

/** Asks in words for JSON that cannot be enforced, and declares the loss. */
function encodeJsonAdvice(
  state: EncodeState,
  textFormat: JsonObject | undefined,
): string | undefined {
  const { output } = state.request;
  if (output === undefined || output.type === "text" || textFormat !== undefined) return undefined;
  state.lose("response_format", "the model is asked to answer in JSON, and not held to it");
  return jsonAdvice(output.type === "json-schema" ? output.schema : undefined);
}

const serviceTiers = new Set(["default", "flex", "priority"]);

function encodeServiceTier(state: EncodeState): JsonObject | undefined {
  const { serviceTier } = state.request;
  if (serviceTier === undefined || serviceTier === "auto") return undefined;
  if (serviceTiers.has(serviceTier)) return { type: serviceTier };
  state.lose("service_tier", "Converse names other tiers");
  return undefined;
}

/**
 * Declares fields of other dialects that Converse cannot express. Identity, storage and metadata
 * are handled by the gateway.
 */
function declareUnsaid(state: EncodeState): void {
  const { request } = state;
  loseOpenaiFields(state, "Converse has no such field");
  if (state.request.webSearch !== undefined)
    state.lose("web_search_options", "Converse has no such field");
  if (request.safetyIdentifier !== undefined)
    state.lose("safety_identifier", "Converse has no such field");
  const marked = cachesPrompts(state.options.upstreamModel);
  losePromptCaching(state, "Converse has no such field", { marked });
  state.at("").extensionFields(request.extensions);
}
