import { chargeFor, type PriceRow } from "../account/ledger/price.ts";
import type { Candidate } from "./routing/candidate.ts";

/** Output tokens that a hold assumes when the client names no cap. */
const outputTokensDefault = 4_096;

/** Whether serving a model on a route costs the caller nothing. */
export const isFree = ({ model, route }: Candidate): boolean =>
  model.id.endsWith(":free") || (route.price !== undefined && route.price.base.inputTokens === 0n && route.price.base.outputTokens === 0n && !route.price.base.request);

/** Output tokens that may turn out to be thoughts are held at whichever price is higher. */
function dearestCharge(price: PriceRow, { inputTokens, outputTokens }: { inputTokens: number; outputTokens: number }): bigint {
  const asText = chargeFor(price, { inputTokens, outputTokens });
  const { reasoningTokens: thoughtPrice, outputTokens: textPrice } = price.base;
  if (thoughtPrice === undefined || thoughtPrice <= textPrice) return asText;
  return chargeFor(price, { inputTokens, reasoningTokens: outputTokens });
}

/** The worst case in nano-USD that a request can reach on any of its candidates; `choices` is how many answers it asks for. */
export function holdCeiling(
  candidates: readonly Candidate[],
  expected: { inputTokens: number; maxOutputTokens: number | undefined; choices: number },
): bigint {
  const usage = { inputTokens: expected.inputTokens, outputTokens: (expected.maxOutputTokens ?? outputTokensDefault) * expected.choices };
  let ceiling = 0n;
  for (const candidate of candidates) {
    if (isFree(candidate) || candidate.route.price === undefined) continue;
    const charge = dearestCharge(candidate.route.price, usage);
    if (charge > ceiling) ceiling = charge;
  }
  return ceiling;
}
