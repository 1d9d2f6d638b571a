import type { Candidate, LeftOut, RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import { balancesLoad, orderPolicyFor, type OrderFacts } from "./order-policies.ts";
import { rankMembers } from "./rank-members.ts";
import { runsOfModels } from "./runs-of-models.ts";
import { missedPreference } from "./soft-preferences.ts";

/** What ordering works with. */
interface Ordering {
  request: RoutingRequest;
  facts: OrderFacts;
  leftOut: LeftOut[];
}

/**
 * The candidates in the order in which they are tried: model by model, or all together where the partition is
 * `none`. Members of a router count as one model.
 */
export function orderCandidates(candidates: readonly Candidate[], ordering: Ordering): Candidate[] {
  const { models, preferences } = ordering.request;
  if (models.length === 1) return orderGroup(candidates, ordering);
  const groups = models.map((_, modelIndex) => candidates.filter((candidate) => candidate.modelIndex === modelIndex));
  if (preferences.partition === "model") return groups.flatMap((group) => orderGroup(group, ordering));
  return orderTogether(groups.flatMap((group) => membersOf(group, ordering).flat()), ordering);
}

/** The candidates of one model, or of each member of a router in its rank, the cheapest first. */
function membersOf(group: readonly Candidate[], { request, leftOut }: Ordering): readonly (readonly Candidate[])[] {
  const router = group[0]?.router;
  if (router === undefined) return [byPrice(group)];
  return rankMembers(runsOfModels(group).map(byPrice), { router, request, leftOut });
}

/** The cheapest first; equals stay as they are. */
const byPrice = (candidates: readonly Candidate[]): readonly Candidate[] =>
  (candidates.length <= 1 ? candidates : candidates.toSorted((left, right) => left.price - right.price));

function orderGroup(group: readonly Candidate[], ordering: Ordering): Candidate[] {
  if (group.length === 0) return [];
  const members = membersOf(group, ordering);
  const { preferences } = ordering.request;
  // Member by member, unless the request sorts by a measure that members differ in, or names providers.
  const keepsMembers = balancesLoad(preferences) || (preferences.sort === "exacto" && preferences.order === undefined);
  return keepsMembers ? orderTiers(members, ordering) : orderTogether(members.flat(), ordering);
}

const orderTogether = (candidates: Candidate[], ordering: Ordering): Candidate[] => orderTiers([candidates], ordering);

/**
 * First what is fine, then what misses a soft preference, then what has an outage or fails too often, which counts
 * under load balancing alone (rules 1 and 4). Within each, member by member.
 */
function orderTiers(members: readonly (readonly Candidate[])[], { request, facts }: Ordering): Candidate[] {
  const { preferences } = request;
  const isOnly = members.length === 1 && members[0]?.length === 1;
  const policy = orderPolicyFor(preferences);
  const inOrder = (tier: readonly Candidate[]): readonly Candidate[] =>
    tier.length === 0 || isOnly ? tier : policy(tier, preferences, facts);
  const fine: Candidate[] = [];
  const slow: Candidate[] = [];
  const troubled: Candidate[] = [];
  for (const member of members) {
    const tiers = splitTiers(member, { request, health: facts.health });
    fine.push(...inOrder(tiers.fine));
    slow.push(...inOrder(tiers.slow));
    troubled.push(...tiers.troubled);
  }
  for (const candidate of slow) candidate.reason = `misses ${missedPreference(candidate, request, facts.health)}`;
  for (const candidate of troubled) candidate.reason = troubleOf(candidate, facts.health);
  return [...fine, ...slow, ...troubled];
}

/** Why a candidate is asked last where the load is balanced. */
const troubleOf = ({ model, route: { provider } }: Candidate, health: HealthMoment): string =>
  (health.hasOutage(provider.id, model.id) || health.stateOf(provider.id) === undefined
    ? "outage in the last 30 seconds"
    : "deprioritized");

interface Tiers {
  fine: readonly Candidate[];
  slow: readonly Candidate[];
  troubled: readonly Candidate[];
}

const nobody: readonly Candidate[] = [];

function splitTiers(candidates: readonly Candidate[], { request, health }: { request: RoutingRequest; health: HealthMoment }): Tiers {
  const watchesOutages = balancesLoad(request.preferences);
  const isTroubled = ({ model, route }: Candidate): boolean => watchesOutages && health.isTroubled(route.provider.id, model.id);
  const isSlow = (candidate: Candidate): boolean => missedPreference(candidate, request, health) !== undefined;
  // Mostly all of them are fine, and stay the list that they are.
  const allFine = !candidates.some((candidate) => isTroubled(candidate) || isSlow(candidate));
  if (allFine) return { fine: candidates, slow: nobody, troubled: nobody };
  const troubled = candidates.filter(isTroubled);
  const well = candidates.filter((candidate) => !isTroubled(candidate));
  return { fine: well.filter((candidate) => !isSlow(candidate)), slow: well.filter(isSlow), troubled };
}
