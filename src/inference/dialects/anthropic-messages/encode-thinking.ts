import type { JsonObject } from "../../canonical/json.ts";
import type { AssistantPart } from "../../canonical/message.ts";
import {
  isForeignReasoning,
  isSealedReasoning,
  isReasoningDisabled,
  type ReasoningRequest,
} from "../../canonical/reasoning.ts";
import type { EncodeState } from "../encode-state.ts";
import { flatEffort } from "../flat-effort.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { claudeAbilities } from "./claude-model.ts";
import { forcesTool } from "./encode-tools.ts";

/** What the request says about thinking and the bound that thinking counts against. */
export interface ThinkingFields {
  maxTokens: number;
  thinking?: JsonObject;
  effort?: string;
}

/** The bound on output where neither the client nor the catalog names one: what every model of this dialect can give. */
const maxTokensDefault = 4_096;

/** Anthropic's least budget. */
const budgetTokensMin = 1_024;

/** The gateway's own choice of budgets for models that know no efforts. */
const budgetOfEffort: ReadonlyMap<string, number> = new Map([
  ["minimal", 1_024],
  ["low", 1_024],
  ["medium", 4_096],
  ["high", 16_384],
  ["xhigh", 32_000],
  ["max", 32_000],
]);

/** For efforts that nobody here knows. */
const budgetDefault = 4_096;

/** Thinking, its effort and `max_tokens`, which has to be above every budget. */
export function encodeThinking(state: EncodeState): ThinkingFields {
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
    return withoutUndefined<ThinkingFields>({
      maxTokens,
      thinking: asWritten(reasoning),
      effort: reasoning.effort,
    });
  if (isReasoningDisabled(reasoning)) return { maxTokens, thinking: { type: "disabled" } };
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

/** Anthropic refuses a bound above the model's own. */
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

/** Effort names are the same but for `minimal`, which Anthropic does not have. A thought on its own asks for no effort. */
function adaptive(
  state: EncodeState,
  {
    reasoning,
    effort,
    maxTokens,
  }: { reasoning: ReasoningRequest; effort: string; maxTokens: number },
): ThinkingFields {
  if (reasoning.budgetTokens !== undefined)
    state.lose("reasoning.budget_tokens", "the model takes an effort instead");
  const summarized = reasoning.summary === undefined ? undefined : "summarized";
  const display = reasoning.display ?? (reasoning.exclude === true ? "omitted" : summarized);
  return {
    maxTokens,
    thinking: { type: "adaptive", ...(display !== undefined && { display }) },
    effort: effort === "minimal" ? "low" : effort,
  };
}

/** A budget for older models; the bound on output is raised above it as far as the model allows. */
function budgeted(
  state: EncodeState,
  { effort, maxTokens }: { effort: string; maxTokens: number },
): ThinkingFields {
  const {
    request: { reasoning },
    options: { maxCompletionTokens },
  } = state;
  const wanted = Math.max(
    budgetTokensMin,
    reasoning?.budgetTokens ?? budgetOfEffort.get(effort) ?? budgetDefault,
  );
  if (lacksThoughts(state)) {
    state.lose(
      "reasoning",
      "the calls under way were made without thoughts, which this model needs to think on",
    );
    return { maxTokens };
  }
  const needed = maxTokens > wanted ? maxTokens : wanted + maxTokens;
  const raised = Math.min(needed, maxCompletionTokens ?? needed);
  const budget = Math.min(wanted, raised - 1);
  if (budget < budgetTokensMin) {
    state.lose(
      "reasoning",
      `the model has no room for the least budget of ${budgetTokensMin} tokens`,
    );
    return { maxTokens };
  }
  return { maxTokens: raised, thinking: { type: "enabled", budget_tokens: budget } };
}

/** With a budget, a turn that waits for results of its calls has to begin with its sealed thoughts (Anthropic). */
function lacksThoughts({ request: { messages }, options: { providerId } }: EncodeState): boolean {
  const lastUser = messages.findLastIndex((message) => message.role === "user");
  const turns = messages.slice(lastUser + 1).filter((message) => message.role === "assistant");
  const isSealed = (part: AssistantPart): boolean =>
    part.type === "reasoning" && isSealedReasoning(part) && !isForeignReasoning(part, providerId);
  return turns.some(
    ({ parts }) => parts.some((part) => part.type === "tool-call") && !parts.some(isSealed),
  );
}
