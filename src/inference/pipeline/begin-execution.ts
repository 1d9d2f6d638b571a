import { GatewayError } from "../../platform/kernel/errors.ts";
import type { InferenceCall } from "./inference-call.ts";
import { sessionOf, modelFor, trailOf, noRoute, type CallPlan } from "./plan/plan-call.ts";
import { holdOfLeg, planForLeg } from "./batches/batch-leg.ts";
import type { Candidate } from "../routing/candidate.ts";
import { takeHold } from "./hold/take-hold.ts";
import { expectedUse, holdCeiling } from "./hold/hold-ceiling.ts";
import { AbortScope } from "../upstream/abort-scope.ts";
import { assertServed } from "../../billing/customers/customer-book.ts";
import type { Admission } from "../../billing/ledger/hold-rule.ts";
import { prefixName, type Session } from "../routing/affinity.ts";
import { isAtPlace, isSamePlace, type SessionPlace } from "../routing/sticky-sessions.ts";
import type { Execution, InferenceDependencies } from "./execution.ts";
import { recordUnrouted } from "./settlement/records.ts";

/**
 * Plans a request and takes its hold. Throws `GatewayError` when the request is not allowed, cannot
 * be served, or needs no provider. Returns a promise only where processes share the ledger or
 * sessions.
 */
export const beginExecution = (
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> =>
  call.admission === undefined
    ? openExecution(deps, call)
    : openWhileAdmitted(deps, call, call.admission);

/**
 * Prepares a request while its rate windows are counted. A refusal by a rate window takes
 * precedence over any other, and leaves no hold.
 */
async function openWhileAdmitted(
  deps: InferenceDependencies,
  call: InferenceCall,
  { counted }: Admission,
): Promise<Execution> {
  const opening = (async () => openExecution(deps, call))();
  const [opened, admission] = await Promise.allSettled([opening, counted]);
  if (admission.status === "rejected") {
    deps.ledger.void(call.generationId);
    throw admission.reason;
  }
  if (opened.status === "rejected") throw opened.reason;
  return opened.value;
}

function openExecution(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  if (deps.chargesStall()) throw stallRefusal();
  // An answer that a provider's batch has given is charged in any case.
  if (call.leg?.kind !== "return") assertServed(deps.ledger, call);
  if (!deps.sessions.isShared) return planExecution(deps, call);
  const named = sessionOf(call);
  if (named === undefined) return planByPrefix(deps, call);
  const { model } = modelFor(deps, { ...call, id: String(call.body["model"]) });
  return planWhileRecalling(deps, call, { session: named, modelId: model.id });
}

/**
 * Plans a request and takes its hold while the gateway learns where other gateways served its
 * session. The hold covers all candidates in any order. Rejects as `beginExecution` does.
 */
async function planWhileRecalling(
  deps: InferenceDependencies,
  call: InferenceCall,
  asked: AskedSession,
): Promise<Execution> {
  const before = deps.sessions.lastPlace(asked.session, asked.modelId);
  const recalling = deps.sessions.recall(asked.session, asked.modelId);
  const execution = await planExecution(deps, call);
  await recalling;
  return movedToPlace(execution, { ...asked, before });
}

/**
 * Plans a request that names no session. Other gateways are asked only where the plan had to look
 * for the session of its cached prefix.
 */
function planByPrefix(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  const planning = planExecution(deps, call);
  const isNeeded = sessionOf(call) !== undefined;
  return isNeeded ? recallAfter(planning) : planning;
}

async function recallAfter(planning: Execution | Promise<Execution>): Promise<Execution> {
  const execution = await planning;
  const { deps, call, requestedModel: modelId } = execution;
  const session = sessionOf(call);
  if (session === undefined) return execution;
  const before = deps.sessions.lastPlace(session, modelId);
  await deps.sessions.recall(session, modelId);
  return movedToPlace(execution, { session, modelId, before });
}

/** A session, and the id of the model that it asks for. */
interface AskedSession {
  session: Session;
  modelId: string;
}

/** Returns an execution with the candidate first that other gateways know to serve the session. */
function movedToPlace(
  execution: Execution,
  { session, modelId, before }: AskedSession & { before: SessionPlace | undefined },
): Execution {
  const { deps, call } = execution;
  const place = deps.sessions.lastPlace(session, modelId);
  if (place === undefined || (before !== undefined && isSamePlace(place, before))) return execution;
  const [first] = trailOf(deps, call).candidates;
  if (first === undefined || !isAtPlace(first, place)) return execution;
  const held = execution.candidates.find((candidate) => isAtPlace(candidate, place));
  if (held === undefined) return execution;
  const others = execution.candidates.filter((candidate) => candidate !== held);
  execution.candidates = [{ ...held, reason: first.reason }, ...others];
  return execution;
}

/**
 * Remembers which provider serves the request's session. Returns true when another provider did
 * before.
 */
export function noteSession(
  { deps, call, requestedModel }: Execution,
  candidate: Candidate,
): boolean {
  const session = sessionOf(call);
  if (session === undefined) return false;
  const moved = deps.sessions.recordServed(session, { requestedModel, candidate });
  // A caller that names no session is not informed of moves.
  return moved && session.by !== prefixName;
}

/**
 * Returns what `beginExecution` would find for a request, without serving it and without leaving a
 * hold. Throws as `beginExecution` does.
 */
export async function tryOut(deps: InferenceDependencies, call: InferenceCall): Promise<Execution> {
  const execution = await beginExecution(deps, call);
  deps.ledger.void(call.generationId);
  return execution;
}

function planExecution(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  const { leg } = call;
  const plan = leg === undefined ? planOrRecord(deps, call) : planForLeg(deps, call, leg);
  const execution: Execution = {
    deps,
    call,
    requestedModel: plan.requestedModel,
    viaRouter: plan.viaRouter,
    losesNothing: plan.losesNothing,
    inputTokens: plan.inputTokens,
    candidates: plan.candidates,
    leftOut: plan.leftOut,
    failed: [],
    heldBack: [],
    notCalled: [],
    abortScope: new AbortScope(call.signalOf, { aborts: deps.disconnect === "abort" }),
    balanceAtAdmissionNano: undefined,
    overflownTokens: undefined,
    consumed: undefined,
    allowance: undefined,
    firstSendMs: 0,
    accepted: false,
  };
  if (leg?.kind === "gather") {
    leg.ceilingNano = holdCeiling(execution.candidates, expectedUse(execution));
    return execution;
  }
  const holding = leg === undefined ? takeHold(execution) : holdOfLeg(deps.ledger, call, leg);
  return holding === undefined ? execution : holding.then(() => execution);
}

/** Builds the refusal while the database takes no charges: an answer would cost the operator. */
const stallRefusal = (): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway's database takes no charges at the moment, so no provider was asked. Try again in a few seconds.",
    { retryAfterSeconds: 2 },
  );

/**
 * Plans a call as `planCall` does. A request that no route can serve leaves a record, unless its
 * rate windows refuse it.
 */
function planOrRecord(deps: InferenceDependencies, call: InferenceCall): CallPlan {
  const trail = trailOf(deps, call);
  if (trail.candidates.length > 0) return trail;
  const error = noRoute(trail);
  const record = (): void => recordUnrouted(deps, { call, trail, error });
  if (call.admission === undefined) record();
  else call.admission.counted.then(record, () => undefined);
  throw error;
}
