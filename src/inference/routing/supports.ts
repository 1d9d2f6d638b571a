import type { Candidate } from "./candidate.ts";

/** Parameters that have two names, such as today's and yesterday's of OpenAI: a route that declares one takes what the other says. */
const otherName: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens",
  reasoning: "reasoning_effort",
  reasoning_effort: "reasoning",
};

/**
 * Whether a candidate keeps the strict demand for a parameter: its route's list decides, and where there is none the model's
 * (contract: reasoning rule 6). What neither declares is permitted.
 */
export const supports = (
  { model, route }: Pick<Candidate, "model" | "route">,
  parameter: string,
): boolean => isDeclared(route.supportedParameters ?? model.supportedParameters, parameter);

/** Whether a route may be told a parameter; one without a list of its own is permissive, whatever others declare for the model. */
export const permits = ({ route }: Pick<Candidate, "route">, parameter: string): boolean =>
  isDeclared(route.supportedParameters, parameter);

function isDeclared(declared: readonly string[] | undefined, parameter: string): boolean {
  if (declared === undefined || declared.length === 0 || declared.includes(parameter)) return true;
  const other = otherName[parameter];
  return other !== undefined && declared.includes(other);
}
