import type { TightHold } from "../../../billing/ledger/hold-rule.ts";
import { effectivePrice, unitPrice, type PriceVector } from "../../../billing/ledger/price.ts";
import {
  nanoFromPico,
  picoUsdPerNanoUsd,
  type NanoUsd,
  type PicoUsd,
} from "../../../platform/kernel/money.ts";
import type { UsagePart } from "../../../platform/kernel/usage.ts";
import { isFreeRoute, routeDialect } from "../../catalog/model.ts";
import type { UpstreamDialect } from "../../dialects/dialect.ts";
import { upstreamDialects } from "../../dialects/index.ts";
import type { Candidate } from "../../routing/candidate.ts";

/** Output tokens that a hold begins with where its worst case is too dear to be held whole. */
const beginTokens = 4_096;
/** An answer of fewer tokens than this is not worth its input: the request is refused. */
const answerTokensMin = 16;
/** The least budget for thoughts (Anthropic's), and so the least that a cap above one can be. */
const thoughtBudgetMin = 1_024;
/** The window that is assumed of a model where the catalog names none. */
const windowTokensDefault = 131_072;

/** Whether a candidate costs the caller no credits: the model is free, or a provider key pays. */
export const isFree = ({ model, route, credential }: Candidate): boolean =>
  credential !== undefined || isFreeRoute(model, route);

/** What is known beforehand of how much a request uses. */
export interface ExpectedUse {
  inputTokens: number;
  /** The cap that the client set; undefined where it set none. */
  maxOutputTokens: number | undefined;
  /** What may be added to the cap for thoughts; absent means nothing. */
  thoughtTokens?: number | undefined;
  /** How many answers it asks for. */
  choices: number;
  /** Whether tokens of a part may be used that few requests use; absent means that none are. */
  mayUse?(part: UsagePart): boolean;
  /**
   * The answer's length follows from the request and cannot be lowered, or its caller does not want
   * it to be.
   */
  isUncut?: boolean | undefined;
  /** Tokens that the caller allows the model to think with. */
  thoughtBudget?: number | undefined;
}

/**
 * What a request costs at a candidate, in pico-USD: before its first token of output, and for each
 * of its tokens.
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
] as const;
const rareOutputParts = ["outputAudioTokens", "outputImageTokens"] as const;

/**
 * The dearest price of tokens of one side; parts without a price of their own cost what the others
 * do.
 */
function dearestPrice(
  vector: PriceVector,
  { part, rare, expected }: { part: UsagePart; rare: readonly UsagePart[]; expected: ExpectedUse },
): PicoUsd {
  let dearest = unitPrice(vector, part);
  for (const each of rare) {
    const price = vector[each];
    if (price !== undefined && price > dearest && expected.mayUse?.(each) === true) dearest = price;
  }
  return dearest;
}

/** Output tokens that may turn out to be thoughts are held at whichever price is higher. */
function unitCosts({ model, route }: Candidate, expected: ExpectedUse): UnitCosts {
  const { price } = route;
  if (price === undefined || isFreeRoute(model, route)) return noCosts;
  const vector = effectivePrice(price, expected.inputTokens);
  const textPrice = dearestPrice(vector, { part: "outputTokens", rare: rareOutputParts, expected });
  const thoughtPrice = vector.reasoningTokens ?? 0n;
  const inputPrice = dearestPrice(vector, { part: "inputTokens", rare: rareInputParts, expected });
  return {
    fixed: (vector.request ?? 0n) + BigInt(expected.inputTokens) * inputPrice,
    perToken: (thoughtPrice > textPrice ? thoughtPrice : textPrice) * BigInt(expected.choices),
  };
}

/** What the dialect of a chat route declares; undefined where the route serves no chat. */
const chatDialectOf = ({ route }: Candidate): UpstreamDialect | undefined =>
  dialectsById[routeDialect(route, "chat") ?? ""];

const dialectsById: Readonly<Record<string, UpstreamDialect | undefined>> = upstreamDialects;

/** The most tokens of one answer: the client's cap, else the model's largest. */
function outputCap(
  candidate: Candidate,
  { maxOutputTokens, thoughtTokens = 0, inputTokens }: ExpectedUse,
): number {
  const { model, route } = candidate;
  const { maxCompletionTokens: largest } = route;
  const { leastTokens: least = 0, statedTokens } = chatDialectOf(candidate)?.capRule ?? {};
  if (statedTokens !== undefined) {
    const raised = (maxOutputTokens ?? largest ?? statedTokens) + thoughtTokens;
    return Math.min(raised, largest ?? raised);
  }
  if (maxOutputTokens !== undefined) {
    const wanted = Math.max(maxOutputTokens, least);
    return Math.min(wanted, largest ?? wanted);
  }
  const windowTokens = route.contextLength || model.contextLength || windowTokensDefault;
  return largest ?? Math.max(beginTokens, windowTokens - inputTokens);
}

/** The price of the input and so many tokens of each answer. */
const costOf = ({ fixed, perToken }: UnitCosts, tokens: number): PicoUsd =>
  fixed + BigInt(tokens) * perToken;

/** Rounded up, so that what costs as much can be afforded with it. */
const nanoUp = (pico: PicoUsd): NanoUsd => (pico + picoUsdPerNanoUsd - 1n) / picoUsdPerNanoUsd;

const worstCase = (candidate: Candidate, expected: ExpectedUse): PicoUsd =>
  costOf(unitCosts(candidate, expected), outputCap(candidate, expected));

/**
 * The worst case in nano-USD that a request can reach on a route, at list price; 0 where no price
 * is known.
 */
export const listCeiling = (candidate: Candidate, expected: ExpectedUse): NanoUsd =>
  nanoFromPico(worstCase(candidate, expected));

/** Tells which candidates a hold counts. */
export type Counts = (candidate: Candidate) => boolean;

/** Those that cost credits. */
export const isPaid: Counts = (candidate) => !isFree(candidate);
/** Those that the caller's own provider key pays. */
export const isOnOwnKey: Counts = ({ credential }) => credential?.source === "own_byok";

/** The worst case in nano-USD of the dearest of those candidates that are counted. */
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
  return nanoUp(ceiling);
}

/**
 * The fewest tokens that an answer of a candidate may be lowered to. A cap on a budget for thoughts
 * leaves one of the least size.
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

/** Whether thoughts are bounded by a budget that counts against the cap. */
const sendsBudget = (candidate: Candidate): boolean =>
  chatDialectOf(candidate)?.thinkingBudget === true;

/**
 * What is held where the worst case is too dear to be held whole: begun for the dearest candidate,
 * refused below the cheapest's least.
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
 * Owners whose models show their thoughts as they think them, wherever they are served in a dialect
 * that has a field for them.
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
 * Whether a stream of the candidate's may cost more than what is seen of it tells: its model
 * thinks, and the thoughts are counted but not shown, or shown as summaries.
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

/** What an amount affords of a candidate's answer. */
export interface Afforded {
  /** The most tokens that each answer may have. */
  askedTokens: number;
  /** How many of them the amount pays; below 0 where it does not even pay the input. */
  tokens: number;
  /** Whether the answer would become shorter than it may be. */
  isTooFew: boolean;
}

/** How much of a candidate's answer an amount affords. */
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

/** The price in nano-USD of so many tokens of output, those of all answers together. */
export function costOfTokens(tokens: number, candidate: Candidate, expected: ExpectedUse): NanoUsd {
  const { fixed, perToken } = unitCosts(candidate, { ...expected, choices: 1 });
  return nanoUp(fixed + BigInt(tokens) * perToken);
}
