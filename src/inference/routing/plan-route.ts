import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import {
  type PlannedCandidate,
  type Candidate,
  candidatesAt,
  type LeftOut,
  type RoutingRequest,
  type Requested,
  leftOutOf,
  rowsOf,
  type RouteRow,
  type RowSources,
} from "./candidate.ts";
import { routeRules, leaveOutUnwell, siftEach, type RouteRule } from "./filters.ts";
import type { HealthMoment } from "./health/health-windows.ts";
import { orderCandidates, cutsShort } from "./order-candidates.ts";
import { type Affinity, prefixName, type Session } from "./affinity.ts";
import { drawOfSession, isAtPlace, type StickySessions } from "./sticky-sessions.ts";

/**
 * The candidates in the order in which they are tried, and the routes that were left out, with the
 * rule.
 */
export interface RoutePlan {
  candidates: readonly Candidate[];
  leftOut: readonly LeftOut[];
  /**
   * The rule that excluded the last candidate; undefined where candidates remain, or where there
   * never was one.
   */
  emptiedBy: string | undefined;
  /**
   * Whether the request's session was last served by another provider than the first candidate's.
   */
  moved: boolean;
}

/** The facts that planning looks at. */
export interface PlanFacts extends RowSources {
  /** Returns a uniform random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
  /**
   * Returns whether a provider key serves a route for this caller, with or without a platform
   * credential.
   */
  hasKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
  /**
   * Returns whether the caller's own key serves a route, so that the states of the platform's
   * providers do not apply.
   */
  hasOwnKey?: ((route: UpstreamRoute, model: CatalogModel) => boolean) | undefined;
  /**
   * The places where sessions were last served; absent where no request depends on an earlier one.
   */
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
    facts: { health, random: drawFor(request, facts.random) },
    leftOut,
  });
  const moved = stayWithSession(ordered, { request, sessions: facts.sessions, health });
  const candidates = request.preferences.allowFallbacks ? ordered : ordered.slice(0, 1);
  return { candidates, leftOut, emptiedBy: allowed.emptiedBy ?? able.emptiedBy, moved };
}

/**
 * Returns the draw among candidates by price. A conversation that has a name always draws the same
 * number, so that a gateway that was restarted, and one that shares no state, choose the provider
 * that has its prompt cache.
 */
function drawFor({ affinity, models }: RoutingRequest, random: () => number): () => number {
  const session = affinity?.session;
  const [requested] = models;
  if (session === undefined || requested === undefined) return random;
  return () => drawOfSession(session, requested.id);
}

interface Collecting {
  facts: PlanFacts;
  leftOut: LeftOut[];
}

/**
 * Returns every servable route of the requested models, and of the members of requested routers: a
 * list for each model that has any.
 */
function candidatesOf(
  { models, inputTokens, mediaAt }: RoutingRequest,
  collecting: Collecting,
): PlannedCandidate[][] {
  const lists: PlannedCandidate[][] = [];
  for (const [modelIndex, model] of models.entries()) {
    const { router: pool } = model;
    const requested: Requested = { modelIndex, router: pool && model, inputTokens, mediaAt };
    for (const member of pool?.members ?? [model]) {
      const rows = servableRows(member, collecting);
      if (rows.length > 0) lists.push(candidatesAt(rows, requested));
    }
    for (const { id, reason } of pool?.missing ?? [])
      collecting.leftOut.push({ provider: "", model: id, rule: reason });
  }
  return models.length > 1 && models.some(({ router }) => router !== undefined)
    ? eachOnce(lists)
    : lists;
}

function servableRows(model: CatalogModel, { facts, leftOut }: Collecting): readonly RouteRow[] {
  const { all, servable, notServable } = rowsOf(model, facts);
  if (facts.hasKey !== undefined) return rowsWithKeys(all, facts.hasKey, leftOut);
  for (const left of notServable) leftOut.push(left);
  return servable;
}

/** Returns the rows that this process's credentials or provider keys serve. */
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

/** Removes duplicates, keeping the first: a member of a router may also be named beside it. */
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
 * Returns the candidates that a rule keeps. It is a function of its own because a closure in the
 * loop over the rules would allocate on each turn, and most rules do not apply.
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

/** The facts that affinity is decided by. */
interface Staying {
  request: RoutingRequest;
  sessions: StickySessions | undefined;
  health: HealthMoment;
}

/**
 * Moves the provider that made the request's latest sealed reasoning, or else the one that last
 * served its session, to the front, so that the reasoning can be read and the prompt cache is used.
 * It does so while that provider is healthy and cuts no answer that another would not, and the
 * request names no order of its own. Returns whether a session that the request names has to move.
 */
function stayWithSession(ordered: PlannedCandidate[], staying: Staying): boolean {
  const {
    request: { affinity, models, preferences, inputTokens = 0 },
    sessions,
    health,
  } = staying;
  const [requested] = models;
  if (affinity === undefined || requested === undefined || ordered.length === 0) return false;
  const isChoice = ordered.length > 1;
  const session = isChoice
    ? affinity.sessionAmong(() => inputTokens >= cachedTokensMin && ordered.some(cachesPrompts))
    : affinity.session;
  const place = session && sessions?.lastPlace(session, requested.id);
  const index =
    place === undefined ? -1 : ordered.findIndex((candidate) => isAtPlace(candidate, place));
  const isMoved = place !== undefined && index !== 0 && session?.by !== prefixName;
  if (preferences.order !== undefined || !isChoice) return isMoved;
  const mayStay = (candidate: PlannedCandidate | undefined): candidate is PlannedCandidate =>
    candidate !== undefined &&
    !cutsShort(candidate) &&
    !health.isTroubled(candidate.row.provider, candidate.model.id);
  const maker = makerAmong(ordered, affinity);
  if (mayStay(maker)) {
    moveToFront(ordered, maker, "sealed the latest reasoning");
    return place !== undefined && !isAtPlace(maker, place) && session?.by !== prefixName;
  }
  const last = ordered[index];
  // A request that sorts its routes and names no session is sorted as it asks.
  if (!mayStay(last) || (session?.by === prefixName && preferences.sort !== undefined))
    return isMoved;
  moveToFront(ordered, last, noteOf(session));
  return false;
}

/** The fewest input tokens that any provider caches unasked (OpenAI, DeepSeek and Gemini, 2026-11). */
const cachedTokensMin = 1_024;

/** Returns whether a route's price says that its provider caches prompts. */
const cachesPrompts = ({ route }: PlannedCandidate): boolean =>
  route.price?.base.cacheReadTokens !== undefined;

function noteOf(session: Session | undefined): string {
  const by = session?.by ?? "session_id";
  return by === "session_id" ? "served the session last" : `served the conversation last (${by})`;
}

/** Returns the candidate for the requested model that sealed the request's latest reasoning. */
function makerAmong(
  ordered: readonly PlannedCandidate[],
  affinity: Affinity,
): PlannedCandidate | undefined {
  const slug = affinity.sealedBy();
  if (slug === undefined) return undefined;
  return ordered.find(({ modelIndex, row }) => modelIndex === 0 && row.provider.id === slug);
}

function moveToFront(ordered: PlannedCandidate[], candidate: PlannedCandidate, note: string): void {
  candidate.note = note;
  ordered.splice(ordered.indexOf(candidate), 1);
  ordered.unshift(candidate);
}
