/** Anthropic's least budget for thoughts, and the least that any budget is lowered to. */
const budgetTokensMin = 1_024;

/**
 * A budget for thoughts below a cap that counts them: lowered with it, to four fifths of it where there is room, so that there is
 * something left for the answer.
 */
export const budgetWithin = (cap: number, budgetTokens: number): number =>
  (budgetTokens < cap ? budgetTokens : Math.min(cap - 1, Math.max(budgetTokensMin, Math.floor(cap * 0.8))));

/** The lower of a cap that was asked for and the one that is borne; undefined where there is neither. */
export function lowerCap(asked: unknown, outputCap: number | undefined): number | undefined {
  if (typeof asked !== "number") return outputCap;
  return outputCap === undefined || asked <= outputCap ? asked : outputCap;
}
