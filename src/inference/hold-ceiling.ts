import { effectivePrice, unitPrice, type PriceRow } from "../account/ledger/price.ts";
import { nanoFromPico, type PicoUsd } from "../platform/lib/money.ts";
import { isFreeRoute } from "./catalog/free-route.ts";
import type { UpstreamRoute } from "./catalog/model.ts";
import { routeDialect } from "./catalog/reachability.ts";
import type { Candidate } from "./routing/candidate.ts";

/** Output tokens that a hold assumes when the client names no cap. */
const outputTokensDefault = 4_096;

/** Whether a candidate costs the caller no credits: the model is free, or a provider key pays. */
export const isFree = ({ model, route, credential }: Candidate): boolean => credential !== undefined || isFreeRoute(model, route);

const times = (count: number, price: PicoUsd): PicoUsd => (count ? BigInt(count) * price : 0n);

/**
 * The charge for so many tokens as `chargeFor` has it, before it is rounded: a hold works it out for every candidate. Output tokens
 * that may turn out to be thoughts are held at whichever price is higher.
 */
function dearestCharge(price: PriceRow, { inputTokens, outputTokens }: { inputTokens: number; outputTokens: number }): PicoUsd {
  const vector = effectivePrice(price, inputTokens);
  const { reasoningTokens: thoughtPrice, outputTokens: textPrice } = price.base;
  const outputPrice = unitPrice(vector, thoughtPrice !== undefined && thoughtPrice > textPrice ? "reasoningTokens" : "outputTokens");
  return (vector.request ?? 0n) + times(inputTokens, vector.inputTokens) + times(outputTokens, outputPrice);
}

/** What is known beforehand of how much a request uses. */
export interface ExpectedUse {
  inputTokens: number;
  maxOutputTokens: number | undefined;
  /** What may be added to the cap for thoughts; absent means nothing. */
  thoughtTokens?: number | undefined;
  /** How many answers it asks for. */
  choices: number;
}

/** The worst case in nano-USD that a request can reach on a route, at list price; 0 where no price is known. */
export const listCeiling = (candidate: Candidate, expected: ExpectedUse): bigint => nanoFromPico(worstCase(candidate, expected));

function worstCase({ model, route }: Candidate, expected: ExpectedUse): PicoUsd {
  const { price } = route;
  if (price === undefined || isFreeRoute(model, route)) return 0n;
  return dearestCharge(price, { inputTokens: expected.inputTokens, outputTokens: outputCap(route, expected) * expected.choices });
}

/** The most tokens of one answer. Messages upstreams count a budget for thoughts within the cap, which is raised by as much. */
function outputCap(route: UpstreamRoute, { maxOutputTokens = outputTokensDefault, thoughtTokens = 0 }: ExpectedUse): number {
  const raised = routeDialect(route, "chat") === "anthropic-messages" ? maxOutputTokens + thoughtTokens : maxOutputTokens;
  return Math.min(raised, route.maxCompletionTokens ?? raised);
}

const isPaid = (candidate: Candidate): boolean => !isFree(candidate);
const isOnOwnKey = ({ credential }: Candidate): boolean => credential?.source === "own_byok";

/** The dearest of those candidates that are counted; rounded once, which changes no order. */
function dearest(candidates: readonly Candidate[], expected: ExpectedUse, isCounted: (candidate: Candidate) => boolean): bigint {
  let ceiling = 0n;
  for (const candidate of candidates) {
    const charge = isCounted(candidate) ? worstCase(candidate, expected) : 0n;
    if (charge > ceiling) ceiling = charge;
  }
  return nanoFromPico(ceiling);
}

/** The worst case in nano-USD that a request can be charged on any of its candidates. */
export const holdCeiling = (candidates: readonly Candidate[], expected: ExpectedUse): bigint =>
  dearest(candidates, expected, isPaid);

/** The worst case in nano-USD, at list price, that the caller's own provider keys may be asked for. */
export const ownKeyCeiling = (candidates: readonly Candidate[], expected: ExpectedUse): bigint =>
  dearest(candidates, expected, isOnOwnKey);
