import type { GenerationDetail } from "../insights/generation-record.ts";
import type { Execution } from "./execution.ts";
import type { LeftOut } from "./routing/candidate.ts";
import { notServable } from "./routing/route-rows.ts";

/** Entries of each kind that a record keeps: enough to see why, few enough to write with every request. */
const entriesMax = 8;

/** Why a request went where it went, for its record; undefined where there was only one way. */
export function routingTrail(
  execution: Pick<Execution, "candidates" | "leftOut" | "heldBack">,
): GenerationDetail["routing"] {
  const { candidates, heldBack } = execution;
  const leftOut = heldBack.length === 0 ? execution.leftOut : [...heldBack, ...execution.leftOut];
  if (candidates.length <= 1 && leftOut.length === 0) return undefined;
  const order = candidates
    .slice(0, entriesMax)
    .map(({ route, model, reason }) => `${route.provider.id} ${model.id}: ${reason}`);
  if (leftOut.length === 0) return { order };
  return { order, leftOut: leftOut.slice(0, entriesMax).map(textOf) };
}

/** Texts of routes without a credential: they are left out of every request alike, as the same objects for as long as a catalog lives. */
const knownTexts = new WeakMap<LeftOut, string>();

function textOf(left: LeftOut): string {
  const known = left.rule === notServable ? knownTexts.get(left) : undefined;
  if (known !== undefined) return known;
  const text = `${left.provider} ${left.model}: ${left.rule}`;
  if (left.rule === notServable) knownTexts.set(left, text);
  return text;
}
