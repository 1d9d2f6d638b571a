import { isFreeRoute } from "../catalog/free-route.ts";
import { dataPolicyOf } from "../catalog/model.ts";
import { effectivePrice } from "../../account/ledger/price.ts";
import type { Candidate, ProviderFilter, RoutingRequest } from "./candidate.ts";
import { namesProvider } from "./names-provider.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { supports } from "./supports.ts";

/** A hard rule: routes that fail it cannot serve. Pure; `applies` lets most requests skip most rules. */
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

/** Bounds are on the price that the request would be charged: the tier of its input counts, as far as it is known. */
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
