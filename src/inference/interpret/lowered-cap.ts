import type { Loss } from "../canonical/loss.ts";
import type { UpstreamRoute } from "../catalog/model.ts";

/** Anthropic's least budget for thoughts, and the least that any budget is lowered to. */
const budgetTokensMin = 1_024;

/**
 * A budget for thoughts below a cap that counts them: lowered with it, to four fifths of it where there is room, so that there is
 * something left for the answer.
 */
export const budgetWithin = (cap: number, budgetTokens: number): number =>
  budgetTokens < cap
    ? budgetTokens
    : Math.min(cap - 1, Math.max(budgetTokensMin, Math.floor(cap * 0.8)));

/** The lower of a cap that was asked for and the one that is borne; undefined where there is neither. */
export function lowerCap(asked: unknown, outputCap: number | undefined): number | undefined {
  if (typeof asked !== "number") return outputCap;
  return outputCap === undefined || asked <= outputCap ? asked : outputCap;
}

/** An output cap as a route is told it. */
export interface FittedCap {
  /** Undefined where none is named. */
  cap: number | undefined;
  losses: readonly Loss[];
}

/** The cap that was asked for, cut to what the caller can bear and to what the route allows, since providers answer more with 400. */
export function fittedCap(
  asked: unknown,
  {
    field,
    route: { maxCompletionTokens: largest },
    outputCap,
  }: {
    field: "max_tokens" | "max_output_tokens";
    route: UpstreamRoute;
    outputCap: number | undefined;
  },
): FittedCap {
  const cap = lowerCap(asked, outputCap);
  if (cap === undefined || largest === undefined || cap <= largest) return { cap, losses: [] };
  return {
    cap: largest,
    losses: [{ field, reason: `cut to the ${largest} that the provider allows for this model` }],
  };
}
