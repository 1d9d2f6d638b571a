import type { JsonObject } from "../../canonical/json.ts";
import { isReasoningDisabled, type ReasoningRequest } from "../../canonical/reasoning.ts";
import { flatEffort } from "../flat-effort.ts";
import type { GeminiState } from "./encode-state.ts";

/** Efforts with the level of Gemini 3 and the budget of Gemini 2.5 that they stand for; the gateway's own choice. */
const byEffort: Readonly<Record<string, { level: string; budgetTokens: number }>> = {
  minimal: { level: "MINIMAL", budgetTokens: 512 },
  low: { level: "LOW", budgetTokens: 1_024 },
  medium: { level: "MEDIUM", budgetTokens: 4_096 },
  high: { level: "HIGH", budgetTokens: 16_384 },
  xhigh: { level: "HIGH", budgetTokens: 24_576 },
  max: { level: "HIGH", budgetTokens: 32_768 },
};

/** `thinkingConfig`; undefined where the request does not speak of thinking or the model cannot think. */
export function encodeThinking(state: GeminiState): JsonObject | undefined {
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
      ? { thinkingLevel: traits.leastLevel }
      : { thinkingBudget: traits.budgetTokens.min }),
    includeThoughts: false,
  };
}

function thinkingLevel(reasoning: ReasoningRequest, state: GeminiState): JsonObject {
  if (reasoning.budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "the model takes a level instead");
  const effort = flatEffort(reasoning);
  return effort === undefined
    ? {}
    : { thinkingLevel: byEffort[effort]?.level ?? effort.toUpperCase() };
}

/** Thoughts count against the cap: where it is below their budget, a fifth of it is left for the answer, but of a small one less. */
const budgetBelow = (cap: number): number =>
  Math.min(cap - 1, Math.max(1_024, Math.floor(cap * 0.8)));

/** A budget counts where no effort does: thinking that is on without an effort is `high`. */
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
  const cap = state.options.maxCompletionTokens;
  return {
    thinkingBudget: cap !== undefined && budget >= cap ? Math.max(min, budgetBelow(cap)) : budget,
  };
}
