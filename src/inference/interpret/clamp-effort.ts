import type { ReasoningLevels } from "../catalog/model.ts";

const effortOrder = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * The effort that is sent: the nearest lower level that the model declares, the lowest when all are higher,
 * its default for a tier nobody knows. `none` is never clamped, and a model that declares no levels gets
 * what the caller sent (contract, reasoning rules 1, 3 and 4).
 */
export function clampEffort(effort: string, declared: ReasoningLevels | undefined): string | undefined {
  if (effort === "none" || declared === undefined || declared.levels.includes(effort)) return effort;
  const rank = effortOrder.indexOf(effort);
  if (rank < 0) return declared.default;
  const lower = declared.levels.filter((level) => effortOrder.indexOf(level) <= rank && level !== "none");
  return lower.at(-1) ?? declared.levels.find((level) => level !== "none") ?? declared.default;
}
