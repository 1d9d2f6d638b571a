import type { CatalogModel, RouterPool } from "../catalog/model.ts";
import type { LeftOut, RoutingRequest } from "./candidate.ts";
import type { PlannedCandidate } from "./planned-candidate.ts";
import type { InputKind, RequestNeeds } from "./request-needs.ts";

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
 * Leaves out members that cannot take the request's kinds of input, if any member can, and puts the others, which come in the order
 * of the pool, in the order that their quality and the request call for: the candidates of each member, as they came.
 */
export function rankMembers(
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

/** A light request asks for little: little thought, by name, no tools, text alone, and not much of it. */
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

/** Estimates refuse nothing: what may be too short, or thinks too little, goes behind the others. */
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
