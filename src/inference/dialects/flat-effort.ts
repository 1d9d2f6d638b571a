import type { ReasoningRequest } from "../canonical/reasoning.ts";

/** The gateway's own choice where only a budget is given. */
const effortOfBudget = [
  { upToTokens: 1_024, effort: "low" },
  { upToTokens: 4_096, effort: "medium" },
  { upToTokens: 16_384, effort: "high" },
];

/** Thinking as one effort name: on without an effort is `high`, and off is `none` beside any effort, as the contract has it. */
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
