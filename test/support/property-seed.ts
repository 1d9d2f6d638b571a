import fc from "fast-check";

/**
 * The seed of every property test. `PROPERTY_SEED` sets another one; `PROPERTY_SEED=random` tries
 * new cases, and a failure names the seed that repeats it.
 */
const { PROPERTY_SEED: wanted = "20261126" } = process.env;

if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted) });
