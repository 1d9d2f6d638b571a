import type { Candidate } from "./candidate.ts";

/** Neighbours of the same model together, in their order. */
export function runsOfModels<T extends Pick<Candidate, "model">>(candidates: readonly T[]): T[][] {
  const runs: T[][] = [];
  let run: T[] = [];
  let of: Candidate["model"] | undefined;
  for (const candidate of candidates) {
    if (candidate.model !== of) {
      ({ model: of } = candidate);
      runs.push((run = []));
    }
    run.push(candidate);
  }
  return runs;
}
