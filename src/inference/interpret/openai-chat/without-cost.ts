import { editMembers, scanMembers } from "../../../platform/lib/json-members.ts";

/** Whether usage tells of a cost that is not ours. */
export const tellsCost = (usage: unknown): boolean =>
  typeof usage === "object" && usage !== null && ("cost" in usage || "cost_details" in usage);

/**
 * A chunk whose usage is not the last one, without the provider's own cost: `cost` is what the
 * client is charged.
 */
export function withoutCost(text: string): string {
  const usage = scanMembers(text).find(({ key }) => key === "usage");
  if (usage === undefined) return text;
  const without = editMembers(
    text.slice(usage.valueStart, usage.valueEnd),
    new Map([
      ["cost", undefined],
      ["cost_details", undefined],
    ]),
  );
  return editMembers(text, new Map([["usage", without]]));
}
