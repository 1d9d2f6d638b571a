/** How long the sandbox makes its reasoning. */
export type Effort = "low" | "medium" | "high";

/** The sandbox's three efforts, for every name that a dialect has for one; undefined for none. */
export function effortFromName(name: string | null | undefined): Effort | undefined {
  if (name === null || name === undefined || name === "none") return undefined;
  if (name === "minimal" || name === "low") return "low";
  return name === "medium" ? "medium" : "high";
}

/** The effort that a budget of reasoning tokens means. */
export function effortFromBudget(budgetTokens: number): Effort {
  if (budgetTokens <= 1024) return "low";
  return budgetTokens <= 4096 ? "medium" : "high";
}
