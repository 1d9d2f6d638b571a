import type { PresetSettings } from "../../../platform/kernel/models/preset-settings.ts";
import { asObject, isAbsent } from "./wire-fields.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/** Functions that write the settings of a preset in one client dialect. Pure. */
export interface PresetFields {
  /**
   * Returns the members that the preset adds to a request, beside `model`, `models` and `provider`,
   * which all dialects share: only those that the request has not set itself. Settings without a
   * member in the dialect are left out.
   */
  settings(settings: PresetSettings, body: JsonFields): JsonFields;
  /**
   * Returns the names of the settings that the dialect has no member for; absent where it has one
   * for each.
   */
  lost?(settings: PresetSettings): readonly string[];
  /**
   * Returns whether the request has a system message, in any place where the dialect allows one.
   */
  hasSystem(body: JsonFields): boolean;
  /**
   * Returns the member that carries `system`, as JSON text; `textOf` returns a member's original
   * text.
   */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}

/** Returns the members of `offered` that a request has not set itself. */
export function unlessSet(offered: JsonFields, body: JsonFields): JsonFields {
  return Object.fromEntries(
    Object.entries(offered).filter(
      ([member, value]) => value !== undefined && isAbsent(body[member]),
    ),
  );
}

/** A preset's reasoning setting: off, an effort, or a budget in tokens. */
interface PresetEffort {
  off: boolean;
  effort: string | undefined;
  budgetTokens: number | undefined;
}

/** Returns a preset's reasoning setting; undefined where it says nothing of how much. */
export function presetEffort({ reasoning }: PresetSettings): PresetEffort | undefined {
  if (reasoning === undefined) return undefined;
  const off = reasoning.enabled === false || reasoning.effort === "none";
  const { effort, max_tokens: budgetTokens } = reasoning;
  return off || effort !== undefined || budgetTokens !== undefined
    ? { off, effort, budgetTokens }
    : undefined;
}

/** Returns whether a request's own `reasoning` object says how much to reason. */
export function saysEffort(reasoning: unknown): boolean {
  const fields = asObject(reasoning);
  return (
    fields !== undefined &&
    ["effort", "max_tokens", "enabled"].some((field) => !isAbsent(fields[field]))
  );
}

/**
 * Returns a preset's tools and choice for a request: the choice is applied with tools, and never
 * without any.
 */
export function presetTools(
  { tools, tool_choice: choice }: PresetSettings,
  body: JsonFields,
): Pick<PresetSettings, "tools" | "tool_choice"> {
  const ownTools = !isAbsent(body["tools"]);
  const taken = ownTools ? undefined : tools;
  const hasOwn = Array.isArray(body["tools"]) && body["tools"].length > 0;
  // A choice that names a tool of the preset has no meaning for the request's own tools, and
  // providers refuse a choice without tools.
  const fits = taken !== undefined || (hasOwn && typeof choice === "string");
  return {
    ...(taken === undefined ? {} : { tools: taken }),
    ...(fits && choice !== undefined ? { tool_choice: choice } : {}),
  };
}

/** Returns the function that a chat tool describes; undefined for other kinds of tools. */
export const functionOf = (tool: JsonFields): JsonFields | undefined =>
  tool["type"] === "function" ? asObject(tool["function"]) : undefined;

/** Returns the function name of a chat tool choice; undefined for other kinds of choices. */
export function chosenFunction(choice: JsonFields): string | undefined {
  const name = choice["type"] === "function" ? asObject(choice["function"])?.["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}
