/**
 * How many bodies or streams a test makes. By default all tests of the folder make some 100,000
 * together;
 * `FUZZ_RUNS=100000` makes as many for each.
 */
export function fuzzRuns(usual: number): number {
  const asked = Number(process.env.FUZZ_RUNS);
  return Number.isInteger(asked) && asked > 0 ? asked : usual;
}

/** Every run of the tests makes the same bodies and streams; `FUZZ_SEED` makes others. */
export const fuzzSeed = Number(process.env.FUZZ_SEED ?? 20_261_121);

/** Milliseconds that a fuzz test may take, which only a longer run needs. */
export const fuzzTimeoutMs = 3_600_000;
