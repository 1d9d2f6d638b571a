import { effectivePrice } from "../../billing/ledger/price.ts";
import {
  isFreeRoute,
  dataPolicyOf,
  type CatalogModel,
  type UpstreamRoute,
} from "../catalog/model.ts";
import {
  type Candidate,
  type ProviderFilter,
  type RoutingRequest,
  type PlannedCandidate,
  type LeftOut,
  namesProvider,
  supports,
} from "./candidate.ts";
import { barring, type HealthMoment, type BarringState } from "./health-windows.ts";

/**
 * A hard rule: routes that fail it cannot serve. Pure; `applies` lets most requests skip most
 * rules.
 */
export interface RouteRule {
  name: string;
  applies(filter: ProviderFilter, request: RoutingRequest): boolean;
  keeps(candidate: PlannedCandidate, request: RoutingRequest): boolean;
}

const rule = (
  name: string,
  applies: RouteRule["applies"],
  keeps: RouteRule["keeps"],
): RouteRule => ({ name, applies, keeps });

/**
 * Bounds are on the price that the request would be charged: the tier of its input counts, as far
 * as it is known.
 */
const keepsPrice = (
  { route }: Candidate,
  { preferences, inputTokens }: RoutingRequest,
): boolean => {
  if (route.price === undefined) return false;
  const { inputTokens: prompt, outputTokens: completion } = effectivePrice(
    route.price,
    inputTokens ?? 0,
  );
  const { maxPromptPicoUsd, maxCompletionPicoUsd } = preferences;
  return (
    (maxPromptPicoUsd === undefined || prompt <= maxPromptPicoUsd) &&
    (maxCompletionPicoUsd === undefined || completion <= maxCompletionPicoUsd)
  );
};

/** Every hard rule, a line each; their order is the order of the explanation. */
export const routeRules: readonly RouteRule[] = [
  rule(
    "allowed_models",
    (_, { allowedModels }) => Array.isArray(allowedModels),
    ({ model }, { allowedModels }) => allowedModels?.includes(model.id.toLowerCase()) ?? true,
  ),
  rule(
    "free members only",
    (_, { models }) => models.some(({ router }) => router?.name === "free"),
    ({ model, route, router }) => router?.router?.name !== "free" || isFreeRoute(model, route),
  ),
  rule(
    "only",
    (filter) => filter.only !== undefined,
    ({ row }, { preferences }) =>
      preferences.only?.some((name) => namesProvider(name, row)) ?? true,
  ),
  rule(
    "ignore",
    (filter) => filter.ignore !== undefined,
    ({ row }, { preferences }) => !preferences.ignore?.some((name) => namesProvider(name, row)),
  ),
  rule(
    "blocked_providers",
    (filter) => filter.blocked !== undefined,
    ({ row }, { preferences }) => !preferences.blocked?.includes(row.provider.id),
  ),
  rule(
    "max_price",
    (filter) => filter.maxPromptPicoUsd !== undefined || filter.maxCompletionPicoUsd !== undefined,
    keepsPrice,
  ),
  rule(
    "quantizations",
    (filter) => filter.quantizations !== undefined,
    ({ route }, { preferences }) =>
      preferences.quantizations?.includes(route.quantization?.toLowerCase() ?? "unknown") ?? true,
  ),
  rule(
    "zdr",
    (filter) => filter.zdr === true,
    ({ route }) => dataPolicyOf(route).zdr === true,
  ),
  rule(
    "data_collection",
    (filter) => filter.denyDataCollection === true,
    ({ route }) => {
      const { dataCollection, zdr } = dataPolicyOf(route);
      return dataCollection === "deny" || zdr === true;
    },
  ),
  rule(
    "enforce_distillable_text",
    (filter) => filter.distillableText === true,
    ({ route }) => dataPolicyOf(route).distillableText === true,
  ),
  rule(
    "min_context",
    (filter) => filter.minContext !== undefined,
    ({ model, route }, { preferences }) =>
      (route.contextLength ?? model.contextLength) >= (preferences.minContext ?? 0),
  ),
  rule(
    "require_parameters",
    (filter, { parameters }) => filter.requireParameters === true && parameters.length > 0,
    (candidate, { parameters }) => parameters.every((parameter) => supports(candidate, parameter)),
  ),
  rule(
    "require_params",
    (filter) => filter.requireParams !== undefined,
    (candidate, { preferences }) =>
      preferences.requireParams?.every((parameter) => supports(candidate, parameter)) ?? true,
  ),
  rule(
    "tools",
    (_, { needsTools }) => needsTools,
    ({ row }) => row.takesTools,
  ),
  rule(
    "max_tokens",
    (_, { maxOutputTokens }) => maxOutputTokens !== undefined,
    ({ route }, { maxOutputTokens }) =>
      route.maxCompletionTokens === undefined ||
      (maxOutputTokens ?? 0) <= route.maxCompletionTokens,
  ),
];

/** What leaving out looks at. */
interface Facts {
  health: HealthMoment;
  /**
   * Whether a caller's own key serves a route; what the platform's requests met says nothing of it.
   */
  hasOwnKey: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
}

/** Who may be asked, by the states of providers. */
interface Able {
  kept: PlannedCandidate[][];
  /** No candidate is left, since every budget is spent. */
  emptiedBy: "budget_exhausted" | undefined;
}

/**
 * Leaves out whom the platform does not ask at present. Budgets are the operator's word and hold;
 * exclusion and quarantine are guesses at a provider's health, so where they would leave no
 * candidate,
 * all of them are asked all the same.
 */
export function leaveOutUnwell(
  members: PlannedCandidate[][],
  { facts, leftOut }: { facts: Facts; leftOut: LeftOut[] },
): Able {
  const unwell = countUnwell(members, facts);
  return unwell === 0
    ? { kept: members, emptiedBy: undefined }
    : leaveOut(members, { unwell, facts, leftOut });
}

function leaveOut(
  members: PlannedCandidate[][],
  { unwell, facts, leftOut }: { unwell: number; facts: Facts; leftOut: LeftOut[] },
): Able {
  const nobodyElse = unwell === members.reduce((sum, { length }) => sum + length, 0);
  const kept = siftEach(members, {
    keeps: (candidate) => {
      const state = stateOf(candidate, facts);
      return state === undefined || (nobodyElse && state !== "budget_exhausted");
    },
    drop: (candidate) => {
      const rule = stateOf(candidate, facts) as BarringState;
      leftOut.push({ provider: candidate.row.provider.id, model: candidate.model.id, rule });
    },
  });
  if (nobodyElse) {
    for (const candidate of kept.flat())
      candidate.note = `${stateOf(candidate, facts)}, but no other is left`;
  }
  return { kept, emptiedBy: kept.length === 0 ? "budget_exhausted" : undefined };
}

function countUnwell(members: readonly PlannedCandidate[][], facts: Facts): number {
  let count = 0;
  for (const member of members) {
    for (const candidate of member) if (stateOf(candidate, facts) !== undefined) count += 1;
  }
  return count;
}

/** Why the platform does not ask a candidate; undefined where it does. */
function stateOf(
  { row, route, model }: PlannedCandidate,
  { health, hasOwnKey }: Facts,
): BarringState | undefined {
  const state = barring(health.stateOf(row.provider));
  return state === undefined || hasOwnKey?.(route, model) === true ? undefined : state;
}

/** What happens to each of a list. */
export interface Sieve<T> {
  keeps: (one: T) => boolean;
  /** Told of each that is not kept, in order. */
  drop: (one: T) => void;
}

/**
 * Those of a list that are kept, in order: the list itself where that is all of them, as it mostly
 * is.
 */
export function sift<T>(all: T[], { keeps, drop }: Sieve<T>): T[] {
  if (all.every((one) => keeps(one))) return all;
  return all.filter((one) => {
    const kept = keeps(one);
    if (!kept) drop(one);
    return kept;
  });
}

/** Sifts each of several lists; those that have nothing left are gone. */
export function siftEach<T>(lists: T[][], sieve: Sieve<T>): T[][] {
  return lists.map((list) => sift(list, sieve)).filter(({ length }) => length > 0);
}
