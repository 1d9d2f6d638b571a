import { chargeFor } from "../account/ledger/price.ts";
import type { Candidate } from "./routing/candidate.ts";

/** Output tokens that a hold assumes when the client names no cap. */
const outputTokensDefault = 4_096;

/** Whether serving a model on a route costs the caller nothing. */
export const isFree = ({ model, route }: Candidate): boolean =>
  model.id.endsWith(":free") || (route.price !== undefined && route.price.base.inputTokens === 0n && route.price.base.outputTokens === 0n && !route.price.base.request);

/** The worst case in nano-USD that a request can reach on any of its candidates. */
export function holdCeiling(
  candidates: readonly Candidate[],
  expected: { inputTokens: number; maxOutputTokens: number | undefined },
): bigint {
  const usage = { inputTokens: expected.inputTokens, outputTokens: expected.maxOutputTokens ?? outputTokensDefault };
  let ceiling = 0n;
  for (const candidate of candidates) {
    if (isFree(candidate) || candidate.route.price === undefined) continue;
    const charge = chargeFor(candidate.route.price, usage);
    if (charge > ceiling) ceiling = charge;
  }
  return ceiling;
}
