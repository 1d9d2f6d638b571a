import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import type { DialectId } from "../../canonical/dialect-id.ts";
import type { Loss, CanonicalRequest } from "../../canonical/request.ts";
import {
  type ReasoningLevels,
  type ReasoningRequest,
  effortRank,
  isForeignReasoning,
  isReasoningDisabled,
  isSealedReasoning,
  risingEfforts,
} from "../../canonical/reasoning.ts";
import type { TargetRoute } from "./exchange.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantMessage, AssistantPart } from "../../canonical/message.ts";
import type { EncodeState } from "./encode-state.ts";
import { choosesSearch, searchesAtOpenai } from "./extras/web-search.ts";
import { asObject, withoutUndefined } from "./wire-fields.ts";

/**
 * Returns the reasoning settings of one attempt (contract, reasoning rules 1 to 4). Reasoning that
 * a Messages client turned on is effort `high` for an upstream of another dialect, without its
 * budget; every effort is clamped to what the model declares. Undefined sets nothing.
 */
export function reasoningFor(
  { dialect, reasoning }: Pick<CanonicalRequest, "dialect" | "reasoning">,
  { upstream, declared }: { upstream: DialectId; declared: ReasoningLevels | undefined },
): ReasoningRequest | undefined {
  if (reasoning === undefined) return undefined;
  const asked =
    dialect === "anthropic-messages" && upstream !== dialect ? flatReasoning(reasoning) : reasoning;
  if (asked.effort === undefined) return asked;
  const effort = clampEffort(asked.effort, declared);
  if (effort === asked.effort) return asked;
  const { effort: _, ...rest } = asked;
  return effort === undefined ? rest : { ...rest, effort };
}

/** Applies rule 2. Adaptive thinking names no effort, so the model keeps its own. */
function flatReasoning({ budgetTokens, ...reasoning }: ReasoningRequest): ReasoningRequest {
  if (reasoning.enabled === false) return { ...reasoning, effort: "none" };
  if (reasoning.effort !== undefined) return reasoning;
  return budgetTokens === undefined ? reasoning : { ...reasoning, effort: "high" };
}

/** Returns whether the catalog says that the model reasons at a route. */
export const reasonsAt = ({ model, route }: Pick<TargetRoute, "model" | "route">): boolean =>
  (route.reasoning ?? model.reasoning) !== undefined || route.reasoningFeature === true;

/**
 * Returns whether a route is sent the response format (rule 6). One whose list of parameters lacks
 * it is tried last, and without it. A route without a list of its own permits it.
 */
export function takesFormat({ supportedParameters: declared = [] }: TargetRoute["route"]): boolean {
  return (
    declared.length === 0 ||
    declared.includes("response_format") ||
    declared.includes("structured_outputs")
  );
}

/**
 * Returns the loss of a format that a route does not accept; the field is chat's unless another is
 * named.
 */
export const undeclaredFormat = (field = "response_format"): Loss => ({
  field,
  reason: "the provider does not declare response_format for this model",
});

/**
 * Returns the effort that is sent: the nearest lower level that the model declares, the lowest when
 * all are higher, or its default for an unknown one. `none` is never clamped, and a model that
 * declares no levels is sent what the caller sent (contract, reasoning rules 1, 3 and 4).
 */
export function clampEffort(
  effort: string,
  declared: ReasoningLevels | undefined,
): string | undefined {
  if (effort === "none" || declared === undefined || declared.levels.includes(effort))
    return effort;
  const rank = effortRank(effort);
  if (rank < 0) return declared.default;
  const levels = risingEfforts(declared.levels);
  return (
    levels.findLast((level) => effortRank(level) <= rank) ??
    levels[0] ??
    declared.levels.find((level) => level !== "none") ??
    declared.default
  );
}

/** The effort for a budget without one; the gateway's own choice. */
const effortOfBudget = [
  { upToTokens: 1_024, effort: "low" },
  { upToTokens: 4_096, effort: "medium" },
  { upToTokens: 16_384, effort: "high" },
];

/**
 * Returns reasoning settings as one effort name: on without an effort is `high`, and off is `none`
 * with any effort, as the contract says.
 */
export function flatEffort({
  effort,
  enabled,
  budgetTokens,
}: ReasoningRequest): string | undefined {
  if (enabled === false) return "none";
  if (effort !== undefined) return effort;
  if (enabled === true) return "high";
  if (budgetTokens === undefined) return undefined;
  return effortOfBudget.find(({ upToTokens }) => budgetTokens <= upToTokens)?.effort ?? "xhigh";
}

/** The reasoning fields of a request, and the cap that includes reasoning. */
export interface ClaudeThinking {
  maxTokens: number;
  thinking?: JsonObject;
  effort?: string;
}

/**
 * The output cap where neither the client nor the catalog names one: what every model of this
 * dialect can generate.
 */
export const maxTokensDefault = 4_096;

/** The budget for each effort, for models that know no efforts; the gateway's own choice. */
const budgetOfEffort: ReadonlyMap<string, number> = new Map([
  ["minimal", 1_024],
  ["low", 1_024],
  ["medium", 4_096],
  ["high", 16_384],
  ["xhigh", 32_000],
  ["max", 32_000],
]);

/** The budget for efforts that the gateway does not know. */
const budgetDefault = 4_096;

/** Returns the budget in tokens for an effort; undefined means that none was named. */
export const budgetFor = (effort: string | undefined): number =>
  budgetOfEffort.get(effort ?? "") ?? budgetDefault;

/**
 * Encodes reasoning, its effort and `max_tokens`, which has to exceed every budget. A bound that the
 * client set is never raised.
 */
export function encodeClaudeThinking(state: EncodeState): ClaudeThinking {
  const {
    request: { reasoning, maxOutputTokens },
    options: { maxCompletionTokens, upstreamModel },
  } = state;
  const maxTokens = boundedTokens(
    state,
    maxOutputTokens ?? maxCompletionTokens ?? maxTokensDefault,
  );
  if (reasoning === undefined) return { maxTokens };
  if (state.sameDialect)
    return withoutUndefined<ClaudeThinking>({
      maxTokens,
      thinking: asWritten(reasoning),
      effort: reasoning.effort,
    });
  if (isReasoningDisabled(reasoning)) {
    if (!claudeAbilities(upstreamModel).alwaysThinks)
      return { maxTokens, thinking: { type: "disabled" } };
    state.lose("reasoning", "the model cannot stop thinking; it thinks as little as it can");
    return { maxTokens, effort: "low" };
  }
  const effort = flatEffort(reasoning);
  if (effort === undefined) return { maxTokens };
  if (forcesTool(state)) {
    state.lose("reasoning", "the model cannot think where it is forced to call a tool");
    return { maxTokens };
  }
  return claudeAbilities(upstreamModel).thinksAdaptively
    ? adaptive(state, { reasoning, effort, maxTokens })
    : budgeted(state, { effort, maxTokens });
}

/** Returns the cap within the model's own, since Anthropic refuses a larger one. */
function boundedTokens(state: EncodeState, wanted: number): number {
  const { maxCompletionTokens } = state.options;
  if (state.sameDialect || maxCompletionTokens === undefined || wanted <= maxCompletionTokens)
    return wanted;
  state.lose("max_tokens", `the model gives at most ${maxCompletionTokens} tokens`);
  return maxCompletionTokens;
}

function asWritten({
  enabled,
  mode,
  budgetTokens,
  display,
  extensions,
}: ReasoningRequest): JsonObject | undefined {
  const type = mode ?? (enabled === undefined ? undefined : enabled ? "enabled" : "disabled");
  if (type === undefined) return undefined;
  const own = extensions?.dialect === "anthropic-messages" ? extensions.fields : {};
  return withoutUndefined<JsonObject>({ type, budget_tokens: budgetTokens, display, ...own });
}

/**
 * Encodes adaptive thinking. Effort names are the same except for `minimal`, which Anthropic does
 * not have. Reasoning that is only turned on sets no effort.
 */
function adaptive(
  state: EncodeState,
  {
    reasoning,
    effort,
    maxTokens,
  }: { reasoning: ReasoningRequest; effort: string; maxTokens: number },
): ClaudeThinking {
  if (reasoning.budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "the model takes an effort instead");
  const known = knownEffort(state, effort);
  const summarized = reasoning.summary === undefined ? undefined : "summarized";
  const display = reasoning.display ?? (reasoning.exclude === true ? "omitted" : summarized);
  return {
    maxTokens,
    thinking: { type: "adaptive", ...(display !== undefined && { display }) },
    ...(known !== undefined && { effort: known }),
  };
}

/** Returns the effort that the model takes in place of another, and names one that is not taken. */
function knownEffort(state: EncodeState, effort: string): string | undefined {
  const clamped = clampEffort(effort, claudeAbilities(state.options.upstreamModel).efforts);
  const known = clamped === "minimal" ? "low" : clamped;
  if (known !== effort)
    state.lose("reasoning.effort", `the model knows no effort ${effort}; it is sent ${known}`);
  return known;
}

/**
 * Encodes a budget for older models. It fits below the client's bound; where the client set none,
 * the output cap is raised above it as far as the model allows.
 */
function budgeted(
  state: EncodeState,
  { effort, maxTokens }: { effort: string; maxTokens: number },
): ClaudeThinking {
  const {
    request: { reasoning, maxOutputTokens },
    options: { maxCompletionTokens },
  } = state;
  const wanted = Math.max(budgetTokensMin, reasoning?.budgetTokens ?? budgetFor(effort));
  if (lacksThoughts(state)) {
    state.lose(
      "reasoning",
      "the calls under way were made without thoughts, which this model needs to think on",
    );
    return { maxTokens };
  }
  const isBound = maxOutputTokens !== undefined || maxTokens > wanted;
  const needed = isBound ? maxTokens : wanted + maxTokens;
  const cap = Math.min(needed, maxCompletionTokens ?? needed);
  const budget = budgetWithin(cap, wanted);
  if (budget < budgetTokensMin) {
    state.lose(
      "reasoning",
      `an answer of at most ${cap} tokens has no room for the least budget of ${budgetTokensMin}`,
    );
    return { maxTokens };
  }
  if (budget < wanted && maxOutputTokens !== undefined)
    state.lose("reasoning", `cut to ${budget} tokens, below the cap of ${cap}`);
  return { maxTokens: cap, thinking: { type: "enabled", budget_tokens: budget } };
}

/**
 * Returns whether sealed reasoning is missing: with a budget, a turn whose results come last has to
 * begin with it (Anthropic), also where the user speaks behind these.
 */
function lacksThoughts({ request: { messages }, options: { providerId } }: EncodeState): boolean {
  const lastTurn = messages.findLastIndex((message) => message.role === "assistant");
  const begin = messages.findLastIndex(({ role }, index) => index < lastTurn && role === "user");
  const turns = messages.slice(begin + 1).filter((message) => message.role === "assistant");
  const calls = ({ parts }: AssistantMessage): boolean =>
    parts.some((part) => part.type === "tool-call");
  const isSealed = (part: AssistantPart): boolean =>
    part.type === "reasoning" && isSealedReasoning(part) && !isForeignReasoning(part, providerId);
  const last = turns.at(-1);
  return (
    last !== undefined &&
    calls(last) &&
    turns.some((turn) => calls(turn) && !turn.parts.some(isSealed))
  );
}

/**
 * Returns whether the model has to call a tool, which it cannot do while it reasons (Anthropic
 * answers 400 to both).
 */
const forcesTool = ({ request: { toolChoice, tools }, options }: EncodeState): boolean =>
  Boolean(tools?.length) &&
  (toolChoice?.type === "required" ||
    toolChoice?.type === "tool" ||
    (toolChoice?.type === "hosted" && options.searches === true && choosesSearch(toolChoice)) ||
    (toolChoice?.type === "allowed" && toolChoice.mode === "required"));

/**
 * The abilities of a Claude model, derived from its wire name; other makers' models behind this
 * dialect accept the older fields.
 */
export interface ClaudeAbilities {
  /**
   * Whether sampling parameters are answered with 400 (Claude 4.7 and later, Anthropic's migration
   * guide of 2026-10-21).
   */
  refusesSampling: boolean;
  /** Whether only one of temperature and top_p may be sent (Claude 4.1 and later). */
  takesOneSampler: boolean;
  /** Whether it thinks adaptively, guided by an effort (Claude 4.6 and later). */
  thinksAdaptively: boolean;
  /** Whether it takes a budget and no adaptive thinking (up to Claude 4.5). */
  takesBudgetsAlone: boolean;
  /** Whether a budget is answered with 400 (Claude 4.7 and later). */
  refusesBudgets: boolean;
  /** Whether `output_config.effort` is answered with 400 (up to Claude 4.5, but for Opus 4.5). */
  refusesEffort: boolean;
  /** The efforts that are not answered with 400 where these are not all (Claude 4.5 and 4.6). */
  efforts: ReasoningLevels | undefined;
  /** Whether thinking that is turned off, and a forced call, are answered with 400. */
  alwaysThinks: boolean;
  /** The efforts beside thinking that is turned off, where these are not all. */
  effortsWithoutThinking: ReasoningLevels | undefined;
  /** Whether a conversation that ends in the model's own turn is answered with 400 (from 4.6 on). */
  refusesPrefill: boolean;
  /** Whether instructions within the conversation are answered with 400 (up to Claude 4.7). */
  refusesLaterSystem: boolean;
  /** Whether it accepts strict tools and output schemas (Claude 4.1 and later). */
  takesSchemas: boolean;
}

const pattern = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

/**
 * Models whose thinking cannot be turned off. Sources: link-assistant/hive-mind#1876 (2026-06),
 * stdapi-ai/stdapi.ai#284 (2026-09).
 */
const thinkers = /claude-(?:fable|mythos|opus-5[-.]5(?!\d))/;

/**
 * Models whose thinking can be turned off only at an effort of `high` or lower. Source:
 * platform.claude.com, models/opus-5/migration-guide (2026-11).
 */
const stoppedBelowHigh = /claude-(?:opus-5(?![-.]\d)|haiku-5[-.]5(?!\d))/;
const upToHigh: ReasoningLevels = { levels: ["low", "medium", "high"] };

/**
 * The efforts of Claude by the version before which they hold. Source: platform.claude.com,
 * build-with-claude/effort (2026-08), of which `xhigh` begins with 4.7.
 */
const effortsOf: readonly (ReasoningLevels & { until: number })[] = [
  { until: 4.06, levels: ["low", "medium", "high"] },
  { until: 4.07, levels: ["low", "medium", "high", "max"] },
];

/**
 * Returns the abilities by wire name, such as `claude-opus-4-7`, `claude-3-5-haiku-20241022` or
 * `anthropic.claude-sonnet-5-v1:0`.
 */
export function claudeAbilities(model: string): ClaudeAbilities {
  const version = claudeVersion(model);
  return {
    refusesSampling: version !== undefined && version >= 4.07,
    takesOneSampler: version !== undefined && version >= 4.01,
    thinksAdaptively: version !== undefined && version >= 4.06,
    takesBudgetsAlone: version !== undefined && version < 4.06,
    refusesBudgets: version !== undefined && version >= 4.07,
    refusesEffort:
      version !== undefined && version < 4.06 && !/opus-4[-.]5/.test(model.toLowerCase()),
    efforts: version === undefined ? undefined : effortsOf.find(({ until }) => version < until),
    alwaysThinks: thinkers.test(model.toLowerCase()),
    effortsWithoutThinking: stoppedBelowHigh.test(model.toLowerCase()) ? upToHigh : undefined,
    refusesPrefill: version !== undefined && version >= 4.06,
    refusesLaterSystem: version !== undefined && version < 4.08,
    takesSchemas: version === undefined || version >= 4.01,
  };
}

/** Returns the version with two decimals, 4.07 for 4.7; undefined for models other than Claude. */
function claudeVersion(model: string): number | undefined {
  const match = pattern.exec(model.toLowerCase());
  return match === null ? undefined : Number(match[1]) + Number(match[2] ?? 0) / 100;
}

/** Anthropic's smallest reasoning budget, below which no budget is lowered. */
export const budgetTokensMin = 1_024;

/**
 * Returns a reasoning budget below a cap that includes it: lowered with the cap, to four fifths of
 * it where there is room, so that something is left for the answer.
 */
export const budgetWithin = (cap: number, budgetTokens: number): number =>
  budgetTokens < cap
    ? budgetTokens
    : Math.min(cap - 1, Math.max(budgetTokensMin, Math.floor(cap * 0.8)));

/** A refusal of an effort, with the efforts that the catalog declares for the model. */
interface RefusedEffort {
  code: string | null;
  /** The upstream's words, and the field that it names. */
  message: string;
  declared: readonly string[];
}

/** OpenAI's code for a model that has no efforts at all. */
const withoutEfforts = "unsupported_parameter";

/** Matches the list of efforts that a refusal names. */
const namedEfforts =
  /(?:supported values are|must be one of|expected one of|input should be)(.*)/is;

/**
 * Returns a request of chat or Responses with the least effort in place of `none`, of those that the
 * refusal names or that are declared, and that the model searches with. Undefined where the refusal is about something else.
 */
export function withoutNone(text: string, refused: RefusedEffort): string | undefined {
  const { code, message, declared } = refused;
  if (code === withoutEfforts || !/effort/i.test(message)) return undefined;
  const [, list = ""] = namedEfforts.exec(message) ?? [];
  const known = [list.match(/[a-z]+/g) ?? [], declared].flatMap(risingEfforts);
  const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const { reasoning_effort: flat, reasoning } = body;
  const searches = searchesAtOpenai(body["tools"]);
  const effort = known.find((each) => each !== "minimal" || !searches) ?? "low";
  if (flat === "none")
    return editMembers(text, new Map([["reasoning_effort", JSON.stringify(effort)]]));
  const nested = asObject(reasoning);
  return nested?.effort === "none"
    ? editMembers(text, new Map([["reasoning", JSON.stringify({ ...nested, effort })]]))
    : undefined;
}

/** Returns whether a client names an effort itself, in any of its fields. */
export const namesEffort = ({
  reasoning_effort: flat,
  reasoning,
}: Readonly<Record<string, unknown>>): boolean =>
  (flat ?? asObject(reasoning)?.effort ?? null) !== null;
