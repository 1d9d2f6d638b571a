import type { PackedUnit } from "../packed-unit.ts";
import type { DeferredCommit } from "./deferred-commit.ts";
import { engineErrorOf, isDatabaseWide } from "./engine-error.ts";
import type { BatchRefusal } from "./worker-protocol.ts";

/** Makes a batch durable, whose text as JSON is `json`, but for the units that it returns. */
export function applyBatch(
  commit: DeferredCommit,
  units: readonly PackedUnit[],
  json: string,
): BatchRefusal[] {
  const refusals: BatchRefusal[] = [];
  applyRange(commit, { units, json, offset: 0 }, refusals);
  return refusals;
}

interface Range {
  units: readonly PackedUnit[];
  json: string;
  /** Position of the first of them in the batch. */
  offset: number;
}

/** Halves a refused batch until the units at fault stand alone: few extra writes, and the others go through. */
function applyRange(
  commit: DeferredCommit,
  { units, json, offset }: Range,
  refusals: BatchRefusal[],
): void {
  try {
    commit.write(units, json);
  } catch (error) {
    const { message, code } = engineErrorOf(error);
    if (units.length === 1 || isDatabaseWide(code)) {
      for (let index = 0; index < units.length; index++)
        refusals.push([offset + index, message, code]);
      return;
    }
    const middle = units.length >> 1;
    applyRange(commit, part(units.slice(0, middle), offset), refusals);
    applyRange(commit, part(units.slice(middle), offset + middle), refusals);
  }
}

const part = (units: readonly PackedUnit[], offset: number): Range => ({
  units,
  json: JSON.stringify(units),
  offset,
});
