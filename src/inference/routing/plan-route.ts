import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { comparablePrice, type Candidate, type LeftOut, type RoutingRequest } from "./candidate.ts";
import { routeRules } from "./filters.ts";
import { orderCandidates } from "./order-candidates.ts";
import type { HealthMoment } from "./health-moment.ts";
import type { HealthWindows } from "./health-windows.ts";
import { barringState, leaveOutUnwell } from "./provider-states.ts";
import { isAtPlace, type StickySessions } from "./sticky-sessions.ts";

/** Candidates in the order in which they are tried, and what was left out by which rule. */
export interface RoutePlan {
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  /** The rule that took the last candidate out; undefined while there is one, or where there never was. */
  emptiedBy: string | undefined;
  /** The request's session was served before by a provider that is not the first candidate now. */
  moved: boolean;
}

/** What planning may look at; `isServable` tells routes that this process can call for this caller. */
export interface PlanFacts {
  health: HealthWindows;
  /** Uniform random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
  isServable(route: UpstreamRoute, model: CatalogModel): boolean;
  /** Whether the caller's own key serves a route, so that states of the platform's providers do not concern it. */
  hasOwnKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
  /** Where sessions were served last; without it every request stands for itself. */
  sessions?: StickySessions | undefined;
}

/** What is said of routes that no credential serves. */
export const notServable = "not servable with a platform credential";

/** Orders every usable route of the requested models. Pure over its arguments. */
export function planRoute(request: RoutingRequest, facts: PlanFacts): RoutePlan {
  const leftOut: LeftOut[] = [];
  const allowed = applyRules(candidatesOf(request, { facts, leftOut }), { request, leftOut });
  const health = facts.health.moment();
  const able = leaveOutUnwell(allowed.kept, { facts: { health, hasOwnKey: facts.hasOwnKey }, leftOut });
  const ordered = orderCandidates(able.kept, { request, facts: { health, random: facts.random }, leftOut });
  for (const candidate of ordered) {
    if (candidate.memberReason !== "") candidate.reason = `${candidate.memberReason}; ${candidate.reason}`;
    if (able.nobodyElse) {
      candidate.reason = `${barringState(candidate.route.provider.id, health)}, but nobody else is left; ${candidate.reason}`;
    }
  }
  const moved = stayWithSession(ordered, { request, sessions: facts.sessions, health });
  const candidates = request.preferences.allowFallbacks ? ordered : ordered.slice(0, 1);
  return { candidates, leftOut, emptiedBy: allowed.emptiedBy ?? able.emptiedBy, moved };
}

/** Every servable route of the requested models, those of routers through their members, each route once. */
function candidatesOf(request: RoutingRequest, { facts, leftOut }: { facts: PlanFacts; leftOut: LeftOut[] }): Candidate[] {
  const candidates: Candidate[] = [];
  const add = (model: CatalogModel, { modelIndex, router }: Pick<Candidate, "modelIndex" | "router">): void => {
    for (const route of model.routes) {
      if (facts.isServable(route, model)) {
        const price = comparablePrice(route, request.inputTokens);
        candidates.push({ model, route, modelIndex, router, price, reason: "only route", memberReason: "" });
      } else leftOut.push({ provider: route.provider.id, model: model.id, rule: notServable });
    }
  };
  request.models.forEach((model, modelIndex) => {
    if (model.router === undefined) return add(model, { modelIndex, router: undefined });
    for (const member of model.router.members) add(member, { modelIndex, router: model });
    for (const { id, reason } of model.router.missing) leftOut.push({ provider: "", model: id, rule: reason });
  });
  return request.models.length > 1 && request.models.some(({ router }) => router !== undefined) ? eachOnce(candidates) : candidates;
}

/** A member of a router may be named beside it, too; the first place counts. */
function eachOnce(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<UpstreamRoute>();
  return candidates.filter(({ route }) => !seen.has(route) && seen.add(route) !== undefined);
}

function applyRules(
  candidates: Candidate[],
  { request, leftOut }: { request: RoutingRequest; leftOut: LeftOut[] },
): { kept: Candidate[]; emptiedBy: string | undefined } {
  let kept = candidates;
  for (const rule of routeRules) {
    if (kept.length === 0 || !rule.applies(request)) continue;
    kept = kept.filter((candidate) => {
      if (rule.keeps(candidate, request)) return true;
      leftOut.push({ provider: candidate.route.provider.id, model: candidate.model.id, rule: rule.name });
      return false;
    });
    if (kept.length === 0) return { kept, emptiedBy: rule.name };
  }
  return { kept, emptiedBy: undefined };
}

/**
 * Puts the provider that served the request's session last in front, so that its prompt cache is hit: while it
 * is well and the request names no order of its own. Tells whether the session has to move.
 */
function stayWithSession(
  ordered: Candidate[],
  { request, sessions, health }: { request: RoutingRequest; sessions: StickySessions | undefined; health: HealthMoment },
): boolean {
  const { session, models: [requested], preferences } = request;
  if (session === undefined || requested === undefined || ordered.length === 0) return false;
  const place = sessions?.lastPlace(session, requested.id);
  if (place === undefined) return false;
  const index = ordered.findIndex((candidate) => isAtPlace(candidate, place));
  const isWell = !health.hasOutage(place.provider, place.model) && health.stateOf(place.provider) === undefined;
  if (index < 0 || preferences.order !== undefined || !isWell) return index !== 0;
  const [stayed] = ordered.splice(index, 1) as [Candidate];
  stayed.reason = `served the session last; ${stayed.reason}`;
  ordered.unshift(stayed);
  return false;
}
