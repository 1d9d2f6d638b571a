import type { Candidate } from "./candidate.ts";

/** Parameters that have two names, such as today's and yesterday's of OpenAI: a route that declares one takes what the other says. */
const otherName: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens",
  reasoning: "reasoning_effort",
  reasoning_effort: "reasoning",
};

/** Whether a candidate declares a parameter; one that declares none is permissive. */
export function supports({ model, route }: Pick<Candidate, "model" | "route">, parameter: string): boolean {
  const declared = route.supportedParameters ?? model.supportedParameters;
  if (declared === undefined || declared.length === 0 || declared.includes(parameter)) return true;
  const other = otherName[parameter];
  return other !== undefined && declared.includes(other);
}
