import {
  effectivePrice,
  heldMedia,
  type MediaUse,
  type PriceRow,
} from "../../billing/ledger/price.ts";
import {
  isFreeRoute,
  dataPolicyOf,
  type CatalogModel,
  type UpstreamRoute,
} from "../catalog/model.ts";
import {
  type Candidate,
  type RoutingRequest,
  type PlannedCandidate,
  type LeftOut,
  namesProvider,
  supports,
} from "./candidate.ts";
import { barring, type HealthMoment, type BarringState } from "./health/health-windows.ts";
import type { ProviderFilter } from "./provider-preferences.ts";

/**
 * A hard rule: a route that fails it cannot serve. Pure. `applies` lets most requests skip most
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

/** Returns the pico-USD of one picture of a request at a price; undefined where it makes none. */
function picturePrice(price: PriceRow, { usage, picture }: MediaUse): bigint | undefined {
  const { outputImages: count = 0, outputImageTokens: tokens } = usage;
  if (count === 0) return undefined;
  const made = { outputImages: count, ...(tokens !== undefined && { outputImageTokens: tokens }) };
  const use = { usage: made, ...(picture !== undefined && { picture }) };
  return heldMedia(price, { vector: price.base, use }) / BigInt(count);
}

/**
 * Returns whether a route keeps the price bounds. They bound the price that the request would be
 * charged, in the tier of its input as far as that is known.
 */
const keepsPrice = (
  { route }: Candidate,
  { preferences, inputTokens, mediaAt }: RoutingRequest,
): boolean => {
  if (route.price === undefined) return false;
  const { maxImagePicoUsd, maxRequestPicoUsd } = preferences;
  if (maxRequestPicoUsd !== undefined && (route.price.base.request ?? 0n) > maxRequestPicoUsd)
    return false;
  if (maxImagePicoUsd !== undefined && mediaAt !== undefined) {
    const each = picturePrice(route.price, mediaAt(route));
    if (each !== undefined && each > maxImagePicoUsd) return false;
  }
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

/** Every hard rule, one per line, in the order in which exclusions are explained. */
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
    "order",
    (filter) => filter.onlyOrdered === true,
    ({ row }, { preferences }) =>
      preferences.order?.some((name) => namesProvider(name, row)) ?? true,
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
    (filter) =>
      filter.maxPromptPicoUsd !== undefined ||
      filter.maxCompletionPicoUsd !== undefined ||
      filter.maxImagePicoUsd !== undefined ||
      filter.maxRequestPicoUsd !== undefined,
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

/** The facts by which unhealthy providers are left out. */
interface Facts {
  health: HealthMoment;
  /**
   * Returns whether a caller's own key serves a route, so that the health of the platform's
   * requests does not apply to it.
   */
  hasOwnKey: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
}

/** The candidates that may be tried, given the states of their providers. */
interface Able {
  kept: PlannedCandidate[][];
  /** Set where no candidate is left because every budget is used up. */
  emptiedBy: "budget_exhausted" | undefined;
}

/**
 * Leaves out candidates whose providers the platform does not use at present. Budgets are set by
 * the operator and always apply. Exclusion and quarantine are guesses about a provider's health, so
 * they are ignored where they would leave no candidate.
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

/** Returns the state for which the platform does not use a candidate; undefined where it does. */
function stateOf(
  { row, route, model }: PlannedCandidate,
  { health, hasOwnKey }: Facts,
): BarringState | undefined {
  const state = barring(health.stateOf(row.provider));
  return state === undefined || hasOwnKey?.(route, model) === true ? undefined : state;
}

/** Decides which elements of a list are kept, and receives the others. */
export interface Sieve<T> {
  keeps: (one: T) => boolean;
  /** Called with each element that is not kept, in order. */
  drop: (one: T) => void;
}

/**
 * Returns the kept elements in order. The list itself is returned where all are kept, which is the
 * usual case.
 */
export function sift<T>(all: T[], { keeps, drop }: Sieve<T>): T[] {
  if (all.every((one) => keeps(one))) return all;
  return all.filter((one) => {
    const kept = keeps(one);
    if (!kept) drop(one);
    return kept;
  });
}

/** Sifts each of several lists, and removes those that become empty. */
export function siftEach<T>(lists: T[][], sieve: Sieve<T>): T[][] {
  return lists.map((list) => sift(list, sieve)).filter(({ length }) => length > 0);
}
