/** Facts of a catalog that knows no model, for tests whose models come from the configuration alone. */
export const noFacts = {
  source: "none",
  licence: "none",
  snapshot: "2026-01-01",
  units: "none",
  rows: [],
  aliases: {},
};
