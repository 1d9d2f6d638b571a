import { asObject } from "./wire-fields.ts";

type JsonFields = Readonly<Record<string, unknown>>;

/** The settings of a preset that dialects write each in their own way, by the names of the contract. */
export interface PresetSettings {
  temperature?: number;
  max_tokens?: number;
  max_completion_tokens?: number;
  top_p?: number;
  top_k?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  repetition_penalty?: number;
  stop?: string | readonly string[];
  seed?: number;
  response_format?: JsonFields;
  /** As chat has them. */
  tools?: readonly JsonFields[];
  tool_choice?: string | JsonFields;
  reasoning?: { effort?: string; max_tokens?: number; exclude?: boolean; enabled?: boolean };
  stream_options?: JsonFields;
}

/** How the settings of a preset are written in one client dialect. Pure. */
export interface PresetFields {
  /**
   * Members that the preset gives a request beside `model`, `models` and `provider`, which all
   * dialects share: only those that the request has not set itself. What the dialect has no member
   * for is left out.
   */
  settings(settings: PresetSettings, body: JsonFields): JsonFields;
  /** Whether the request brings a system message, wherever the dialect has a place for one. */
  hasSystem(body: JsonFields): boolean;
  /** The member that says `system`, as JSON text; `textOf` gives a member's own text. */
  systemMember(
    system: string,
    textOf: (member: string) => string | undefined,
  ): { member: string; text: string } | undefined;
}

/** Null means absent, as it does everywhere in requests. */
export const isAbsent = (value: unknown): value is null | undefined =>
  value === null || value === undefined;

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
}: PresetSettings): number | undefined => newer ?? older;

/** A preset's wish for thinking: off, or some effort, or a budget of tokens. */
interface PresetEffort {
  off: boolean;
  effort: string | undefined;
  budgetTokens: number | undefined;
}

/** What a preset says of thinking; undefined where it says nothing of how much. */
export function presetEffort({ reasoning }: PresetSettings): PresetEffort | undefined {
  if (reasoning === undefined) return undefined;
  const off = reasoning.enabled === false || reasoning.effort === "none";
  const { effort, max_tokens: budgetTokens } = reasoning;
  return off || effort !== undefined || budgetTokens !== undefined
    ? { off, effort, budgetTokens }
    : undefined;
}

/** Whether a request's own `reasoning` object says how much is to be thought. */
export function saysEffort(reasoning: unknown): boolean {
  const fields = asObject(reasoning);
  return (
    fields !== undefined &&
    ["effort", "max_tokens", "enabled"].some((field) => !isAbsent(fields[field]))
  );
}

/**
 * A preset's tools and choice as a request takes them over: the choice goes with tools, and never
 * without any.
 */
export function presetTools(
  { tools, tool_choice: choice }: PresetSettings,
  body: JsonFields,
): Pick<PresetSettings, "tools" | "tool_choice"> {
  const ownTools = !isAbsent(body["tools"]);
  const taken = ownTools ? undefined : tools;
  const hasOwn = Array.isArray(body["tools"]) && body["tools"].length > 0;
  // A choice that names a tool of the preset means nothing to the request's own tools, and
  // providers refuse one without any.
  const fits = taken !== undefined || (hasOwn && typeof choice === "string");
  return {
    ...(taken === undefined ? {} : { tools: taken }),
    ...(fits && choice !== undefined ? { tool_choice: choice } : {}),
  };
}

/** The function that a tool of chat describes; undefined for other kinds of tools. */
export const functionOf = (tool: JsonFields): JsonFields | undefined =>
  tool["type"] === "function" ? asObject(tool["function"]) : undefined;

/** The name that a choice of chat calls for; undefined for other kinds of choices. */
export function chosenFunction(choice: JsonFields): string | undefined {
  const name = choice["type"] === "function" ? asObject(choice["function"])?.["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}
