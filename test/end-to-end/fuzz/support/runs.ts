import { isNightly } from "../../../support/nightly.ts";

/** Runs of the night for each that is made by default. */
const nightlyTimes = 3;

/**
 * How many bodies or streams a test makes. Nightly all tests of the folder make some 100,000
 * together, and by default a third of them; `FUZZ_RUNS=100000` makes as many for each.
 */
export function fuzzRuns(nightly: number): number {
  const asked = Number(process.env.FUZZ_RUNS);
  if (Number.isInteger(asked) && asked > 0) return asked;
  return isNightly ? nightly : Math.ceil(nightly / nightlyTimes);
}

/** Every run of the tests makes the same bodies and streams; `FUZZ_SEED` makes others. */
export const fuzzSeed = Number(process.env.FUZZ_SEED ?? 20_261_121);

/** Milliseconds that a fuzz test may take, which only a longer run needs. */
export const fuzzTimeoutMs = 3_600_000;
