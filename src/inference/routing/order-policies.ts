import { type PlannedCandidate, namesProvider } from "./candidate.ts";
import type { HealthMoment } from "./health/health-windows.ts";
import type { ProviderFilter } from "./provider-preferences.ts";

/** The facts that order policies look at, beside the candidates. */
export interface OrderFacts {
  health: HealthMoment;
  /** Returns a uniform random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}

/**
 * Sorts candidates, at least one and cheapest first, into the order in which they are tried, and
 * notes the reasons. Pure except for the injected randomness.
 */
export type OrderPolicy = (
  candidates: PlannedCandidate[],
  filter: ProviderFilter,
  facts: OrderFacts,
) => void;

/** `order`: the named providers first, as named, and the rest behind them by price. */
const byOrder: OrderPolicy = (candidates, { order = [] }) => {
  for (const candidate of candidates) {
    const index = order.findIndex((name) => namesProvider(name, candidate.row));
    candidate.place = index < 0 ? "fallback" : "order";
    candidate.cost = index < 0 ? order.length : index;
  }
  sortByCost(candidates);
};

/**
 * Bits per weight for each quantization name. A route that does not declare one counts as the usual
 * 16.
 */
const precisions: Readonly<Record<string, number>> = {
  fp32: 32,
  bf16: 16,
  fp16: 16,
  fp8: 8,
  int8: 8,
  fp6: 6,
  int6: 6,
  fp4: 4,
  int4: 4,
  mxfp4: 4,
  nvfp4: 4,
  int3: 3,
  int2: 2,
};
const precisionUnknown = 16;

const precisionOf = ({ route: { quantization } }: PlannedCandidate): number =>
  quantization === undefined
    ? precisionUnknown
    : (precisions[quantization.toLowerCase()] ?? precisionUnknown);

/**
 * Returns the share of attempts that failed in the last five minutes; a present outage counts as
 * more than any share.
 */
function troubleOf({ model, row: { provider } }: PlannedCandidate, health: HealthMoment): number {
  if (health.isTroubled(provider, model.id)) return 2;
  const { failures, attempts } = health.errorRate(provider, model.id) ?? {
    failures: 0,
    attempts: 1,
  };
  return failures / attempts;
}

/**
 * Returns the value that a route is sorted by, lowest first. Routes without a measurement come
 * last.
 */
function costOf(
  candidate: PlannedCandidate,
  { sort }: ProviderFilter,
  health: HealthMoment,
): number {
  const {
    row: { provider },
    model,
    price,
  } = candidate;
  switch (sort) {
    case "latency":
      return health.measuresOf(provider, model.id).firstTokenMs(0.5) ?? Number.MAX_SAFE_INTEGER;
    case "throughput":
      return -(health.measuresOf(provider, model.id).tokensPerSecond(0.5) ?? 0);
    case "exacto":
      return -precisionOf(candidate);
    case "availability":
      return troubleOf(candidate, health);
    default:
      return price;
  }
}

/** `sort`: the best by one measure first. */
const bySort: OrderPolicy = (candidates, filter, { health }) => {
  const place = `sort ${filter.sort}`;
  for (const candidate of candidates) {
    candidate.place = place;
    candidate.cost = costOf(candidate, filter, health);
  }
  sortByCost(candidates);
};

const weightAt = (price: number, free: boolean): number =>
  free ? Number(price === 0) : 1 / (price * price);

/**
 * Draws an index with weights of the inverse square of price. Free routes, which come first, share
 * the draw among themselves.
 */
function drawByPrice(candidates: readonly PlannedCandidate[], random: () => number): number {
  if (candidates.length === 1) return 0;
  const free = candidates[0]?.price === 0;
  let total = 0;
  for (const { price } of candidates) total += weightAt(price, free);
  let mark = random() * total;
  for (let index = 0; index < candidates.length; index += 1) {
    mark -= weightAt((candidates[index] as PlannedCandidate).price, free);
    if (mark < 0) return index;
  }
  return 0;
}

/**
 * The default (rule 1): one candidate is drawn by the inverse square of price, and the others
 * follow by price.
 */
const byLoadBalance: OrderPolicy = (candidates, _, { random }) => {
  const index = drawByPrice(candidates, random);
  const drawn = candidates[index] as PlannedCandidate;
  candidates.copyWithin(1, 0, index);
  candidates[0] = drawn;
  for (const candidate of candidates) candidate.place = "fallback by price";
  drawn.place = "weighted by price";
};

/** Returns whether a request leaves the order to load balancing (rule 2). */
export const balancesLoad = (filter: ProviderFilter): boolean =>
  filter.order === undefined && filter.sort === undefined;

/** Returns the policy that a request's preferences call for. */
export function orderPolicyFor(filter: ProviderFilter): OrderPolicy {
  if (filter.order !== undefined) return byOrder;
  return filter.sort === undefined ? byLoadBalance : bySort;
}

/**
 * The longest list that is sorted by insertion. Beyond it the runtime's sort is faster, although it
 * copies the list and calls back for each comparison.
 */
const insertedMax = 64;

/**
 * Sorts in place by cost, lowest first and stable. Written by hand because a model has few routes
 * and planning sorts them for every request.
 */
export function sortByCost<T extends { readonly cost: number }>(all: T[]): void {
  if (all.length > insertedMax) {
    all.sort((left, right) => left.cost - right.cost);
    return;
  }
  for (let index = 1; index < all.length; index += 1) {
    const one = all[index] as T;
    const { cost } = one;
    let place = index;
    for (; place > 0 && (all[place - 1] as T).cost > cost; place -= 1)
      all[place] = all[place - 1] as T;
    all[place] = one;
  }
}
