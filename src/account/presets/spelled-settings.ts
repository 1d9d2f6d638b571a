import { asFields, isAbsent } from "./merge-routing.ts";
import type { JsonFields, PresetConfig } from "./preset.ts";

/** The members among `offered` that a request has not set itself. */
export function unlessSet(offered: JsonFields, body: JsonFields): JsonFields {
  return Object.fromEntries(
    Object.entries(offered).filter(
      ([member, value]) => value !== undefined && isAbsent(body[member]),
    ),
  );
}

/** The preset's bound on output tokens, whichever of the two names it has; the newer name wins. */
export const outputBound = ({
  max_completion_tokens: newer,
  max_tokens: older,
}: PresetConfig): number | undefined => newer ?? older;

/** A preset's wish for thinking: off, or some effort, or a budget of tokens. */
export interface PresetEffort {
  off: boolean;
  effort: string | undefined;
  budgetTokens: number | undefined;
}

/** What a preset says of thinking; undefined where it says nothing of how much. */
export function presetEffort({ reasoning }: PresetConfig): PresetEffort | undefined {
  if (reasoning === undefined) return undefined;
  const off = reasoning.enabled === false || reasoning.effort === "none";
  const { effort, max_tokens: budgetTokens } = reasoning;
  return off || effort !== undefined || budgetTokens !== undefined
    ? { off, effort, budgetTokens }
    : undefined;
}

/** Whether a request's own `reasoning` object says how much is to be thought. */
export function saysEffort(reasoning: unknown): boolean {
  const fields = asFields(reasoning);
  return (
    fields !== undefined &&
    ["effort", "max_tokens", "enabled"].some((field) => !isAbsent(fields[field]))
  );
}

/** A preset's tools and choice as a request takes them over: the choice goes with tools, and never without any. */
export function presetTools(
  { tools, tool_choice: choice }: PresetConfig,
  body: JsonFields,
): Pick<PresetConfig, "tools" | "tool_choice"> {
  const ownTools = !isAbsent(body["tools"]);
  const taken = ownTools ? undefined : tools;
  const hasOwn = Array.isArray(body["tools"]) && body["tools"].length > 0;
  // A choice that names a tool of the preset means nothing to the request's own tools, and providers refuse one without any.
  const fits = taken !== undefined || (hasOwn && typeof choice === "string");
  return {
    ...(taken === undefined ? {} : { tools: taken }),
    ...(fits && choice !== undefined ? { tool_choice: choice } : {}),
  };
}

/** The function that a tool of chat describes; undefined for other kinds of tools. */
export const functionOf = (tool: JsonFields): JsonFields | undefined =>
  tool["type"] === "function" ? asFields(tool["function"]) : undefined;

/** The name that a choice of chat calls for; undefined for other kinds of choices. */
export function chosenFunction(choice: JsonFields): string | undefined {
  const name = choice["type"] === "function" ? asFields(choice["function"])?.["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}
