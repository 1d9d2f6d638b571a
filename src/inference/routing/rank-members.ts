import type { CatalogModel } from "../catalog/model.ts";
import type { Candidate, LeftOut, RoutingRequest } from "./candidate.ts";
import type { InputKind, RequestNeeds } from "./request-needs.ts";

/** Efforts that say that little thought will do, and those that ask for much. */
const lightEfforts: ReadonlySet<string> = new Set(["none", "minimal", "low"]);
const heavyEfforts: ReadonlySet<string> = new Set(["high", "xhigh", "max"]);
/** Input beyond this is too much for a request to count as light: about a dozen pages. */
const lightInputTokensMax = 8_000;
/** Output tokens that a request is taken to need beside its input when it names no cap. */
const outputTokensDefault = 1_024;

const noNeeds: RequestNeeds = { inputs: new Set(), effort: undefined };

/** What ranking looks at. */
interface Facts {
  router: CatalogModel;
  request: RoutingRequest;
  needs: RequestNeeds;
}

/**
 * Leaves out members that cannot take the request's kinds of input, if any member can, and puts the others, which come in the order
 * of the pool, in the order that their quality and the request call for: the candidates of each member, as they came.
 */
export function rankMembers(
  members: readonly (readonly Candidate[])[],
  { router, request, leftOut }: { router: CatalogModel; request: RoutingRequest; leftOut: LeftOut[] },
): (readonly Candidate[])[] {
  const needs = request.needs?.() ?? noNeeds;
  return rank(withInputs(members, { inputs: needs.inputs, leftOut }), { router, request, needs });
}

function withInputs(
  members: readonly (readonly Candidate[])[],
  { inputs, leftOut }: { inputs: ReadonlySet<InputKind>; leftOut: LeftOut[] },
): readonly (readonly Candidate[])[] {
  let able = members;
  for (const kind of inputs) {
    const takesIt = ([first]: readonly Candidate[]): boolean => first?.model.capabilities.includes(kind) === true;
    // Where no member declares it, the catalog does not know, and the provider has the last word.
    if (!able.some(takesIt)) continue;
    for (const { model, route } of able.filter((member) => !takesIt(member)).flat()) {
      leftOut.push({ provider: route.provider.id, model: model.id, rule: kind });
    }
    able = able.filter(takesIt);
  }
  return able;
}

/** A light request asks for little: little thought, by name, no tools, text alone, and not much of it. */
function isLight({ router, request, needs }: Facts): boolean {
  return router.router?.name === "auto" && request.preferences.sort !== "exacto"
    && needs.effort !== undefined && lightEfforts.has(needs.effort)
    && !request.needsTools && needs.inputs.size === 0 && (request.inputTokens ?? 0) <= lightInputTokensMax;
}

/** Estimates refuse nothing: what may be too short, or thinks too little, goes behind the others. */
function rank(members: readonly (readonly Candidate[])[], facts: Facts): (readonly Candidate[])[] {
  const { router, request, needs } = facts;
  const light = isLight(facts);
  const neededTokens = (request.inputTokens ?? 0) + (request.maxOutputTokens ?? outputTokensDefault);
  const heavy = needs.effort !== undefined && heavyEfforts.has(needs.effort);
  const quality = new Set(router.router?.members.slice(0, router.router.qualityCount));
  const ranked = members.map((candidates) => {
    const [{ model, price: cheapest }] = candidates as [Candidate];
    const short = request.inputTokens !== undefined && model.contextLength > 0 && model.contextLength < neededTokens;
    const shallow = heavy && !model.capabilities.includes("reasoning");
    const reason = short ? `may be too short for about ${request.inputTokens} tokens of input`
      : shallow ? `declares no reasoning, and the effort is ${needs.effort}`
        : light ? "cheapest member, for a light request"
          : quality.has(model) ? "quality member" : "member";
    for (const candidate of candidates) candidate.memberReason = reason;
    return { candidates, short, shallow, cost: light ? cheapest : 0 };
  });
  // Sorting is stable, so equals stay in the order of the pool.
  ranked.sort((left, right) =>
    Number(left.short) - Number(right.short) || Number(left.shallow) - Number(right.shallow) || left.cost - right.cost);
  return ranked.map(({ candidates }) => candidates);
}
