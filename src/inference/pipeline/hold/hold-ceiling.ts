import type { TightHold } from "../../../billing/ledger/hold-rule.ts";
import {
  heldMedia,
  type MediaUse,
  effectivePrice,
  unitPrice,
  type PriceRow,
  type PriceVector,
} from "../../../billing/ledger/price.ts";
import { highest, priceAt, toolPrice } from "../../../billing/ledger/price-levels.ts";
import {
  nanoFromPico,
  picoUsdPerNanoUsd,
  type NanoUsd,
  type PicoUsd,
} from "../../../platform/kernel/money.ts";
import type { UsagePart } from "../../../platform/kernel/usage.ts";
import { isFreeRoute, routeDialect, type UpstreamRoute } from "../../catalog/model.ts";
import type { UpstreamDialect } from "../../dialects/dialect.ts";
import {
  extrasOf,
  mostCalls,
  type SentExtras,
} from "../../dialects/shared/extras/charged-extras.ts";
import { leastCapOf } from "../../dialects/shared/output-cap.ts";
import { upstreamDialects } from "../../dialects/index.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { Execution } from "../execution.ts";

/** Output tokens that a hold starts with where the worst case is too expensive to be held whole. */
const beginTokens = 4_096;
/** The fewest output tokens for which a request is worth its input; with fewer it is refused. */
const answerTokensMin = 16;
/**
 * The smallest reasoning budget (Anthropic's), and so the smallest output cap that leaves room for
 * one.
 */
const thoughtBudgetMin = 1_024;
/** The context window, in tokens, that is assumed where the catalog names none. */
const windowTokensDefault = 131_072;

/**
 * Returns whether a candidate costs the caller no credits: the model is free, or a provider key
 * pays.
 */
export const isFree = ({ model, route, credential }: Candidate): boolean =>
  credential !== undefined || isFreeRoute(model, route);

/** The usage that is known in advance of a request. */
export interface ExpectedUse {
  inputTokens: number;
  /** The output cap that the client set; undefined where it set none. */
  maxOutputTokens: number | undefined;
  /** Reasoning tokens that may be added to the cap; absent means none. */
  thoughtTokens?: number | undefined;
  /** The number of answers that it asks for. */
  choices: number;
  /**
   * Returns whether a rarely used part of the usage may occur; absent means that none of those do.
   */
  mayUse?: ((part: UsagePart) => boolean) | undefined;
  /**
   * Whether the answer must not be shortened: its length follows from the request, or its caller
   * does not want it cut.
   */
  isUncut?: boolean | undefined;
  /** The reasoning budget, in tokens, that the caller allows. */
  thoughtBudget?: number | undefined;
  /**
   * Returns what a route is sent that its provider charges beside tokens at the ordinary price;
   * absent where nothing is.
   */
  extrasAt?: ((route: UpstreamRoute) => SentExtras | undefined) | undefined;
  /** Returns the pictures and sound of a request at a route; absent on surfaces without them. */
  mediaAt?: ((route: UpstreamRoute) => MediaUse) | undefined;
}

/**
 * A request's cost at a candidate, in pico-USD: before the first output token, and for each one.
 */
interface UnitCosts {
  fixed: PicoUsd;
  perToken: PicoUsd;
}

const noCosts: UnitCosts = { fixed: 0n, perToken: 0n };

const rareInputParts = [
  "cacheWriteTokens",
  "cacheWriteOneHourTokens",
  "inputAudioTokens",
  "inputImageTokens",
  "cacheReadAudioTokens",
  "cacheReadImageTokens",
] as const;
const rareOutputParts = ["outputAudioTokens", "outputImageTokens"] as const;

/**
 * Returns the highest token price of one side, input or output. Parts without a price of their own
 * cost what the others do.
 */
function highestPrice(
  vector: PriceVector,
  { part, rare, expected }: { part: UsagePart; rare: readonly UsagePart[]; expected: ExpectedUse },
): PicoUsd {
  let highest = unitPrice(vector, part);
  for (const each of rare) {
    const price = vector[each];
    if (price !== undefined && price > highest && expected.mayUse?.(each) === true) highest = price;
  }
  return highest;
}

/**
 * Returns the unit costs of a request. Output tokens that may turn out to be reasoning are priced
 * at the higher of the two prices.
 */
function unitCosts({ model, route }: Candidate, expected: ExpectedUse): UnitCosts {
  const { price } = route;
  if (price === undefined || isFreeRoute(model, route)) return noCosts;
  const extras = expected.extrasAt?.(route);
  const vector = heldVector(price, { extras, inputTokens: expected.inputTokens });
  const textPrice = highestPrice(vector, { part: "outputTokens", rare: rareOutputParts, expected });
  const thoughtPrice = vector.reasoningTokens ?? 0n;
  const use = expected.mediaAt?.(route);
  const inputPrice = highestPrice(vector, { part: "inputTokens", rare: rareInputParts, expected });
  return {
    fixed:
      (vector.request ?? 0n) +
      BigInt(expected.inputTokens) * inputPrice +
      (extras === undefined ? 0n : callsPrice(price, extras)) +
      (use === undefined ? 0n : heldMedia(price, { vector, use })),
    perToken: (thoughtPrice > textPrice ? thoughtPrice : textPrice) * BigInt(expected.choices),
  };
}

/** Returns the prices of a request that is held: the highest of those that it allows. */
function heldVector(
  price: PriceRow,
  { extras, inputTokens }: { extras: SentExtras | undefined; inputTokens: number },
): PriceVector {
  const vector = effectivePrice(price, inputTokens);
  if (extras === undefined) return vector;
  const asked = priceAt(price, extras.levels);
  return asked === undefined || asked === price
    ? vector
    : highest(vector, effectivePrice(asked, inputTokens));
}

/** Returns the price of all searches and tool calls that a request may make. */
function callsPrice(price: PriceRow, extras: SentExtras): PicoUsd {
  const { searches, toolCalls } = mostCalls(extras);
  const searched = price.searchesOnce === true ? Math.min(searches, 1) : searches;
  return (
    BigInt(searched) * (price.base.searches ?? 0n) +
    BigInt(toolCalls) * (toolPrice(price, extrasOf(extras).tools) ?? 0n)
  );
}

/** Returns the upstream dialect of a chat route; undefined where the route serves no chat. */
const chatDialectOf = ({ route }: Candidate): UpstreamDialect | undefined =>
  dialectsById[routeDialect(route, "chat") ?? ""];

const dialectsById: Readonly<Record<string, UpstreamDialect | undefined>> = upstreamDialects;

/** Returns the most tokens of one answer: the client's cap, or else the model's maximum. */
export function outputCap(
  candidate: Candidate,
  { maxOutputTokens, thoughtTokens = 0, inputTokens }: ExpectedUse,
): number {
  const { model, route } = candidate;
  const { maxCompletionTokens: largest } = route;
  const { leastTokens: least = leastCapOf(route), statedTokens } =
    chatDialectOf(candidate)?.capRule ?? {};
  if (statedTokens !== undefined) {
    const wanted = maxOutputTokens ?? (largest ?? statedTokens) + thoughtTokens;
    return Math.min(wanted, largest ?? wanted);
  }
  if (maxOutputTokens !== undefined) {
    const wanted = Math.max(maxOutputTokens, least);
    return Math.min(wanted, largest ?? wanted);
  }
  const windowTokens = route.contextLength || model.contextLength || windowTokensDefault;
  return largest ?? Math.max(beginTokens, windowTokens - inputTokens);
}

/** Returns the price of the input and of `tokens` tokens of each answer. */
const costOf = ({ fixed, perToken }: UnitCosts, tokens: number): PicoUsd =>
  fixed + BigInt(tokens) * perToken;

/** Converts to nano-USD, rounded up, so that an amount equal to the price is always enough. */
const nanoUp = (pico: PicoUsd): NanoUsd => (pico + picoUsdPerNanoUsd - 1n) / picoUsdPerNanoUsd;

const worstCase = (candidate: Candidate, expected: ExpectedUse): PicoUsd =>
  costOf(unitCosts(candidate, expected), outputCap(candidate, expected));

/**
 * Returns the worst case of a request on a route, in nano-USD at list price; 0 where no price is
 * known.
 */
export const listCeiling = (candidate: Candidate, expected: ExpectedUse): NanoUsd =>
  nanoFromPico(worstCase(candidate, expected));

/** Selects the candidates that a hold counts. */
export type Counts = (candidate: Candidate) => boolean;

/** Selects the candidates that cost credits. */
export const isPaid: Counts = (candidate) => !isFree(candidate);
/** Selects the candidates that the caller's own provider key pays for. */
export const isOnOwnKey: Counts = ({ credential }) => credential?.source === "own_byok";

/** Returns the worst case, in nano-USD, of the most expensive of the counted candidates. */
export function holdCeiling(
  candidates: readonly Candidate[],
  expected: ExpectedUse,
  counts: Counts = isPaid,
): NanoUsd {
  let ceiling = 0n;
  for (const candidate of candidates) {
    const charge = counts(candidate) ? worstCase(candidate, expected) : 0n;
    if (charge > ceiling) ceiling = charge;
  }
  return ceiling === 0n ? ceiling : nanoUp(ceiling);
}

/**
 * Returns the fewest tokens that a candidate's answer may be capped at. Where the cap includes a
 * reasoning budget, it leaves room for the smallest one.
 */
function leastTokens(candidate: Candidate, expected: ExpectedUse): number {
  const { isUncut, thoughtBudget } = expected;
  const cap = outputCap(candidate, expected);
  if (isUncut) return cap;
  return Math.min(
    cap,
    thoughtBudget !== undefined && sendsBudget(candidate) ? thoughtBudgetMin + 1 : answerTokensMin,
  );
}

/** Returns whether reasoning is bounded by a budget that counts against the cap. */
const sendsBudget = (candidate: Candidate): boolean =>
  chatDialectOf(candidate)?.thinkingBudget === true;

/**
 * Returns the hold for a request whose worst case is too expensive to be held whole: enough to
 * begin at the most expensive candidate, and at least the minimum of the cheapest.
 */
export function tightHold(
  candidates: readonly Candidate[],
  { expected, grows, counts = isPaid }: { expected: ExpectedUse; grows: boolean; counts?: Counts },
): TightHold {
  let [begin, least] = [0n, -1n];
  for (const candidate of candidates) {
    if (!counts(candidate)) continue;
    const costs = unitCosts(candidate, expected);
    const cap = outputCap(candidate, expected);
    const begun = costOf(costs, expected.isUncut ? cap : Math.min(cap, beginTokens));
    const fewest = costOf(costs, leastTokens(candidate, expected));
    if (begun > begin) begin = begun;
    if (least < 0n || fewest < least) least = fewest;
  }
  return {
    beginNano: nanoUp(begin),
    leastNano: nanoUp(least < 0n ? 0n : least),
    takesShare: !grows,
  };
}

/**
 * Owners whose models show their reasoning in full, wherever they are served in a dialect with a
 * field for it.
 */
const openThinkers: ReadonlySet<string> = new Set([
  "deepseek",
  "qwen",
  "moonshotai",
  "z-ai",
  "zai",
  "minimax",
  "mistralai",
  "meta-llama",
  "nvidia",
  "sandbox",
]);

/**
 * Returns whether a candidate's stream may cost more than its visible text shows: the model
 * reasons, and the reasoning is counted but hidden or summarised.
 */
export function hidesThoughts(
  candidate: Candidate,
  { thinks }: { thinks?: boolean | undefined },
): boolean {
  if (thinks === false) return false;
  const { model, route } = candidate;
  const dialect = chatDialectOf(candidate);
  if (dialect?.thinksWhenAsked === true) return thinks === true;
  if (dialect?.showsOpenThoughts === true && openThinkers.has(model.owner)) return false;
  return (
    thinks === true ||
    route.reasoningFeature === true ||
    (route.reasoning ?? model.reasoning) !== undefined
  );
}

/** The length of a candidate's answer that an amount can pay for. */
export interface Afforded {
  /** The most tokens that each answer may have. */
  askedTokens: number;
  /**
   * The number of tokens that the amount pays for; below 0 where it does not even pay for the
   * input.
   */
  tokens: number;
  /** Whether the answer would be shorter than is allowed. */
  isTooFew: boolean;
}

/** Computes how long a candidate's answer an amount can pay for. */
export function affordedBy(
  amountNano: NanoUsd,
  candidate: Candidate,
  expected: ExpectedUse,
): Afforded {
  const costs = unitCosts(candidate, expected);
  const askedTokens = outputCap(candidate, expected);
  if (costOf(costs, askedTokens) <= amountNano * picoUsdPerNanoUsd)
    return { askedTokens, tokens: askedTokens, isTooFew: false };
  const left = amountNano * picoUsdPerNanoUsd - costs.fixed;
  const tokens =
    left < 0n ? -1 : costs.perToken === 0n ? askedTokens : Number(left / costs.perToken);
  return { askedTokens, tokens, isTooFew: tokens < leastTokens(candidate, expected) };
}

/** Returns the price, in nano-USD, of this many output tokens over all answers together. */
export function costOfTokens(tokens: number, candidate: Candidate, expected: ExpectedUse): NanoUsd {
  const { fixed, perToken } = unitCosts(candidate, { ...expected, choices: 1 });
  return nanoUp(fixed + BigInt(tokens) * perToken);
}

/**
 * Returns what a request may use of its candidates. A caller who requires all parameters is not
 * given a shorter answer than requested.
 */
export function expectedUse({
  call: { requirements },
  inputTokens,
  losesNothing,
}: Pick<Execution, "call" | "inputTokens" | "losesNothing">): ExpectedUse {
  const { maxOutputTokens, thoughtTokens, thoughtBudget, choices } = requirements;
  return {
    inputTokens,
    maxOutputTokens,
    thoughtTokens,
    thoughtBudget,
    choices,
    isUncut: requirements.isUncut === true || (losesNothing && maxOutputTokens !== undefined),
    mayUse: requirements.mayUse && ((part) => requirements.mayUse?.(part) === true),
    extrasAt: requirements.extrasAt && ((route) => requirements.extrasAt?.(route)),
    mediaAt: requirements.mediaAt,
  };
}
