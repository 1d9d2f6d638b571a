import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import type { Candidate, LeftOut, RoutingRequest } from "./candidate.ts";
import { routeRules } from "./filters.ts";
import { orderPolicyFor, type OrderFacts } from "./order-policies.ts";

/** Candidates in the order in which they are tried, and what was left out by which rule. */
export interface RoutePlan {
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
}

/** What planning may look at; `isServable` tells routes that this process can call for this caller. */
export interface PlanFacts extends OrderFacts {
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
}

/** Orders every usable route of the requested models. Pure over its arguments. */
export function planRoute(request: RoutingRequest, facts: PlanFacts): RoutePlan {
  const leftOut: LeftOut[] = [];
  const candidates = request.models.flatMap((model, modelIndex) =>
    model.routes.flatMap((route): Candidate[] => {
      if (facts.isServable(route, model)) return [{ model, route, modelIndex, reason: "only route" }];
      leftOut.push({ provider: route.provider.id, model: model.id, rule: "not servable with a platform credential" });
      return [];
    }));
  const kept = applyRules(candidates, request, leftOut);
  const ordered = order(kept, request, facts);
  return { candidates: request.preferences.allowFallbacks ? ordered : ordered.slice(0, 1), leftOut };
}

function applyRules(candidates: Candidate[], request: RoutingRequest, leftOut: LeftOut[]): Candidate[] {
  let kept = candidates;
  for (const rule of routeRules) {
    if (!rule.applies(request)) continue;
    kept = kept.filter((candidate) => {
      if (rule.keeps(candidate, request)) return true;
      leftOut.push({ provider: candidate.route.provider.id, model: candidate.model.id, rule: rule.name });
      return false;
    });
  }
  return kept;
}

function order(candidates: readonly Candidate[], request: RoutingRequest, facts: PlanFacts): Candidate[] {
  if (candidates.length <= 1) return [...candidates];
  const { preferences } = request;
  const policy = orderPolicyFor(preferences);
  if (preferences.partition === "none") return policy(candidates, preferences, facts);
  return request.models.flatMap((_, modelIndex) => {
    const ofModel = candidates.filter((candidate) => candidate.modelIndex === modelIndex);
    return ofModel.length <= 1 ? ofModel : policy(ofModel, preferences, facts);
  });
}
