import type { JsonObject } from "../../canonical/json.ts";
import { isReasoningDisabled, type ReasoningRequest } from "../../canonical/reasoning.ts";
import { claudeAbilities, encodeClaudeThinking, flatEffort } from "../reasoning-rules.ts";
import type { EncodeState } from "../encode-state.ts";
import { converseTraits } from "./converse-traits.ts";

/** What the request says about thinking, and the cap and samplers that depend on it. */
export interface ThinkingFields {
  /** The output cap, which thoughts count against; undefined leaves the model's own. */
  maxTokens: number | undefined;
  /** Members of `additionalModelRequestFields`: every maker has its own words for thinking. */
  fields: JsonObject;
  /** `outputConfig.effort`, for Claude that thinks adaptively. */
  effort?: string;
  /** The model answers samplers with 400, always or while it thinks. */
  refusesSampling: boolean;
}

/** Thinking in the words of the model's maker. */
export function encodeThinking(state: EncodeState): ThinkingFields {
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

/** Claude takes the fields of its own API, but for the effort. */
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
  /** The fields of a request that does not ask for thinking. */
  plain: ThinkingFields;
}

/** The three efforts that Nova and OpenAI's open models know; others become the nearest. */
const threeEfforts: Readonly<Record<string, string>> = {
  minimal: "low",
  xhigh: "high",
  max: "high",
};

/**
 * Nova 2 takes one of three efforts, and at the highest neither a cap nor samplers. Source:
 * docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html (2026-11).
 */
function novaThinking(state: EncodeState, { reasoning, plain }: Asked): ThinkingFields {
  if (isReasoningDisabled(reasoning))
    return { ...plain, fields: { reasoningConfig: { type: "disabled" } } };
  const asked = flatEffort(reasoning);
  if (asked === undefined) return plain;
  if (reasoning.budgetTokens !== undefined && reasoning.effort !== undefined)
    state.lose("reasoning.budget_tokens", "the model takes an effort instead");
  const wanted = threeEfforts[asked] ?? asked;
  // A cap bounds what the caller pays for, so it is kept and the effort is lowered.
  const isCapped = wanted === "high" && plain.maxTokens !== undefined;
  if (isCapped) state.lose("reasoning.effort", "the model takes no output cap at high effort");
  const effort = isCapped ? "medium" : wanted;
  return {
    ...plain,
    fields: { reasoningConfig: { type: "enabled", maxReasoningEffort: effort } },
    refusesSampling: effort === "high",
  };
}

/** OpenAI's open models take an effort and cannot stop thinking. */
function plainEffort(state: EncodeState, { reasoning, plain }: Asked): ThinkingFields {
  const effort = flatEffort(reasoning);
  if (effort === undefined) return plain;
  if (effort === "none")
    state.lose("reasoning.effort", "the model cannot stop thinking; it thinks as little as it can");
  const known = effort === "none" ? "low" : (threeEfforts[effort] ?? effort);
  return { ...plain, fields: { reasoning_effort: known } };
}
