import type { CatalogModel, RouterPool } from "../catalog/model.ts";
import { type LeftOut, type RoutingRequest, type PlannedCandidate, permits } from "./candidate.ts";
import { sift } from "./filters.ts";
import type { HealthMoment } from "./health/health-windows.ts";
import {
  balancesLoad,
  orderPolicyFor,
  sortByCost,
  type OrderFacts,
  type OrderPolicy,
} from "./order-policies.ts";
import type { ContentKind, RequestNeeds } from "../canonical/request.ts";
import type { ProviderFilter } from "./provider-preferences.ts";

/** The inputs of ordering. */
interface Ordering {
  request: RoutingRequest;
  facts: OrderFacts;
  leftOut: LeftOut[];
}

/** The candidates of each model. */
type Lists = PlannedCandidate[][];

/**
 * Orders the candidates in the sequence in which they are tried: model by model, or all together
 * where the partition is `none`. The members of a router count as one model. The lists are sorted
 * in place, which avoids copies.
 */
export function orderCandidates(lists: Lists, ordering: Ordering): PlannedCandidate[] {
  for (const list of lists) sortByCost(list);
  const { models, preferences } = ordering.request;
  if (models.length === 1) return orderGroup(lists, ordering);
  const groups = models.map((_, modelIndex) =>
    lists.filter(([first]) => first?.modelIndex === modelIndex),
  );
  if (preferences.partition === "model")
    return groups.flatMap((group) => orderGroup(group, ordering));
  return orderTiers([groups.flatMap((group) => ranked(group, ordering).flat())], ordering);
}

/** Returns the list of one model, or those of a router's members in their rank. */
function ranked(group: Lists, { request, leftOut }: Ordering): Lists {
  const router = group[0]?.[0]?.router?.router;
  return router === undefined ? group : rankMembers(group, { router, request, leftOut });
}

function orderGroup(group: Lists, ordering: Ordering): PlannedCandidate[] {
  const members = ranked(group, ordering);
  const { preferences } = ordering.request;
  // Members are tried one after another, unless the request names providers, or sorts by a measure
  // that differs between members.
  const keepsMembers =
    balancesLoad(preferences) || (preferences.sort === "exacto" && preferences.order === undefined);
  return orderTiers(members.length <= 1 || keepsMembers ? members : [members.flat()], ordering);
}

/**
 * Orders candidates in tiers: first those without a drawback, then those that miss a soft
 * preference, then those with an outage or a high error rate, which counts under load balancing
 * alone (rules 1 and 4). Within each tier, member by member.
 */
function orderTiers(members: Lists, { request, facts }: Ordering): PlannedCandidate[] {
  const { preferences } = request;
  const isOnly = members.length === 1 && members[0]?.length === 1;
  const arranging = {
    preferences,
    facts,
    policy: isOnly ? undefined : orderPolicyFor(preferences),
  };
  const wishes = wishesAmong(members, request);
  const [slow, troubled]: [PlannedCandidate[], PlannedCandidate[]] = [[], []];
  const fine: Lists = [];
  for (const member of members) {
    const well = balancesLoad(preferences)
      ? withoutTroubled(member, { health: facts.health, troubled })
      : member;
    const late: PlannedCandidate[] = [];
    const prompt =
      wishes === undefined ? well : withoutLate(well, { wishes, health: facts.health, late });
    fine.push(arrange(prompt, arranging));
    slow.push(...arrange(late, arranging));
  }
  for (const candidate of slow) candidate.place = `misses ${candidate.missed}`;
  const first = fine.length === 1 ? (fine[0] as PlannedCandidate[]) : fine.flat();
  return slow.length + troubled.length === 0 ? first : [...first, ...slow, ...troubled];
}

/** Sorts candidates by the policy, where the whole plan has more than one. */
function arrange(
  tier: PlannedCandidate[],
  {
    policy,
    preferences,
    facts,
  }: { policy: OrderPolicy | undefined; preferences: ProviderFilter; facts: OrderFacts },
): PlannedCandidate[] {
  if (tier.length > 0) policy?.(tier, preferences, facts);
  return tier;
}

/** Removes the candidates that have an outage or fail too often at present. */
function withoutTroubled(
  member: PlannedCandidate[],
  { health, troubled }: { health: HealthMoment; troubled: PlannedCandidate[] },
): PlannedCandidate[] {
  return isAnyTroubled(member, health) ? parted(member, { health, troubled }) : member;
}

function parted(
  member: PlannedCandidate[],
  { health, troubled }: { health: HealthMoment; troubled: PlannedCandidate[] },
): PlannedCandidate[] {
  return sift(member, {
    keeps: ({ row, model }) => !health.isTroubled(row.provider, model.id),
    drop: (candidate) => {
      candidate.place = troubleOf(candidate, health);
      troubled.push(candidate);
    },
  });
}

/** Returns whether any member has trouble. Usually none has, and then nothing is allocated. */
function isAnyTroubled(member: readonly PlannedCandidate[], health: HealthMoment): boolean {
  for (const { row, model } of member) if (health.isTroubled(row.provider, model.id)) return true;
  return false;
}

/** Returns why a candidate is tried last where load is balanced. */
const troubleOf = ({ model, row: { provider } }: PlannedCandidate, health: HealthMoment): string =>
  health.hasOutage(provider, model.id) || health.stateOf(provider) === undefined
    ? "outage in the last 30 seconds"
    : "deprioritized";

/** Removes the candidates that miss a soft preference, and notes which one. */
function withoutLate(
  member: PlannedCandidate[],
  { wishes, health, late }: { wishes: Wishes; health: HealthMoment; late: PlannedCandidate[] },
): PlannedCandidate[] {
  for (const candidate of member) candidate.missed = missedPreference(candidate, wishes, health);
  return sift(member, {
    keeps: ({ missed }) => missed === undefined,
    drop: (candidate) => late.push(candidate),
  });
}

/** The reasoning efforts of a light request. */
const lightEfforts: ReadonlySet<string> = new Set(["none", "minimal", "low"]);
const heavyEfforts: ReadonlySet<string> = new Set(["high", "xhigh", "max"]);
/** The most input tokens of a light request: about a dozen pages. */
const lightInputTokensMax = 8_000;
/** Output tokens that a request without a cap is assumed to need beside its input. */
const outputTokensDefault = 1_024;

const noNeeds: RequestNeeds = { kinds: new Set(), effort: undefined };

/** The candidates of each member, cheapest first. */
type Members = PlannedCandidate[][];

/** The facts that ranking looks at. */
interface Facts {
  router: RouterPool;
  request: RoutingRequest;
  needs: RequestNeeds;
  isLight: boolean;
}

/**
 * Ranks the members of a router. Members without the request's kinds of input and output are left
 * out, if any member can. The others come in the order of the pool and are sorted by quality, as
 * the request calls for. The candidates within each member keep their order.
 */
function rankMembers(
  members: Members,
  { router, request, leftOut }: { router: RouterPool; request: RoutingRequest; leftOut: LeftOut[] },
): Members {
  const needs = request.needs?.() ?? noNeeds;
  const able = withKinds(members, { kinds: needs.kinds, leftOut });
  return rank(able, { router, request, needs, isLight: isLight(router, { request, needs }) });
}

function withKinds(
  members: Members,
  { kinds, leftOut }: { kinds: ReadonlySet<ContentKind>; leftOut: LeftOut[] },
): Members {
  let able = members;
  for (const kind of kinds) {
    const hasIt = ([first]: readonly PlannedCandidate[]): boolean =>
      first?.model.capabilities.includes(kind) === true;
    // Where no member declares this kind, the catalog may be incomplete, and the provider decides.
    if (!able.some(hasIt)) continue;
    for (const { row, model } of able.filter((member) => !hasIt(member)).flat()) {
      leftOut.push({ provider: row.provider.id, model: model.id, rule: kind });
    }
    able = able.filter(hasIt);
  }
  return able;
}

/**
 * Returns whether a request is light: low reasoning effort, no tools, text alone, and little of it.
 */
function isLight(
  router: RouterPool,
  { request, needs }: Pick<Facts, "request" | "needs">,
): boolean {
  return (
    router.name === "auto" &&
    request.preferences.sort !== "exacto" &&
    needs.effort !== undefined &&
    lightEfforts.has(needs.effort) &&
    !request.needsTools &&
    needs.kinds.size === 0 &&
    (request.inputTokens ?? 0) <= lightInputTokensMax
  );
}

/**
 * Sorts members. Estimates exclude none: a member whose window may be too small, or that reasons
 * too little, goes behind the others.
 */
function rank(members: Members, facts: Facts): Members {
  let isInOrder = !facts.isLight;
  for (const candidates of members) {
    const { model } = candidates[0] as PlannedCandidate;
    const reason = drawbackOf(model, facts) ?? meritOf(model, facts);
    for (const candidate of candidates) candidate.memberReason = reason;
    isInOrder &&= drawbackOf(model, facts) === undefined;
  }
  return isInOrder ? members : inRank(members, facts);
}

/** Sorts by rank. Sorting is stable, so equal members stay in the order of the pool. */
function inRank(members: Members, facts: Facts): Members {
  const ranked = members.map((candidates) => {
    const { model, price } = candidates[0] as PlannedCandidate;
    return {
      candidates,
      drawbacks: 2 * Number(isShort(model, facts)) + Number(isShallow(model, facts)),
      price,
    };
  });
  ranked.sort(
    (left, right) =>
      left.drawbacks - right.drawbacks || (facts.isLight ? left.price - right.price : 0),
  );
  return ranked.map(({ candidates }) => candidates);
}

/** Returns why a member goes behind the others; undefined where it does not. */
function drawbackOf(model: CatalogModel, facts: Facts): string | undefined {
  if (isShort(model, facts))
    return `may be too short for about ${facts.request.inputTokens} tokens of input`;
  return isShallow(model, facts)
    ? `declares no reasoning, and the effort is ${facts.needs.effort}`
    : undefined;
}

function meritOf(model: CatalogModel, { router, isLight: light }: Facts): string {
  if (light) return "cheapest member, for a light request";
  return router.members.indexOf(model) < router.qualityCount ? "quality member" : "member";
}

const isShort = (
  { contextLength }: CatalogModel,
  { request: { inputTokens, maxOutputTokens = outputTokensDefault } }: Facts,
): boolean =>
  inputTokens !== undefined && contextLength > 0 && contextLength < inputTokens + maxOutputTokens;

const isShallow = ({ capabilities }: CatalogModel, { needs: { effort } }: Facts): boolean =>
  effort !== undefined && heavyEfforts.has(effort) && !capabilities.includes("reasoning");

/** The soft preferences of a request, which no route has to meet. */
interface Wishes extends Pick<ProviderFilter, "minThroughput" | "maxLatencyMs"> {
  /** Parameters that a route should declare. */
  parameters: readonly string[];
  /** The output cap that a route should allow, as far as any candidate does. */
  outputTokens: number | undefined;
}

/** The preference that a candidate misses when it allows less output than another. */
const lengthMissed = "max_tokens";

const noParameters: readonly string[] = [];

const largestCap = ({ route }: PlannedCandidate): number =>
  route.maxCompletionTokens ?? Number.POSITIVE_INFINITY;

/**
 * Returns the requested output cap, or the largest that any candidate allows; undefined where all
 * of them allow the requested one.
 */
function lengthAmong(
  members: readonly PlannedCandidate[][],
  wishedTokens: number | undefined,
): number | undefined {
  if (wishedTokens === undefined) return undefined;
  let [least, most] = [wishedTokens, 0];
  for (const member of members) {
    for (const candidate of member) {
      const cap = largestCap(candidate);
      if (cap < least) least = cap;
      if (cap > most) most = cap;
    }
  }
  return least === wishedTokens ? undefined : Math.min(wishedTokens, most);
}

/**
 * Returns the soft preferences that may move one of these candidates to the end; undefined where
 * none can, as for most requests. Providers that are named in order, in the body, a preset or a
 * header, are tried in that order. A `sort` applies among the routes that allow the length.
 */
function wishesAmong(
  members: readonly PlannedCandidate[][],
  request: RoutingRequest,
): Wishes | undefined {
  const { preferences, wishedParameters = noParameters, wishedOutputTokens } = request;
  const { order, minThroughput, maxLatencyMs } = preferences;
  if (order !== undefined) return undefined;
  const parameters = balancesLoad(preferences) ? wishedParameters : noParameters;
  const outputTokens = lengthAmong(members, wishedOutputTokens);
  if (
    parameters.length === 0 &&
    outputTokens === undefined &&
    minThroughput === undefined &&
    maxLatencyMs === undefined
  )
    return undefined;
  return { parameters, outputTokens, minThroughput, maxLatencyMs };
}

/**
 * Returns the soft preference that a candidate misses (rule 4 of the provider object, rule 6 of
 * reasoning); undefined when it meets them all or is unmeasured.
 */
function missedPreference(
  candidate: PlannedCandidate,
  { parameters, outputTokens, minThroughput, maxLatencyMs }: Wishes,
  health: HealthMoment,
): string | undefined {
  if (outputTokens !== undefined && largestCap(candidate) < outputTokens) return lengthMissed;
  const undeclared = parameters.find((parameter) => !permits(candidate, parameter));
  if (undeclared !== undefined) return undeclared;
  if (minThroughput === undefined && maxLatencyMs === undefined) return undefined;
  const measures = health.measuresOf(candidate.row.provider, candidate.model.id);
  if (minThroughput?.some((cutoff) => !measures.keepsThroughput(cutoff)))
    return "preferred_min_throughput";
  return maxLatencyMs?.some((cutoff) => !measures.keepsLatency(cutoff))
    ? "preferred_max_latency"
    : undefined;
}

/** Returns whether a candidate would cut an answer that another would not. */
export const cutsShort = ({ missed }: PlannedCandidate): boolean => missed === lengthMissed;
