import { GatewayError } from "../platform/lib/errors.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { Execution } from "./execution.ts";
import type { InferenceCall } from "./inference-call.ts";
import { modelFor, sessionOf } from "./plan-call.ts";
import { planOrRecord } from "./record-unsettled.ts";
import { takeHold } from "./take-hold.ts";
import { Lifeline } from "./upstream/lifeline.ts";

/**
 * Plans a request and takes its hold; throws `GatewayError` when it may not, cannot or need not be served. A promise
 * where processes share the ledger, or where sessions were.
 */
export function prepare(
  deps: InferenceDependencies,
  call: InferenceCall,
): Execution | Promise<Execution> {
  if (deps.chargesStall()) throw stallRefusal();
  const session = deps.sessions.isShared ? sessionOf(call) : undefined;
  if (session === undefined) return planned(deps, call);
  const { model } = modelFor(deps, { ...call, id: String(call.body["model"]) });
  return deps.sessions.recall(session, model.id).then(() => planned(deps, call));
}

/** What `prepare` finds for a request that is not served yet; nothing stays held. Throws as it does. */
export async function tryOut(deps: InferenceDependencies, call: InferenceCall): Promise<Execution> {
  const execution = await prepare(deps, call);
  deps.ledger.void(call.generationId);
  return execution;
}

function planned(deps: InferenceDependencies, call: InferenceCall): Execution | Promise<Execution> {
  const plan = planOrRecord(deps, call);
  const execution: Execution = {
    deps,
    call,
    ...plan,
    failed: [],
    heldBack: [],
    unsayable: [],
    lifeline: new Lifeline(call.signalOf, { aborts: deps.disconnect === "abort" }),
    balanceAtAdmissionNano: undefined,
    overflownTokens: undefined,
    consumed: undefined,
    allowance: undefined,
    firstSendMs: 0,
    accepted: false,
  };
  const holding = takeHold(execution);
  return holding === undefined ? execution : holding.then(() => execution);
}

/** While the database takes no charges, nothing is asked of a provider: it would cost us and could not be charged. */
const stallRefusal = (): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway's database takes no charges at the moment, so no provider was asked. Try again in a few seconds.",
    { retryAfterSeconds: 2 },
  );
