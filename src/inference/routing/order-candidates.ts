import type { LeftOut, RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import { balancesLoad, orderPolicyFor, type OrderFacts } from "./order-policies.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { rankMembers } from "./rank-members.ts";
import { runsOfModels } from "./runs-of-models.ts";
import { sift } from "./sift.ts";
import { hasWishes, missedPreference } from "./soft-preferences.ts";
import { sortByCost } from "./sort-by-cost.ts";

/** What ordering works with. */
interface Ordering {
  request: RoutingRequest;
  facts: OrderFacts;
  leftOut: LeftOut[];
}

/**
 * The candidates in the order in which they are tried: model by model, or all together where the partition is
 * `none`. Members of a router count as one model. Lists that come in may come out, in another order.
 */
export function orderCandidates(candidates: PlannedCandidate[], ordering: Ordering): PlannedCandidate[] {
  const { models, preferences } = ordering.request;
  if (models.length === 1) return orderGroup(candidates, ordering);
  const groups = models.map((_, modelIndex) => candidates.filter((candidate) => candidate.modelIndex === modelIndex));
  if (preferences.partition === "model") return groups.flatMap((group) => orderGroup(group, ordering));
  return orderTogether(groups.flatMap((group) => membersOf(group, ordering).flat()), ordering);
}

/** The candidates of one model, or of each member of a router in its rank, the cheapest first. */
function membersOf(group: PlannedCandidate[], { request, leftOut }: Ordering): readonly PlannedCandidate[][] {
  const router = group[0]?.router?.router;
  const members = router === undefined ? [group] : runsOfModels(group);
  for (const member of members) sortByCost(member);
  return router === undefined ? members : rankMembers(members, { router, request, leftOut });
}

function orderGroup(group: PlannedCandidate[], ordering: Ordering): PlannedCandidate[] {
  if (group.length === 0) return group;
  const members = membersOf(group, ordering);
  const { preferences } = ordering.request;
  // Member by member, unless the request sorts by a measure that members differ in, or names providers.
  const keepsMembers = balancesLoad(preferences) || (preferences.sort === "exacto" && preferences.order === undefined);
  return members.length === 1 || keepsMembers ? orderTiers(members, ordering) : orderTogether(members.flat(), ordering);
}

const orderTogether = (candidates: PlannedCandidate[], ordering: Ordering): PlannedCandidate[] => orderTiers([candidates], ordering);

/**
 * First what is fine, then what misses a soft preference, then what has an outage or fails too often, which counts
 * under load balancing alone (rules 1 and 4). Within each, member by member.
 */
function orderTiers(members: readonly PlannedCandidate[][], { request, facts }: Ordering): PlannedCandidate[] {
  const { preferences } = request;
  const isOnly = members.length === 1 && members[0]?.length === 1;
  const policy = orderPolicyFor(preferences);
  const fine: PlannedCandidate[] = [];
  const slow: PlannedCandidate[] = [];
  const troubled: PlannedCandidate[] = [];
  const arrange = (tier: PlannedCandidate[], all: PlannedCandidate[]): void => {
    if (tier.length > 0 && !isOnly) policy(tier, preferences, facts);
    for (const candidate of tier) all.push(candidate);
  };
  for (const member of members) {
    const well = balancesLoad(preferences) ? withoutTroubled(member, { health: facts.health, troubled }) : member;
    const late: PlannedCandidate[] = [];
    arrange(hasWishes(request) ? withoutLate(well, { request, health: facts.health, late }) : well, fine);
    arrange(late, slow);
  }
  for (const candidate of slow) candidate.place = `misses ${candidate.missed}`;
  for (const candidate of slow) fine.push(candidate);
  for (const candidate of troubled) fine.push(candidate);
  return fine;
}

interface Troubles {
  health: HealthMoment;
  troubled: PlannedCandidate[];
}

function withoutTroubled(member: PlannedCandidate[], { health, troubled }: Troubles): PlannedCandidate[] {
  return sift(member, {
    keeps: ({ row, model }) => !health.isTroubled(row.provider, model.id),
    drop: (candidate) => {
      candidate.place = troubleOf(candidate, health);
      troubled.push(candidate);
    },
  });
}

/** Why a candidate is asked last where the load is balanced. */
const troubleOf = ({ model, row: { provider } }: PlannedCandidate, health: HealthMoment): string =>
  (health.hasOutage(provider, model.id) || health.stateOf(provider) === undefined ? "outage in the last 30 seconds" : "deprioritized");

function withoutLate(
  member: PlannedCandidate[], { request, health, late }: { request: RoutingRequest; health: HealthMoment; late: PlannedCandidate[] },
): PlannedCandidate[] {
  return sift(member, {
    keeps: (candidate) => {
      candidate.missed = missedPreference(candidate, request, health);
      return candidate.missed === undefined;
    },
    drop: (candidate) => late.push(candidate),
  });
}
