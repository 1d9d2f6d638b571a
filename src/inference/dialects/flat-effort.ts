import type { ReasoningRequest } from "../canonical/reasoning.ts";

/** The gateway's own choice where only a budget is given. */
const effortOfBudget = [
  { upToTokens: 1_024, effort: "low" },
  { upToTokens: 4_096, effort: "medium" },
  { upToTokens: 16_384, effort: "high" },
];

/** Thinking as one effort name: on without an effort is `high`, and off is `none`, as the contract has it. */
export function flatEffort({ effort, enabled, budgetTokens }: ReasoningRequest): string | undefined {
  if (effort !== undefined) return effort;
  if (enabled !== undefined) return enabled ? "high" : "none";
  if (budgetTokens === undefined) return undefined;
  return effortOfBudget.find(({ upToTokens }) => budgetTokens <= upToTokens)?.effort ?? "xhigh";
}
