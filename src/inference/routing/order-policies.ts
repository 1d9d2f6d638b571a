import { comparablePrice, namesProvider, type Candidate, type ProviderFilter } from "./candidate.ts";
import type { HealthWindows } from "./health-windows.ts";

/** What order policies may look at beside the candidates. */
export interface OrderFacts {
  health: HealthWindows;
  /** Uniform random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}

/** Puts candidates into the order in which they are tried. Pure but for the injected randomness. */
export type OrderPolicy = (candidates: readonly Candidate[], filter: ProviderFilter, facts: OrderFacts) => Candidate[];

const because = (candidate: Candidate, reason: string): Candidate => ({ ...candidate, reason });

/** `order`: the named providers first, as named; the rest behind them by price. */
const byOrder: OrderPolicy = (candidates, filter) => {
  const rank = ({ route }: Candidate): number => {
    const index = filter.order?.findIndex((name) => namesProvider(name, route)) ?? -1;
    return index < 0 ? Number.MAX_SAFE_INTEGER : index;
  };
  return candidates
    .map((candidate) => ({ candidate: because(candidate, rank(candidate) === Number.MAX_SAFE_INTEGER ? "fallback" : "order"), rank: rank(candidate) }))
    .sort((a, b) => a.rank - b.rank || comparablePrice(a.candidate.route) - comparablePrice(b.candidate.route))
    .map(({ candidate }) => candidate);
};

const precision: Record<string, number> = { fp32: 32, bf16: 16, fp16: 16, fp8: 8, int8: 8, fp6: 6, fp4: 4, int4: 4 };

/** `sort`: what is best by one measure first; routes without a measurement come last. */
const bySort: OrderPolicy = (candidates, { sort }, { health }) => {
  const cost = ({ route }: Candidate): number => {
    switch (sort) {
      case "latency": return health.medianFirstTokenMs(route.provider.id) ?? Number.MAX_SAFE_INTEGER;
      case "throughput": return -(health.medianTokensPerSecond(route.provider.id) ?? 0);
      case "exacto": return -(precision[route.quantization ?? ""] ?? 16);
      default: return comparablePrice(route);
    }
  };
  return candidates
    .map((candidate) => ({ candidate: because(candidate, `sort ${sort}`), cost: cost(candidate) }))
    .sort((a, b) => a.cost - b.cost || comparablePrice(a.candidate.route) - comparablePrice(b.candidate.route))
    .map(({ candidate }) => candidate);
};

/** The index drawn with weights of the inverse square of price; free routes share the draw among themselves. */
function drawByPrice(candidates: readonly Candidate[], random: () => number): number {
  const prices = candidates.map(({ route }) => comparablePrice(route));
  const free = prices.some((price) => price === 0);
  const weights = prices.map((price) => (free ? Number(price === 0) : Number.isFinite(price) ? 1 / price ** 2 : 0));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let mark = random() * total;
  for (const [index, weight] of weights.entries()) {
    mark -= weight;
    if (mark < 0) return index;
  }
  return 0;
}

/**
 * The default (rule 1): providers without an outage are primary, one of them is drawn by the inverse
 * square of price, the others follow by price, those with an outage come last.
 */
const byLoadBalance: OrderPolicy = (candidates, _, { health, random }) => {
  const byPrice = [...candidates].sort((a, b) => comparablePrice(a.route) - comparablePrice(b.route));
  const primary = byPrice.filter(({ route }) => !health.hasOutage(route.provider.id));
  const troubled = byPrice.filter(({ route }) => health.hasOutage(route.provider.id));
  const drawn = primary.length > 0 ? primary.splice(drawByPrice(primary, random), 1) : [];
  return [
    ...drawn.map((candidate) => because(candidate, "weighted by price")),
    ...primary.map((candidate) => because(candidate, "fallback by price")),
    ...troubled.map((candidate) => because(candidate, "outage in the last 30 seconds")),
  ];
};

/** The policy that a request's preferences call for. */
export function orderPolicyFor(filter: ProviderFilter): OrderPolicy {
  if (filter.order !== undefined) return byOrder;
  return filter.sort === undefined ? byLoadBalance : bySort;
}
