import type { GenerationDetail } from "../insights/generation-record.ts";
import type { Execution } from "./execution.ts";

/** Entries of each kind that a record keeps: enough to see why, few enough to write with every request. */
const entriesMax = 8;

/** Why a request went where it went, for its record; undefined where there was only one way. */
export function routingTrail(execution: Pick<Execution, "candidates" | "leftOut" | "heldBack">): GenerationDetail["routing"] {
  const { candidates, heldBack } = execution;
  const leftOut = heldBack.length === 0 ? execution.leftOut : [...heldBack, ...execution.leftOut];
  if (candidates.length <= 1 && leftOut.length === 0) return undefined;
  const order = candidates.slice(0, entriesMax).map(({ route, model, reason }) => `${route.provider.id} ${model.id}: ${reason}`);
  if (leftOut.length === 0) return { order };
  return { order, leftOut: leftOut.slice(0, entriesMax).map(({ provider, model, rule }) => `${provider} ${model}: ${rule}`) };
}
