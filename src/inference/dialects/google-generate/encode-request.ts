import type { JsonObject } from "../../canonical/json.ts";
import { isReasoningDisabled, type ReasoningRequest } from "../../canonical/reasoning.ts";
import type {
  CanonicalRequest,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { currentSchema } from "../shared/schemas/current-schema.ts";
import {
  jsonAdvice,
  objectSchema,
  wrappedDescription,
  wrappedParameters,
} from "../shared/tools.ts";
import { flatEffort } from "../shared/reasoning-rules.ts";
import { asArray, asObject, asString, joined, withoutUndefined } from "../shared/wire-fields.ts";
import { losePromptCaching, loseServiceTier } from "../shared/encode-state.ts";
import { isTranslated, loseSearches, searchTerms } from "../shared/extras/web-search.ts";
import { encodeContents } from "./contents/encode-contents.ts";
import {
  type GeminiPlace,
  GeminiState,
  searchesBesideFunctions,
  thinkingLevels,
} from "./encode-state.ts";

/**
 * Encodes a generateContent request; see `UpstreamDialect.encodeRequest`. The path, and not the
 * body, says the model and whether the answer is streamed.
 */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const state = new GeminiState(request, options);
  const tools = encodeToolFields(state);
  const held = tools.tools === undefined || state.traits.formatBesideTools;
  const conversation = encodeContents(state);
  const body = joined<JsonObject>(
    held ? conversation : withJsonAdvice(conversation, state),
    tools,
    { generationConfig: encodeGenerationConfig(state, { held }) },
  );
  return { body, losses: state.losses, toolAliases: state.namer.aliases };
}

/** Gemini's limit of stop texts. */
const maxStopCount = 5;
const seedMax = 2 ** 31 - 1;

/**
 * Asks in words for JSON that the model cannot be held to where it is offered tools, and declares
 * the loss.
 */
function withJsonAdvice(conversation: JsonObject, state: GeminiState): JsonObject {
  const { output } = state.request;
  if (output === undefined || output.type === "text") return conversation;
  state.lose("response_format", "the model is asked to answer in JSON, and not held to it");
  const advice = jsonAdvice(output.type === "json-schema" ? output.schema : undefined);
  const instructions = asArray(asObject(conversation.systemInstruction)?.parts) ?? [];
  return { ...conversation, systemInstruction: { parts: [...instructions, { text: advice }] } };
}

/**
 * Encodes `generationConfig`; undefined when the request sets nothing in it. `held` says whether the
 * answer may be held to a format.
 */
function encodeGenerationConfig(
  state: GeminiState,
  { held }: { held: boolean },
): JsonObject | undefined {
  const format = held ? encodeFormat(state) : {};
  const config = joined<JsonObject>(encodeSampling(state), format, encodeOutput(state), {
    thinkingConfig: encodeThinking(state),
  });
  loseUnsupported(state);
  return Object.keys(config).length === 0 ? undefined : config;
}

function encodeSampling(state: GeminiState): JsonObject {
  const { sampling = {}, choiceCount, maxOutputTokens, logProbabilities } = state.request;
  const top = logProbabilities?.top;
  state.loseIfSet("min_p", sampling.minP);
  state.loseIfSet("top_a", sampling.topA);
  state.loseIfSet("repetition_penalty", sampling.repetitionPenalty);
  state.loseIfSet("logit_bias", sampling.logitBias);
  return {
    temperature: sampling.temperature,
    topP: sampling.topP,
    // Zero turns it off elsewhere and is refused here.
    topK: sampling.topK === 0 ? undefined : sampling.topK,
    ...encodePenalties(state),
    seed: encodeSeed(state),
    candidateCount: choiceCount,
    stopSequences: encodeStop(state),
    maxOutputTokens,
    responseLogprobs: logProbabilities && true,
    logprobs: top === undefined || top === 0 ? undefined : top,
  };
}

/** Encodes the penalties. Zero means none, and is omitted. */
function encodePenalties(state: GeminiState): JsonObject {
  const { frequencyPenalty, presencePenalty } = state.request.sampling ?? {};
  const penalties = {
    frequencyPenalty: frequencyPenalty || undefined,
    presencePenalty: presencePenalty || undefined,
  };
  if (state.traits.penalties) return penalties;
  if (penalties.frequencyPenalty !== undefined)
    state.lose("frequency_penalty", "the model takes no penalties");
  if (penalties.presencePenalty !== undefined)
    state.lose("presence_penalty", "the model takes no penalties");
  return {};
}

/** Returns the seed, which has 32 bits at Gemini. */
function encodeSeed(state: GeminiState): number | undefined {
  const seed = state.request.sampling?.seed;
  if (seed === undefined || (Number.isInteger(seed) && Math.abs(seed) <= seedMax)) return seed;
  state.lose("seed", "Gemini's seed has 32 bits");
  return undefined;
}

function encodeStop(state: GeminiState): readonly string[] | undefined {
  const stop = state.request.stop?.filter((text) => text !== "");
  if (stop === undefined || stop.length === 0) return undefined;
  if (stop.length > maxStopCount)
    state.lose(`stop[${maxStopCount}]`, `Gemini takes ${maxStopCount} stop texts`);
  return stop.slice(0, maxStopCount);
}

function encodeOutput(state: GeminiState): JsonObject {
  const { modalities } = state.request;
  const isPlainText =
    modalities === undefined || (modalities.length === 1 && modalities[0] === "text");
  return {
    responseModalities: isPlainText
      ? undefined
      : modalities.map((modality) => modality.toUpperCase()),
    imageConfig: imageConfigOf(state.request),
    speechConfig: speechConfigOf(state.request),
  };
}

/**
 * Returns the size of pictures that OpenRouter's clients ask for in chat; undefined where they do
 * not. Source: https://openrouter.ai/docs/features/multimodal/image-generation
 */
function imageConfigOf({ extensions }: CanonicalRequest): JsonObject | undefined {
  const asked = asObject(extensions?.fields["image_config"]);
  if (asked === undefined) return undefined;
  return withoutUndefined<JsonObject>({
    aspectRatio: asked["aspect_ratio"],
    imageSize: asked["image_size"],
  });
}

/** Returns the voice that chat asks for; undefined where it asks for none. */
function speechConfigOf({ audio, modalities }: CanonicalRequest): JsonObject | undefined {
  const voiceName = asString(audio?.["voice"]);
  return voiceName === undefined || modalities?.includes("audio") !== true
    ? undefined
    : { voiceConfig: { prebuiltVoiceConfig: { voiceName } } };
}

function encodeFormat(state: GeminiState): JsonObject {
  const { output } = state.request;
  if (output === undefined || output.type === "text") return {};
  if (forcesFunction(state)) {
    state.lose("response_format", "the model keeps to no format where it is forced to call a tool");
    return {};
  }
  if (output.type === "json-schema" && output.description !== undefined)
    state.lose("response_format.description", "Gemini is sent the schema alone");
  const schema = output.type === "json-schema" ? output.schema : undefined;
  if (output.type === "json-schema" && output.picksText) {
    const { enum: texts } = asObject(asObject(schema?.properties)?.value) ?? {};
    return {
      responseMimeType: "text/x.enum",
      responseSchema: withoutUndefined<JsonObject>({ type: "STRING", enum: texts }),
    };
  }
  return { responseMimeType: "application/json", responseJsonSchema: schema };
}

/** Returns whether the model has to call one of the caller's functions. */
const forcesFunction = ({ request: { tools = [], toolChoice } }: GeminiState): boolean =>
  tools.some((tool) => tool.type !== "hosted") &&
  (toolChoice?.type === "required" ||
    toolChoice?.type === "tool" ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required"));

/**
 * Declares fields that Gemini has no equivalent for. Identity, storage and metadata are handled by
 * the gateway.
 */
function loseUnsupported(state: GeminiState): void {
  const { request } = state;
  state.loseIfSet("verbosity", request.verbosity);
  state.loseIfSet("prediction", request.prediction);
  if (speechConfigOf(request) === undefined) state.loseIfSet("audio", request.audio);
  state.loseIfSet("moderation", request.moderation);
  losePromptCaching(state, "Gemini has no such field");
  state.loseIfSet("safety_identifier", request.safetyIdentifier);
  loseServiceTier(state);
  const { extensions } = request;
  if (extensions === undefined) return;
  const { image_config: _, ...fields } = extensions.fields;
  state.at("").loseDecoration({ extensions: { ...extensions, fields } });
}

/** The level of Gemini 3 and the budget of Gemini 2.5 for each effort; the gateway's own choice. */
const byEffort: Readonly<Record<string, { level: string; budgetTokens: number }>> = {
  minimal: { level: "MINIMAL", budgetTokens: 512 },
  low: { level: "LOW", budgetTokens: 1_024 },
  medium: { level: "MEDIUM", budgetTokens: 4_096 },
  high: { level: "HIGH", budgetTokens: 16_384 },
  xhigh: { level: "HIGH", budgetTokens: 24_576 },
  max: { level: "HIGH", budgetTokens: 32_768 },
};

/**
 * Encodes `thinkingConfig`; undefined where the request does not mention reasoning or the model
 * cannot reason.
 */
function encodeThinking(state: GeminiState): JsonObject | undefined {
  const {
    request: { reasoning },
    traits,
  } = state;
  if (reasoning === undefined) return undefined;
  state.loseIfSet("reasoning.summary", reasoning.summary);
  if (traits.thinking === "none") {
    if (!isReasoningDisabled(reasoning)) state.lose("reasoning", "the model does not think");
    return undefined;
  }
  if (isReasoningDisabled(reasoning)) return leastThinking(state);
  const includeThoughts = reasoning.exclude !== true && reasoning.display !== "omitted";
  const bound =
    traits.thinking === "level"
      ? thinkingLevel(reasoning, state)
      : thinkingBudget(reasoning, state);
  return { ...bound, includeThoughts };
}

function leastThinking(state: GeminiState): JsonObject {
  const { traits } = state;
  if (traits.canStopThinking) return { thinkingBudget: 0, includeThoughts: false };
  state.lose("reasoning.effort", "the model cannot stop thinking; it thinks as little as it can");
  return {
    ...(traits.thinking === "level"
      ? { thinkingLevel: traits.levels[0] }
      : { thinkingBudget: traits.budgetTokens.min }),
    includeThoughts: false,
  };
}

function thinkingLevel(reasoning: ReasoningRequest, state: GeminiState): JsonObject {
  if (reasoning.budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "the model takes a level instead");
  const effort = flatEffort(reasoning);
  if (effort === undefined) return {};
  return { thinkingLevel: knownLevel(byEffort[effort]?.level ?? effort.toUpperCase(), state) };
}

/** Returns the nearest lower level that the model takes, or its least; an unknown one as it is. */
function knownLevel(level: string, { traits: { levels } }: GeminiState): string | undefined {
  const rank = thinkingLevels.findIndex((one) => one === level);
  if (rank < 0) return level;
  return levels.findLast((one) => thinkingLevels.indexOf(one) <= rank) ?? levels[0];
}

/**
 * Returns a reasoning budget below a cap, since reasoning counts against it: a fifth of the cap is
 * left for the answer, of a small cap less.
 */
const budgetBelow = (cap: number): number =>
  Math.min(cap - 1, Math.max(1_024, Math.floor(cap * 0.8)));

/**
 * Encodes a budget, which counts where no effort is set. Reasoning that is on without an effort is
 * `high`.
 */
function thinkingBudget(reasoning: ReasoningRequest, state: GeminiState): JsonObject {
  const { effort, enabled, budgetTokens } = reasoning;
  const isBudgetOnly = effort === undefined && enabled === undefined;
  if (!isBudgetOnly && budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "the effort was taken instead");
  const wanted = isBudgetOnly ? budgetTokens : byEffort[flatEffort(reasoning) ?? ""]?.budgetTokens;
  if (wanted === undefined) {
    if (effort !== undefined) state.lose("reasoning.effort", "Gemini has no such effort");
    return {};
  }
  const { min, max } = state.traits.budgetTokens;
  const budget = Math.min(max, Math.max(min, wanted));
  const cap = state.request.maxOutputTokens ?? state.options.maxCompletionTokens;
  if (cap === undefined || budget < cap) return { thinkingBudget: budget };
  const fitting = Math.max(min, budgetBelow(cap));
  if (fitting < budget)
    state.lose("reasoning", `cut to ${fitting} tokens, since they count against the cap of ${cap}`);
  return { thinkingBudget: fitting };
}

/** Encodes tools. Where none are left, the choice among them is omitted too. */
function encodeToolFields(state: GeminiState): JsonObject {
  const { tools = [], toolChoice, parallelToolCalls } = state.request;
  const unique = new Set(state.uniqueTools());
  const functionDeclarations = tools.flatMap((tool, index) =>
    unique.has(tool) ? encodeTool(tool, state.at(`tools[${index}]`)) : [],
  );
  const hosted = tools.flatMap((tool) =>
    tool.type === "hosted" && tool.dialect === "google-generate" ? [tool.value] : [],
  );
  const hasFunctions = functionDeclarations.length > 0;
  const search = encodeSearch(state, hasFunctions);
  const isCombined = hasFunctions && search.length > 0;
  const entries = [...(hasFunctions ? [{ functionDeclarations }] : []), ...hosted, ...search];
  if (parallelToolCalls === false && hasFunctions) {
    state.lose("parallel_tool_calls", "Gemini may call several tools at once");
  }
  const chosen = hasFunctions && toolChoice ? encodeToolChoice(toolChoice, state) : undefined;
  // Beside a search, a choice that is left to the model has another name.
  const isFree = isCombined && chosen?.mode === "AUTO";
  const config = withoutUndefined<JsonObject>({
    functionCallingConfig: isFree ? { mode: "VALIDATED" } : chosen,
    includeServerSideToolInvocations: isCombined || undefined,
  });
  return withoutUndefined<JsonObject>({
    tools: entries.length > 0 ? entries : undefined,
    toolConfig: Object.keys(config).length > 0 ? config : undefined,
  });
}

/**
 * Encodes a search, which newer models make beside the caller's functions too. Gemini's choice is
 * one of functions alone, so that none is offered where no tool is to be called.
 */
function encodeSearch(state: GeminiState, hasFunctions: boolean): JsonObject[] {
  const { options, deviations, request } = state;
  if (request.toolChoice?.type === "none") return [];
  if (!hasFunctions || searchesBesideFunctions(options.upstreamModel, deviations))
    return searchTerms(state, []) === undefined ? [] : [{ googleSearch: {} }];
  loseSearches(state, "the model does not search beside functions");
  return [];
}

function encodeTool(tool: Tool, place: GeminiPlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place)];
    case "custom":
      return [wrapCustom(tool, place)];
    case "hosted":
      if (tool.dialect !== "google-generate" && !isTranslated(tool, place.state))
        place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

/**
 * Encodes a function, with its schema as JSON Schema: the member `parameters` supports only a
 * subset of OpenAPI's.
 */
function encodeFunction(tool: FunctionTool, place: GeminiPlace): JsonObject {
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("Gemini has no such field");
  if (tool.strict === true)
    place.at(".strict").lose("Gemini does not promise to keep to the schema");
  place.loseDecoration({ cache: tool.cache, extensions: tool.extensions });
  return withoutUndefined<JsonObject>({
    name: place.state.wireName({ ...tool, kind: "function" }),
    description: tool.description,
    parametersJsonSchema:
      tool.parameters && objectSchema(currentSchema(tool.parameters, { items: false })),
  });
}

/** Wraps a custom tool in a function with one text argument; the grammar becomes advice. */
function wrapCustom(tool: CustomTool, place: GeminiPlace): JsonObject {
  place.loseDecoration({ cache: tool.cache, extensions: tool.extensions });
  const description = wrappedDescription(tool, () =>
    place.at(".format").lose("the grammar is described, not enforced"),
  );
  return {
    name: place.state.wireName({ ...tool, kind: "custom" }),
    ...(description !== undefined && { description }),
    parametersJsonSchema: wrappedParameters,
  };
}

/**
 * Encodes the tool choice. Names may be listed only in the modes ANY and VALIDATED, of which the
 * latter leaves the model free to answer.
 */
function encodeToolChoice(choice: ToolChoice, state: GeminiState): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
      return { mode: "AUTO" };
    case "none":
      return { mode: "NONE" };
    case "required":
      return { mode: "ANY" };
    case "tool":
      return { mode: "ANY", allowedFunctionNames: [state.wireName(choice)] };
    case "allowed": {
      const names = choice.tools.flatMap((tool) =>
        tool.type === "hosted" ? [] : [state.wireName({ kind: tool.type, name: tool.name })],
      );
      const mode = choice.mode === "required" ? "ANY" : "VALIDATED";
      return names.length === 0 ? { mode: "NONE" } : { mode, allowedFunctionNames: names };
    }
    case "hosted":
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}
