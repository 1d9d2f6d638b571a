import { namesProvider, type Candidate, type ProviderFilter } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";

/** What order policies may look at beside the candidates. */
export interface OrderFacts {
  health: HealthMoment;
  /** Uniform random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}

/**
 * Puts candidates, which come with the cheapest first, into the order in which they are tried, and writes down
 * why. Pure but for the injected randomness.
 */
export type OrderPolicy = (candidates: readonly Candidate[], filter: ProviderFilter, facts: OrderFacts) => Candidate[];

/** Sorts by a cost that is worked out once for each; equals stay as they are. */
function byCost(candidates: readonly Candidate[], costOf: (candidate: Candidate) => number): Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, cost: costOf(candidate) }))
    .sort((left, right) => left.cost - right.cost)
    .map(({ candidate }) => candidate);
}

/** `order`: the named providers first, as named; the rest behind them by price. */
const byOrder: OrderPolicy = (candidates, { order = [] }) => byCost(candidates, (candidate) => {
  const index = order.findIndex((name) => namesProvider(name, candidate.route));
  candidate.reason = index < 0 ? "fallback" : "order";
  return index < 0 ? order.length : index;
});

/** Bits of a weight by what providers call it; what a provider does not say counts as the usual 16. */
const precisions: Readonly<Record<string, number>> = {
  fp32: 32, bf16: 16, fp16: 16, fp8: 8, int8: 8, fp6: 6, int6: 6, fp4: 4, int4: 4, mxfp4: 4, nvfp4: 4, int3: 3, int2: 2,
};
const precisionUnknown = 16;

const precisionOf = ({ route: { quantization } }: Candidate): number =>
  quantization === undefined ? precisionUnknown : precisions[quantization.toLowerCase()] ?? precisionUnknown;

/** The share of attempts that failed in the last five minutes; trouble of this moment counts for more than any. */
function troubleOf({ model, route }: Candidate, health: HealthMoment): number {
  if (health.hasOutage(route.provider.id, model.id) || health.stateOf(route.provider.id) !== undefined) return 2;
  const { failures, attempts } = health.errorRate(route.provider.id, model.id) ?? { failures: 0, attempts: 1 };
  return failures / attempts;
}

/** `sort`: what is best by one measure first; routes without a measurement come last. */
const bySort: OrderPolicy = (candidates, { sort }, { health }) => {
  const measures = ({ model, route }: Candidate) => health.measuresOf(route.provider.id, model.id);
  const costOf = (candidate: Candidate): number => {
    switch (sort) {
      case "latency": return measures(candidate).firstTokenMs(0.5) ?? Number.MAX_SAFE_INTEGER;
      case "throughput": return -(measures(candidate).tokensPerSecond(0.5) ?? 0);
      case "exacto": return -precisionOf(candidate);
      case "availability": return troubleOf(candidate, health);
      default: return candidate.price;
    }
  };
  const reason = `sort ${sort}`;
  for (const candidate of candidates) candidate.reason = reason;
  return byCost(candidates, costOf);
};

const weightAt = (price: number, free: boolean): number => (free ? Number(price === 0) : 1 / (price * price));

/** The index drawn with weights of the inverse square of price; free routes, which come first, share the draw among themselves. */
function drawByPrice(candidates: readonly Candidate[], random: () => number): number {
  if (candidates.length === 1) return 0;
  const free = candidates[0]?.price === 0;
  let total = 0;
  for (const { price } of candidates) total += weightAt(price, free);
  let mark = random() * total;
  for (let index = 0; index < candidates.length; index += 1) {
    mark -= weightAt((candidates[index] as Candidate).price, free);
    if (mark < 0) return index;
  }
  return 0;
}

/** The default (rule 1): one is drawn by the inverse square of price, the others follow by price. */
const byLoadBalance: OrderPolicy = (candidates, _, { random }) => {
  const drawn = candidates[drawByPrice(candidates, random)];
  if (drawn === undefined) return [];
  const ordered = [drawn];
  for (const candidate of candidates) {
    if (candidate === drawn) continue;
    candidate.reason = "fallback by price";
    ordered.push(candidate);
  }
  drawn.reason = "weighted by price";
  return ordered;
};

/** Whether a request leaves the order to load balancing (rule 2). */
export const balancesLoad = (filter: ProviderFilter): boolean => filter.order === undefined && filter.sort === undefined;

/** The policy that a request's preferences call for. */
export function orderPolicyFor(filter: ProviderFilter): OrderPolicy {
  if (filter.order !== undefined) return byOrder;
  return filter.sort === undefined ? byLoadBalance : bySort;
}
