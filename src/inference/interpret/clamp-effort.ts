import type { ReasoningLevels } from "../catalog/model.ts";

const effortOrder = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const rankOf = (level: string): number => effortOrder.indexOf(level);

/** The levels that thinking may be clamped to, the lowest first, in whichever order they were declared. */
const clampable = (levels: readonly string[]): string[] =>
  levels.filter((level) => rankOf(level) > 0).sort((one, other) => rankOf(one) - rankOf(other));

/**
 * The effort that is sent: the nearest lower level that the model declares, the lowest when all are higher,
 * its default for a tier nobody knows. `none` is never clamped, and a model that declares no levels gets
 * what the caller sent (contract, reasoning rules 1, 3 and 4).
 */
export function clampEffort(
  effort: string,
  declared: ReasoningLevels | undefined,
): string | undefined {
  if (effort === "none" || declared === undefined || declared.levels.includes(effort))
    return effort;
  const rank = rankOf(effort);
  if (rank < 0) return declared.default;
  const levels = clampable(declared.levels);
  return (
    levels.findLast((level) => rankOf(level) <= rank) ??
    levels[0] ??
    declared.levels.find((level) => level !== "none") ??
    declared.default
  );
}
