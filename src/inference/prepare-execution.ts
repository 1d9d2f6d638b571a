import type { ReserveOutcome } from "../account/ledger/ledger.ts";
import { spendingKeyOf } from "../account/keys/spending-key.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { Execution } from "./execution.ts";
import { holdCeiling, isFree, ownKeyCeiling } from "./hold-ceiling.ts";
import type { InferenceCall } from "./inference-call.ts";
import { modelFor, sessionOf } from "./plan-call.ts";
import { planOrRecord } from "./record-unsettled.ts";
import type { Candidate } from "./routing/candidate.ts";
import { Lifeline } from "./upstream/lifeline.ts";

/**
 * Plans a request and takes its hold; throws `GatewayError` when it may not, cannot or need not be served. A promise
 * where processes share the ledger, or where sessions were.
 */
export function prepare(deps: InferenceDependencies, call: InferenceCall): Execution | Promise<Execution> {
  if (deps.chargesStall()) throw stallRefusal();
  const session = deps.sessions.isShared ? sessionOf(call) : undefined;
  if (session === undefined) return planned(deps, call);
  const { model } = modelFor(deps, { ...call, id: String(call.body["model"]) });
  return deps.sessions.recall(session, model.id).then(() => planned(deps, call));
}

function planned(deps: InferenceDependencies, call: InferenceCall): Execution | Promise<Execution> {
  const plan = planOrRecord(deps, call);
  const execution: Execution = {
    deps, call, ...plan, failed: [], heldBack: [], unsayable: [],
    lifeline: new Lifeline(call.signalOf, { aborts: deps.disconnect === "abort" }),
    balanceAtAdmissionNano: undefined, overflownTokens: undefined, firstSendMs: 0, accepted: false,
  };
  const holding = hold(execution, 0);
  return holding === undefined ? execution : holding.then(() => execution);
}

/** A candidate that neither credits nor limits have to bear. */
const isUncounted = (candidate: Candidate): boolean => isFree(candidate) && candidate.credential?.source !== "own_byok";

/** Which candidates are still borne, with less left to hold from one to the next. */
const bearings: readonly ((candidate: Candidate) => boolean)[] = [() => true, isFree, isUncounted];

/**
 * Holds the worst case over all candidates. With nothing left to hold, those that cost no credits and come before
 * any that does may still serve: provider keys and free models, and with a limit that counts provider keys the
 * latter alone. A request for a paid model is refused.
 */
function hold(execution: Execution, step: number, before: Refusal = "insufficient_balance"): Promise<void> | undefined {
  const { deps, call, candidates, inputTokens } = execution;
  const { key, parent, workspace } = call.caller;
  const [first] = candidates;
  const bears = bearings[step];
  if (first === undefined || bears === undefined || !bears(first)) {
    if (before !== "insufficient_balance" || deps.holdsBonus === undefined) throw refusal(before);
    return deps.holdsBonus(workspace.id).then((isHeld) => {
      throw isHeld ? bonusRefusal() : refusal(before);
    });
  }
  const borne = candidates.filter(bears);
  const expected = { inputTokens, ...call.asks };
  const ceilingNano = call.unbilled ? 0n : holdCeiling(borne, expected);
  const conclude = (outcome: ReserveOutcome): Promise<void> | undefined => {
    if (!outcome.ok) {
      if (outcome.reason === "exists") throw refusal(outcome.reason);
      return hold(execution, step + 1, outcome.reason);
    }
    if (ceilingNano > 0n) execution.balanceAtAdmissionNano = outcome.balanceNano;
    execution.candidates = borne;
    return undefined;
  };
  const reserving = deps.ledger.reserve({
    holdId: call.generationId, workspaceId: workspace.id, ceilingNano, byokNano: ownKeyCeiling(borne, expected),
    ...spendingKeyOf(key), parent: parent && spendingKeyOf(parent),
  });
  return reserving instanceof Promise ? reserving.then(conclude) : conclude(reserving);
}

type Refusal = Extract<ReserveOutcome, { ok: false }>["reason"];

/** While the database takes no charges, nothing is asked of a provider: it would cost us and could not be charged. */
const stallRefusal = (): GatewayError =>
  new GatewayError(
    "service_unavailable",
    "The gateway's database takes no charges at the moment, so no provider was asked. Try again in a few seconds.",
    { retryAfterSeconds: 2 },
  );

/** What the contract calls a held sign-up bonus: credits are on their way, and the caller can do something for it. */
const bonusRefusal = (): GatewayError =>
  new GatewayError(
    "insufficient_balance",
    "There are no credits yet: those for signing up are held until the address is confirmed or the first top-up is made. GET /referrals"
      + " tells which. Until then a model whose id ends in :free can be used.",
    { metadata: { reason: "signup_bonus_pending" } },
  );

function refusal(reason: Refusal): GatewayError {
  if (reason === "away") {
    const message = "The gateway cannot see what other requests hold at the moment. Try again in a few seconds.";
    return new GatewayError("service_unavailable", message, { retryAfterSeconds: 2 });
  }
  if (reason === "key_limit") {
    return new GatewayError("insufficient_balance", "This key has reached its spending limit. Raise its limit or wait until its window has moved on.", {
      metadata: { reason: "key_limit_reached" },
    });
  }
  return new GatewayError("insufficient_balance", "There are no credits left for a paid model. Add credits, or use a model whose id ends in :free.");
}
