import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import {
  PlannedCandidate,
  type Candidate,
  type LeftOut,
  type RoutingRequest,
  type Requested,
  leftOutOf,
  rowsOf,
  type RouteRow,
  type RowSources,
} from "./candidate.ts";
import { routeRules, leaveOutUnwell, siftEach, type RouteRule } from "./filters.ts";
import type { HealthMoment } from "./health-windows.ts";
import { orderCandidates, cutsShort } from "./order-candidates.ts";
import { isAtPlace, type StickySessions } from "./sticky-sessions.ts";

/** Candidates in the order in which they are tried, and what was left out by which rule. */
export interface RoutePlan {
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  /**
   * The rule that took the last candidate out; undefined while there is one, or where there never
   * was.
   */
  emptiedBy: string | undefined;
  /** The request's session was served before by a provider that is not the first candidate now. */
  moved: boolean;
}

/** What planning may look at. */
export interface PlanFacts extends RowSources {
  /** Uniform random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
  /**
   * Whether a provider key serves a route for this caller, with or without a credential of this
   * process.
   */
  hasKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
  /**
   * Whether the caller's own key serves a route, so that states of the platform's providers do not
   * concern it.
   */
  hasOwnKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
  /** Where sessions were served last; without it no request depends on an earlier one. */
  sessions?: StickySessions | undefined;
}

/** Orders every usable route of the requested models. Pure over its arguments. */
export function planRoute(request: RoutingRequest, facts: PlanFacts): RoutePlan {
  const leftOut: LeftOut[] = [];
  const allowed = applyRules(candidatesOf(request, { facts, leftOut }), { request, leftOut });
  const health = facts.health.moment();
  const able = leaveOutUnwell(allowed.kept, {
    facts: { health, hasOwnKey: facts.hasOwnKey },
    leftOut,
  });
  const ordered = orderCandidates(able.kept, {
    request,
    facts: { health, random: facts.random },
    leftOut,
  });
  const moved = stayWithSession(ordered, { request, sessions: facts.sessions, health });
  const candidates = request.preferences.allowFallbacks ? ordered : ordered.slice(0, 1);
  return { candidates, leftOut, emptiedBy: allowed.emptiedBy ?? able.emptiedBy, moved };
}

interface Collecting {
  facts: PlanFacts;
  leftOut: LeftOut[];
}

/**
 * Every servable route of the requested models, those of routers through their members: a list for
 * each model that has any.
 */
function candidatesOf(
  { models, inputTokens }: RoutingRequest,
  collecting: Collecting,
): PlannedCandidate[][] {
  const lists: PlannedCandidate[][] = [];
  for (const [modelIndex, model] of models.entries()) {
    const { router: pool } = model;
    const requested: Requested = { modelIndex, router: pool && model, inputTokens };
    for (const member of pool?.members ?? [model]) {
      const rows = servableRows(member, collecting);
      if (rows.length > 0) lists.push(plannedOf(rows, requested));
    }
    for (const { id, reason } of pool?.missing ?? [])
      collecting.leftOut.push({ provider: "", model: id, rule: reason });
  }
  return models.length > 1 && models.some(({ router }) => router !== undefined)
    ? eachOnce(lists)
    : lists;
}

const plannedOf = (rows: readonly RouteRow[], requested: Requested): PlannedCandidate[] =>
  rows.map((row) => new PlannedCandidate(row, requested));

function servableRows(model: CatalogModel, { facts, leftOut }: Collecting): readonly RouteRow[] {
  const { all, servable, notServable } = rowsOf(model, facts);
  if (facts.hasKey !== undefined) return rowsWithKeys(all, facts.hasKey, leftOut);
  for (const left of notServable) leftOut.push(left);
  return servable;
}

/** The rows that this process's credentials or provider keys serve. */
function rowsWithKeys(
  rows: readonly RouteRow[],
  hasKey: NonNullable<PlanFacts["hasKey"]>,
  leftOut: LeftOut[],
): RouteRow[] {
  return rows.filter((row) => {
    const serves = row.isServable || hasKey(row.route, row.model);
    if (!serves) leftOut.push(leftOutOf(row));
    return serves;
  });
}

/** A member of a router may be named beside it, too; the first place counts. */
function eachOnce(lists: readonly PlannedCandidate[][]): PlannedCandidate[][] {
  const seen = new Set<CatalogModel>();
  return lists.filter(
    ([first]) =>
      first !== undefined && !seen.has(first.model) && seen.add(first.model) !== undefined,
  );
}

interface Ruling {
  request: RoutingRequest;
  leftOut: LeftOut[];
}

function applyRules(
  lists: PlannedCandidate[][],
  { request, leftOut }: Ruling,
): { kept: PlannedCandidate[][]; emptiedBy: string | undefined } {
  let kept = lists;
  for (const rule of routeRules) {
    if (kept.length === 0 || !rule.applies(request.preferences, request)) continue;
    kept = keptBy(rule, kept, { request, leftOut });
    if (kept.length === 0) return { kept, emptiedBy: rule.name };
  }
  return { kept, emptiedBy: undefined };
}

/**
 * The candidates that a rule keeps. A function of its own, since a closure in the loop over the
 * rules would cost each of its turns an object, and most rules do not apply.
 */
const keptBy = (
  rule: RouteRule,
  lists: PlannedCandidate[][],
  { request, leftOut }: Ruling,
): PlannedCandidate[][] =>
  siftEach(lists, {
    keeps: (candidate) => rule.keeps(candidate, request),
    drop: ({ row, model }) =>
      leftOut.push({ provider: row.provider.id, model: model.id, rule: rule.name }),
  });

/**
 * Puts the provider that served the request's session last in front, so that its prompt cache is
 * hit: while it is well, cuts no answer that another would not, and the request names no order of
 * its own. Tells whether the session has to move.
 */
function stayWithSession(
  ordered: PlannedCandidate[],
  {
    request,
    sessions,
    health,
  }: { request: RoutingRequest; sessions: StickySessions | undefined; health: HealthMoment },
): boolean {
  const {
    session,
    models: [requested],
    preferences,
  } = request;
  if (session === undefined || requested === undefined || ordered.length === 0) return false;
  const place = sessions?.lastPlace(session, requested.id);
  if (place === undefined) return false;
  const index = ordered.findIndex((candidate) => isAtPlace(candidate, place));
  const last = ordered[index];
  if (last === undefined || preferences.order !== undefined || cutsShort(last)) return index !== 0;
  if (health.isTroubled(last.row.provider, last.model.id)) return index !== 0;
  last.note = "served the session last";
  ordered.splice(index, 1);
  ordered.unshift(last);
  return false;
}
