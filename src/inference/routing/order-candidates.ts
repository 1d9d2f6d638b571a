import type { LeftOut, RoutingRequest } from "./candidate.ts";
import type { HealthMoment } from "./health-moment.ts";
import { balancesLoad, orderPolicyFor, type OrderFacts } from "./order-policies.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import { rankMembers } from "./rank-members.ts";
import { sift } from "./sift.ts";
import { missedPreference, wishesAmong, type Wishes } from "./soft-preferences.ts";
import { sortByCost } from "./sort-by-cost.ts";

/** What ordering works with. */
interface Ordering {
  request: RoutingRequest;
  facts: OrderFacts;
  leftOut: LeftOut[];
}

/** The candidates of each model. */
type Lists = PlannedCandidate[][];

/**
 * The candidates of each model in the order in which all of them are tried: model by model, or all together where the partition
 * is `none`. Members of a router count as one model. The lists are put in order where they are, which spares copies.
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
  // Member by member, unless the request sorts by a measure that members differ in, or names providers.
  const keepsMembers =
    balancesLoad(preferences) || (preferences.sort === "exacto" && preferences.order === undefined);
  return orderTiers(members.length <= 1 || keepsMembers ? members : [members.flat()], ordering);
}

/**
 * First what is fine, then what misses a soft preference, then what has an outage or fails too often, which counts
 * under load balancing alone (rules 1 and 4). Within each, member by member.
 */
function orderTiers(members: Lists, { request, facts }: Ordering): PlannedCandidate[] {
  const { preferences } = request;
  const isOnly = members.length === 1 && members[0]?.length === 1;
  const policy = orderPolicyFor(preferences);
  const arrange = (tier: PlannedCandidate[]): PlannedCandidate[] => {
    if (tier.length > 0 && !isOnly) policy(tier, preferences, facts);
    return tier;
  };
  const wishes = wishesAmong(members, request);
  const [slow, troubled]: [PlannedCandidate[], PlannedCandidate[]] = [[], []];
  const fine = members.map((member) => {
    const well = balancesLoad(preferences)
      ? withoutTroubled(member, { health: facts.health, troubled })
      : member;
    if (wishes === undefined) return arrange(well);
    const late: PlannedCandidate[] = [];
    const prompt = arrange(withoutLate(well, { wishes, health: facts.health, late }));
    slow.push(...arrange(late));
    return prompt;
  });
  for (const candidate of slow) candidate.place = `misses ${candidate.missed}`;
  const first = fine.length === 1 ? (fine[0] as PlannedCandidate[]) : fine.flat();
  return slow.length + troubled.length === 0 ? first : [...first, ...slow, ...troubled];
}

/** Takes candidates out that are in trouble at the moment. */
function withoutTroubled(
  member: PlannedCandidate[],
  { health, troubled }: { health: HealthMoment; troubled: PlannedCandidate[] },
): PlannedCandidate[] {
  if (!isAnyTroubled(member, health)) return member;
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
