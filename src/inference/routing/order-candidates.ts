import type { CatalogModel, RouterPool } from "../catalog/model.ts";
import {
  type LeftOut,
  type RoutingRequest,
  type PlannedCandidate,
  type ProviderFilter,
  permits,
} from "./candidate.ts";
import { sift } from "./filters.ts";
import type { HealthMoment } from "./health-windows.ts";
import {
  balancesLoad,
  orderPolicyFor,
  sortByCost,
  type OrderFacts,
  type OrderPolicy,
} from "./order-policies.ts";
import type { InputKind, RequestNeeds } from "../canonical/request.ts";

/** What ordering works with. */
interface Ordering {
  request: RoutingRequest;
  facts: OrderFacts;
  leftOut: LeftOut[];
}

/** The candidates of each model. */
type Lists = PlannedCandidate[][];

/**
 * The candidates of each model in the order in which all of them are tried: model by model, or all
 * together where the partition is `none`. Members of a router count as one model. The lists are put
 * in order where they are, which spares copies.
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

/** The lists of one model, or those of a router's members in their rank. */
function ranked(group: Lists, { request, leftOut }: Ordering): Lists {
  const router = group[0]?.[0]?.router?.router;
  return router === undefined ? group : rankMembers(group, { router, request, leftOut });
}

function orderGroup(group: Lists, ordering: Ordering): PlannedCandidate[] {
  const members = ranked(group, ordering);
  const { preferences } = ordering.request;
  // Member by member, unless the request sorts by a measure that members differ in, or names
  // providers.
  const keepsMembers =
    balancesLoad(preferences) || (preferences.sort === "exacto" && preferences.order === undefined);
  return orderTiers(members.length <= 1 || keepsMembers ? members : [members.flat()], ordering);
}

/**
 * First what is fine, then what misses a soft preference, then what has an outage or fails too
 * often, which counts under load balancing alone (rules 1 and 4). Within each, member by member.
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

/** Puts candidates in the order of the policy, where there is more than one in the whole plan. */
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

/** Takes candidates out that are in trouble at the moment. */
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

/** Mostly all of them are well, and then nothing is allocated. */
function isAnyTroubled(member: readonly PlannedCandidate[], health: HealthMoment): boolean {
  for (const { row, model } of member) if (health.isTroubled(row.provider, model.id)) return true;
  return false;
}

/** Why a candidate is asked last where the load is balanced. */
const troubleOf = ({ model, row: { provider } }: PlannedCandidate, health: HealthMoment): string =>
  health.hasOutage(provider, model.id) || health.stateOf(provider) === undefined
    ? "outage in the last 30 seconds"
    : "deprioritized";

/** Takes candidates out that miss a soft preference, and writes down which. */
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

/** Efforts that say that little thought will do, and those that ask for much. */
const lightEfforts: ReadonlySet<string> = new Set(["none", "minimal", "low"]);
const heavyEfforts: ReadonlySet<string> = new Set(["high", "xhigh", "max"]);
/** Input beyond this is too much for a request to count as light: about a dozen pages. */
const lightInputTokensMax = 8_000;
/** Output tokens that a request is taken to need beside its input when it names no cap. */
const outputTokensDefault = 1_024;

const noNeeds: RequestNeeds = { inputs: new Set(), effort: undefined };

/** The candidates of each member, the cheapest first. */
type Members = PlannedCandidate[][];

/** What ranking looks at. */
interface Facts {
  router: RouterPool;
  request: RoutingRequest;
  needs: RequestNeeds;
  isLight: boolean;
}

/**
 * Leaves out members that cannot take the request's kinds of input, if any member can, and puts the
 * others, which come in the order of the pool, in the order that their quality and the request call
 * for: the candidates of each member, as they came.
 */
function rankMembers(
  members: Members,
  { router, request, leftOut }: { router: RouterPool; request: RoutingRequest; leftOut: LeftOut[] },
): Members {
  const needs = request.needs?.() ?? noNeeds;
  const able = withInputs(members, { inputs: needs.inputs, leftOut });
  return rank(able, { router, request, needs, isLight: isLight(router, { request, needs }) });
}

function withInputs(
  members: Members,
  { inputs, leftOut }: { inputs: ReadonlySet<InputKind>; leftOut: LeftOut[] },
): Members {
  let able = members;
  for (const kind of inputs) {
    const takesIt = ([first]: readonly PlannedCandidate[]): boolean =>
      first?.model.capabilities.includes(kind) === true;
    // Where no member declares it, the catalog does not know, and the provider has the last word.
    if (!able.some(takesIt)) continue;
    for (const { row, model } of able.filter((member) => !takesIt(member)).flat()) {
      leftOut.push({ provider: row.provider.id, model: model.id, rule: kind });
    }
    able = able.filter(takesIt);
  }
  return able;
}

/**
 * A light request asks for little: little thought, by name, no tools, text alone, and not much of
 * it.
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
    needs.inputs.size === 0 &&
    (request.inputTokens ?? 0) <= lightInputTokensMax
  );
}

/**
 * Estimates refuse nothing: what may be too short, or thinks too little, goes behind the others.
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

/** Sorting is stable, so equals stay in the order of the pool. */
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

/** Why a member goes behind the others; undefined where nothing speaks against it. */
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

/** The soft preferences of a request, which no route has to keep. */
interface Wishes extends Pick<ProviderFilter, "minThroughput" | "maxLatencyMs"> {
  /** Parameters that a route had better declare. */
  parameters: readonly string[];
  /** The output cap that a route had better allow, as far as any of them does. */
  outputTokens: number | undefined;
}

/** What a candidate misses that allows less output than another. */
const lengthMissed = "max_tokens";

const noParameters: readonly string[] = [];

const largestCap = ({ route }: PlannedCandidate): number =>
  route.maxCompletionTokens ?? Number.POSITIVE_INFINITY;

/**
 * The output that is wished for, or the most that any candidate allows; undefined where all of them
 * allow it.
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
 * The soft preferences that may move one of these candidates to the end; undefined where none can,
 * as for most requests. Providers named in order, in the body, in a preset or by header, are asked
 * in that order. A `sort` is one among routes that allow the length.
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
 * The soft preference that a candidate misses (rule 4 of the provider object, rule 6 of reasoning);
 * undefined when it keeps them all, or nothing is known of it.
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

/** Whether a candidate would cut an answer shorter than another has to. */
export const cutsShort = ({ missed }: PlannedCandidate): boolean => missed === lengthMissed;
