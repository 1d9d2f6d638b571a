import { basePeriodOf, type Budget } from "../../../billing/budgets/budget.ts";
import { budgetFacts } from "../../../billing/budgets/refusal-facts.ts";
import type { NotReserved, Reserved, ReserveOutcome } from "../../../billing/ledger/hold-rule.ts";
import { spendingKeyOf, spendingParentOf } from "../../../identity/keys/caller.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { usdFromNano, usdText } from "../../../platform/kernel/money.ts";
import type { Execution } from "../execution.ts";
import {
  affordedBy,
  hidesThoughts,
  holdCeiling,
  isFree,
  isOnOwnKey,
  isPaid,
  tightHold,
  type ExpectedUse,
} from "./hold-ceiling.ts";
import { shareOf, tagsOf } from "./request-tags.ts";
import type { Candidate } from "../../routing/candidate.ts";

/** The amount that a request may use, where its worst case was too expensive to be held whole. */
export interface Allowance {
  /**
   * The amount held, and the amount that the balance and the limits could have paid at admission.
   */
  heldNano: bigint;
  freeNano: bigint;
  /**
   * Whether the hold grows with the stream. Its cap is then `freeNano`; otherwise it is `heldNano`.
   */
  grows: boolean;
  /**
   * The amount left under the limits that count the caller's own provider keys; undefined where
   * there is no such limit.
   */
  byokNano: bigint | undefined;
}

/** Returns whether a candidate counts against neither credits nor limits. */
const isUncounted = (candidate: Candidate): boolean => isFree(candidate) && !isOnOwnKey(candidate);

/**
 * Filters of the candidates that remain when too little is left to hold for all of them, from least
 * to most restrictive.
 */
const fallbackPolicies: readonly ((candidate: Candidate) => boolean)[] = [
  () => true,
  isFree,
  isUncounted,
];

type Refused = NotReserved & { expected: ExpectedUse };

/**
 * Returns what a request may use of its candidates. A caller who requires all parameters is not
 * given a shorter answer than requested.
 */
export function expectedUse({
  call: { requirements },
  inputTokens,
  losesNothing,
}: Pick<Execution, "call" | "inputTokens" | "losesNothing">): ExpectedUse {
  const { maxOutputTokens, thoughtTokens, thoughtBudget, choices } = requirements;
  return {
    inputTokens,
    maxOutputTokens,
    thoughtTokens,
    thoughtBudget,
    choices,
    isUncut: requirements.isUncut === true || (losesNothing && maxOutputTokens !== undefined),
    ...(requirements.mayUse !== undefined && {
      mayUse: (part) => requirements.mayUse?.(part) === true,
    }),
    ...(requirements.extrasAt !== undefined && {
      extrasAt: (route) => requirements.extrasAt?.(route),
    }),
    ...(requirements.mediaAt !== undefined && { mediaAt: requirements.mediaAt }),
  };
}

/**
 * Holds the amount that the request may cost over all candidates. Where too little is left, only
 * the candidates that cost no credits and come before every paid one may serve: those on provider
 * keys and free models, or, under a limit that counts provider keys, free models alone. A request
 * for a paid model is refused. Throws `GatewayError`. Returns a promise only where processes share
 * the ledger.
 */
export function takeHold(
  execution: Execution,
  step = 0,
  previous?: Refused,
): Promise<void> | undefined {
  const { deps, call, candidates } = execution;
  const { key, workspace } = call.caller;
  const [first] = candidates;
  const mayServe = fallbackPolicies[step];
  if (previous !== undefined && (first === undefined || mayServe === undefined || !mayServe(first)))
    return refuse(execution, previous);
  const affordable = mayServe === undefined ? candidates : candidates.filter(mayServe);
  const expected = expectedUse(execution);
  const grows =
    call.requirements.stream &&
    expected.isUncut !== true &&
    !affordable.some((candidate) => hidesThoughts(candidate, call.requirements));
  const ceilingNano = call.unbilled ? 0n : holdCeiling(affordable, expected);
  const byokNano = holdCeiling(affordable, expected, isOnOwnKey);
  const conclude = (outcome: ReserveOutcome): Promise<void> | undefined => {
    if (!outcome.ok) {
      const refused = { ...outcome, expected };
      const others = outcome.budget === undefined ? [] : notCountedBy(outcome.budget, affordable);
      if (others.length > 0) {
        execution.candidates = others;
        return takeHold(execution, step, previous);
      }
      return outcome.reason === "exists"
        ? refuse(execution, refused)
        : takeHold(execution, step + 1, refused);
    }
    if (ceilingNano > 0n) execution.balanceAtAdmissionNano = outcome.balanceNano;
    execution.candidates = affordable;
    execution.allowance = allowanceOf(outcome, { ceilingNano, byokNano, grows });
    return undefined;
  };
  const paid = affordable.filter(isPaid);
  const share =
    ceilingNano > 0n ? shareOf(call, { ledger: deps.ledger, candidates: paid }) : undefined;
  const reserving = deps.ledger.reserve({
    holdId: call.generationId,
    workspaceId: workspace.id,
    ceilingNano,
    byokNano,
    tight: () => tightHold(affordable, { expected, grows, counts: isPaid }),
    byokTight: () => tightHold(affordable, { expected, grows: false, counts: isOnOwnKey }),
    ...spendingKeyOf(key),
    parent: spendingParentOf(call.caller),
    tags: () => tagsOf(call, { ledger: deps.ledger, candidates: paid, share }),
    admission: call.admission,
  });
  return reserving instanceof Promise ? reserving.then(conclude) : conclude(reserving);
}

/**
 * Returns the candidates that a model's or provider's budget does not count; none where it counts
 * all of them.
 */
function notCountedBy(
  { scope, subject }: Budget,
  candidates: readonly Candidate[],
): readonly Candidate[] {
  if (scope !== "model" && scope !== "provider") return [];
  const subjectOf = ({ model, route }: Candidate): string =>
    scope === "model" ? model.id : route.provider.id;
  return candidates.filter((candidate) => !isPaid(candidate) || subjectOf(candidate) !== subject);
}

/**
 * Returns the allowance of a request; undefined where the worst case is held whole and nothing has
 * to be lowered.
 */
function allowanceOf(
  { heldNano, freeNano, byokHeldNano }: Reserved,
  { ceilingNano, byokNano, grows }: { ceilingNano: bigint; byokNano: bigint; grows: boolean },
): Allowance | undefined {
  if (heldNano === ceilingNano && (byokHeldNano === undefined || byokHeldNano === byokNano))
    return undefined;
  return { heldNano, freeNano, grows, byokNano: byokHeldNano };
}

/**
 * Returns the amount that an allowance can spend on a candidate; undefined where it is unbounded.
 */
function amountFor(
  { heldNano, freeNano, grows, byokNano }: Allowance,
  candidate: Candidate,
): bigint | undefined {
  if (isOnOwnKey(candidate)) return byokNano;
  if (isFree(candidate)) return undefined;
  return grows ? freeNano : heldNano;
}

/**
 * Returns the lower cap that a candidate has to be given at its price; undefined where none is
 * needed. Throws `insufficient_balance` where the candidate is too expensive for a useful answer.
 */
export function outputCapFor(execution: Execution, candidate: Candidate): number | undefined {
  const { allowance, call } = execution;
  const amountNano =
    allowance === undefined || call.unbilled ? undefined : amountFor(allowance, candidate);
  if (amountNano === undefined) return undefined;
  const expected = expectedUse(execution);
  const { askedTokens, tokens, isTooFew } = affordedBy(amountNano, candidate, expected);
  if (isTooFew)
    throw unaffordable([candidate], {
      expected,
      freeNano: amountNano,
      heldNano: 0n,
      reason: "insufficient_balance",
    });
  return tokens < askedTokens ? tokens : undefined;
}

/**
 * Throws the reason why nothing was held. A workspace whose sign-up credits are still held learns
 * that.
 */
function refuse({ deps, call, candidates }: Execution, refused: Refused): Promise<void> {
  if (isUnavailable(refused.reason)) throw holdUnavailable(refused.reason);
  const isRun = refused.reason === "key_limit" && call.caller.run !== undefined;
  const reason = isRun ? "run" : refused.budget?.scope === "plan" ? "plan" : refused.reason;
  const error = unaffordable(candidates, { ...refused, reason });
  if (refused.reason !== "insufficient_balance" || deps.holdsBonus === undefined) throw error;
  return deps.holdsBonus(call.caller.workspace.id).then((isHeld) => {
    throw isHeld ? bonusRefusal() : error;
  });
}

/**
 * Builds the error for a held sign-up bonus (contract: `signup_bonus_pending`): the caller has
 * credits and can release them.
 */
const bonusRefusal = (): GatewayError =>
  new GatewayError(
    "insufficient_balance",
    "There are no credits yet: those for signing up are held until the address is confirmed or the first top-up is made. GET /referrals" +
      " tells which. Until then a model whose id ends in :free can be used.",
    { metadata: { reason: "signup_bonus_pending" } },
  );

/** Messages for holds that cannot be taken for a reason that no caller can change. */
const unavailableHolds = {
  away: "The gateway cannot see what other requests hold at the moment. Try again in a few seconds.",
  mismatch:
    "This gateway's Valkey or Redis is not the one of the other gateways on its database, so it admits no paid requests. Its operator " +
    "finds the addresses in the log.",
  exists: "A request with this trace id is under way. Try again in a few seconds.",
} as const;

const isUnavailable = (reason: string): reason is keyof typeof unavailableHolds =>
  Object.hasOwn(unavailableHolds, reason);

const holdUnavailable = (reason: keyof typeof unavailableHolds): GatewayError =>
  new GatewayError("service_unavailable", unavailableHolds[reason], { retryAfterSeconds: 2 });

/** Seconds within which most requests that hold the missing credits end. */
const retryAfterSeconds = 5;

/** The words that name each shortage and its remedy. */
const shortages = {
  insufficient_balance: {
    reason: "balance_too_low",
    name: "the balance",
    way: "add credits, or use a model whose id ends in :free",
  },
  key_limit: {
    reason: "key_limit_reached",
    name: "this key's spending limit",
    way: "raise the limit, or wait until its window has moved on",
  },
  run: {
    reason: "run_limit_reached",
    name: "this run",
    way: "add to the run at metadata.resume_url",
  },
  plan: {
    reason: "customer_limit_reached",
    name: "this customer's plan",
    way: "raise the plan, add to its credits, or wait until its next period",
  },
  budget: {
    reason: "budget_reached",
    name: "a budget",
    way: "raise the budget, or wait until its next period",
  },
} as const;

/**
 * Builds the refusal of a request whose answer would be too short to be useful, or shorter than its
 * caller accepts.
 */
function unaffordable(
  candidates: readonly Candidate[],
  {
    expected,
    freeNano,
    heldNano,
    reason,
    budget,
  }: Pick<Refused, "expected" | "freeNano" | "heldNano" | "budget"> & {
    reason: keyof typeof shortages;
  },
): GatewayError {
  const counted = candidates.filter((candidate) => isPaid(candidate) || isOnOwnKey(candidate));
  const counts = (candidate: Candidate): boolean => counted.includes(candidate);
  const worstNano = holdCeiling(counted, expected, counts);
  const availableNano = freeNano < 0n ? 0n : freeNano;
  const tokens = Math.max(
    0,
    ...counted.map((candidate) => affordedBy(availableNano, candidate, expected).tokens),
  );
  const { way, ...shortage } = shortages[reason];
  const name =
    budget === undefined || budget.scope === "plan"
      ? shortage.name
      : `the ${basePeriodOf(budget.period).period} budget "${budget.name}"`;
  const { leastNano } = tightHold(counted, { expected, grows: false, counts });
  const waits = heldNano > 0n && freeNano + heldNano >= leastNano;
  const held =
    heldNano > 0n ? ` beside the ${usdText(heldNano)} USD that other requests under way hold` : "";
  const hasOutput = expected.maxOutputTokens !== 0;
  const less = hasOutput ? "lower the limit on output tokens" : "send less at once";
  const affords = hasOutput ? `, which affords ${tokens} output tokens` : "";
  const ways = [...(waits ? ["try again when those have ended"] : []), less, way].join(", ");
  const message =
    `This request may cost up to ${usdText(worstNano)} USD, and ${usdText(availableNano)} USD is left of ${name}${held}` +
    `${affords}. ${ways[0]?.toUpperCase()}${ways.slice(1)}.`;
  return new GatewayError(reason === "run" ? "run_exhausted" : "insufficient_balance", message, {
    metadata: {
      reason: shortage.reason,
      ...(budget !== undefined && budgetFacts(budget)),
      worst_case_usd: usdFromNano(worstNano),
      available_usd: usdFromNano(availableNano),
      held_usd: usdFromNano(heldNano),
      affordable_output_tokens: tokens,
    },
    ...(waits && { retryAfterSeconds, retry: true }),
  });
}
