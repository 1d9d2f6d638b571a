import type { Candidate } from "./candidate.ts";

/** Whether a candidate declares a parameter; one that declares none is permissive. */
export function supports({ model, route }: Pick<Candidate, "model" | "route">, parameter: string): boolean {
  const declared = route.supportedParameters ?? model.supportedParameters;
  return declared === undefined || declared.length === 0 || declared.includes(parameter);
}
