import type { RateClass } from "../../account/limits/rate-tier.ts";
import { brand } from "../../platform/lib/brand.ts";

/** Ids of free models as callers may write them: in any case, with a suffix shortcut behind. */
const freePattern = new RegExp(
  `(?::free|^${brand.routerOwner}/free)(?::(?:nitro|floor|fast|exacto)|\\[\\d+[km]\\])*$`,
  "i",
);

/** The class that a request for a model is counted in (contract: "Limits", ids that end in `:free`). */
export const rateClassOf = (model: unknown): RateClass =>
  typeof model === "string" && freePattern.test(model) ? "free-model" : "paid";
