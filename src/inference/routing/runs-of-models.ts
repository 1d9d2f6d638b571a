import type { Candidate } from "./candidate.ts";

/** Neighbours of the same model together, in their order. */
export function runsOfModels(candidates: readonly Candidate[]): Candidate[][] {
  const runs: Candidate[][] = [];
  let run: Candidate[] = [];
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
