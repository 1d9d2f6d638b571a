import type { PriceRow } from "../../../billing/ledger/price.ts";
import { priceAt } from "../../../billing/ledger/price-levels.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { spendingKeyOf, spendingParentOf } from "../../../identity/keys/caller.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type {
  BatchLeg,
  GatheringLeg,
  ReturningLeg,
} from "../../../platform/kernel/models/batch-leg.ts";
import { extrasOf } from "../../dialects/shared/extras/charged-extras.ts";
import { routeDialect, type Provider, type UpstreamRoute } from "../../catalog/model.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { resolveModel } from "../../routing/resolve-models.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import type { Adapter, InferenceCall } from "../inference-call.ts";
import { type CallPlan, type PlanDependencies, planCall } from "../plan/plan-call.ts";
import { ReturnedAnswer } from "./returned-answer.ts";

/** Ends a request that a provider's batch takes on, or that it cannot take on. */
class LegEndedError extends Error {}

/** The factor of a batch's token prices where no price is stated, in ten-thousandths. */
const halfPrice = 5_000n;

/** The price level at which vendors charge batches. */
const batchLevel = "batch";

const batchRoutes = new WeakMap<UpstreamRoute, UpstreamRoute>();

/**
 * Returns the route at the price of its provider's batches: that of the price level `batch`, or
 * half the ordinary one where the vendor states that for all its models.
 */
function atBatchPrice(route: UpstreamRoute): UpstreamRoute {
  const known = batchRoutes.get(route);
  if (known !== undefined) return known;
  const { price, provider } = route;
  const changed = { ...route, ...(price && { price: batchPriceOf(price, provider) }) };
  batchRoutes.set(route, changed);
  return changed;
}

/** Returns the price row of a batch's requests, in which the level of the answer changes nothing. */
function batchPriceOf(row: PriceRow, { batches }: Pick<Provider, "batches">): PriceRow {
  const own = row.levels?.service_tier?.[batchLevel];
  const isHalf = own === undefined && batches?.halvesPrices === true;
  const level = own ?? { factor: isHalf ? halfPrice : 10_000n };
  const { service_tier: _, ...levels } = row.levels ?? {};
  const priced = priceAt(
    { ...row, levels: { ...levels, service_tier: { [batchLevel]: level } } },
    { service_tier: batchLevel },
  );
  return { ...(priced ?? row), levels };
}

function refuse(leg: GatheringLeg, reason: string): never {
  leg.refuse(reason);
  throw new LegEndedError(reason);
}

/** Plans a request that travels in a provider's batch. Throws as `planCall` does. */
export function planForLeg(deps: PlanDependencies, call: InferenceCall, leg: BatchLeg): CallPlan {
  if (leg.kind === "return") return returningPlan(deps, call, leg);
  // A run may be paused, and counts requests, until each of them begins.
  if (call.caller.run !== undefined) return refuse(leg, "Requests of runs begin one by one.");
  const plan = planCall(deps, call);
  const [first] = plan.candidates;
  const provider = first?.route.provider;
  if (first === undefined || provider?.batches === undefined)
    return refuse(leg, `${provider?.name ?? "The provider"} has no batches of its own.`);
  const { credential } = first;
  if (credential?.source === "pool")
    return refuse(leg, "Requests with donated provider keys do not travel in batches.");
  // What a batch uses of a quota is known at its end alone.
  if (credential !== undefined && credential.key.quota !== null)
    return refuse(leg, "The own provider key has a quota.");
  const hasSecret = credential !== undefined || provider.apiKey !== undefined;
  if (!hasSecret || provider.baseUrl === undefined)
    return refuse(leg, `${provider.name} signs each request by itself.`);
  const sent = call.requirements.extrasAt?.(first.route);
  if (sent !== undefined && extrasOf(sent).levels.service_tier !== undefined)
    return refuse(leg, "A request names another service_tier.");
  return { ...plan, candidates: [{ ...first, route: atBatchPrice(first.route) }] };
}

/** Returns the plan of an answer that has come: the route that gave it, and no other. */
function returningPlan(
  deps: PlanDependencies,
  call: InferenceCall,
  { provider, model: id, upstreamModel, account }: ReturningLeg,
): CallPlan {
  const { model } = resolveModel(deps.catalog(), id);
  const route = model.routes.find(
    (each) => each.provider.id === provider && each.upstreamModel === upstreamModel,
  );
  if (route === undefined)
    throw new GatewayError("no_upstream", `The catalog has no route to ${id} at ${provider} now.`, {
      retry: false,
    });
  const { id: workspaceId } = call.caller.workspace;
  const key =
    account === null
      ? undefined
      : deps.providerKeys.own(workspaceId, { providerId: provider, id: account });
  if (account !== null && key === undefined)
    throw new GatewayError("no_upstream", `The own provider key for ${provider} is gone.`, {
      retry: false,
    });
  const candidate: Candidate = {
    model,
    route: atBatchPrice(call.routeFor?.(route) ?? route),
    modelIndex: 0,
    router: undefined,
    price: 0,
    reason: "the provider's own batch",
    memberReason: "",
    ...(key !== undefined && { credential: { key, source: "own_byok" } }),
  };
  return {
    requestedModel: id,
    viaRouter: false,
    inputTokens: call.requirements.estimateInputTokens(),
    candidates: [candidate],
    leftOut: [],
    losesNothing: false,
  };
}

/**
 * Takes the hold of an answer that has come, out of that of its batch. The provider charges for it,
 * so that it is charged as far as there is money, and the rest is the operator's.
 */
export function holdOfLeg(
  ledger: LedgerPort,
  call: InferenceCall,
  leg: ReturningLeg,
): Promise<void> | undefined {
  const request = {
    holdId: call.generationId,
    workspaceId: call.caller.workspace.id,
    ceilingNano: leg.ceilingNano,
    ...spendingKeyOf(call.caller.key),
    parent: spendingParentOf(call.caller),
  };
  const reserved = leg.outOfHold(() => ledger.reserve(request));
  if (reserved instanceof Promise)
    return reserved.then(async ({ ok }) => {
      if (!ok) await ledger.reserve({ ...request, ceilingNano: 0n });
    });
  if (!reserved.ok) void ledger.reserve({ ...request, ceilingNano: 0n });
  return undefined;
}

/** Returns the answer that has come; ends a request that is being gathered. */
export function throughLeg(
  leg: BatchLeg,
  {
    candidate: { model, route, credential },
    adapter,
  }: { candidate: Pick<Candidate, "model" | "route" | "credential">; adapter: Adapter },
): UpstreamResponse {
  if (leg.kind === "return") return new ReturnedAnswer(leg);
  const dialect = routeDialect(route, model.surface);
  if (adapter.pieces !== undefined || adapter.requestBody !== undefined || dialect === undefined)
    return refuse(leg, "A request cannot be sent as one JSON object.");
  leg.take({
    provider: route.provider.id,
    model: model.id,
    upstreamModel: route.upstreamModel,
    account: credential?.key.id ?? null,
    dialect,
    text: adapter.requestParts?.join("") ?? adapter.requestText,
    headers: adapter.requestHeaders ?? {},
    ceilingNano: leg.ceilingNano,
  });
  throw new LegEndedError("taken by a batch");
}

/** Refuses a request that runs in several rounds. */
export function refuseRounds({ leg }: Pick<InferenceCall, "leg">): void {
  if (leg?.kind === "gather") refuse(leg, "A request calls tools that the gateway runs.");
}
