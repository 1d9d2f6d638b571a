import { basePeriodOf } from "../../../billing/budgets/budget.ts";
import { budgetFacts } from "../../../billing/budgets/refusal-facts.ts";
import type { NotReserved } from "../../../billing/ledger/hold-rule.ts";
import { countText } from "../../../platform/kernel/count-text.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { usdFromNano, usdText } from "../../../platform/kernel/money.ts";
import type { Execution } from "../execution.ts";
import type { Candidate } from "../../routing/candidate.ts";
import {
  affordedBy,
  holdCeiling,
  isOnOwnKey,
  isPaid,
  tightHold,
  type ExpectedUse,
} from "./hold-ceiling.ts";

/** A request for which nothing was held, and what it would have used. */
export type Refused = NotReserved & { expected: ExpectedUse };

/**
 * Throws the reason why nothing was held. A workspace whose sign-up credits are still held learns
 * that.
 */
export function refuse({ deps, call, candidates }: Execution, refused: Refused): Promise<void> {
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
  new GatewayError("service_unavailable", unavailableHolds[reason], {
    retryAfterSeconds: 2,
    ...(reason === "away" && { metadata: { reason: "shared_state_away" } }),
  });

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
export function unaffordable(
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
  const affords = hasOutput ? `, which affords ${countText(tokens, "output token")}` : "";
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
