import { budgetTags, type Budget } from "../../../billing/budgets/budget.ts";
import type { NotReserved, Reserved, ReserveOutcome } from "../../../billing/ledger/hold-rule.ts";
import { spendingKeyOf } from "../../../identity/keys/caller.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { usdFromNano, usdText } from "../../../platform/kernel/money.ts";
import type { Execution } from "../execution.ts";
import type { InferenceCall } from "../inference-call.ts";
import {
  affordedBy,
  hidesThoughts,
  holdCeiling,
  isFree,
  isOnOwnKey,
  isPaid,
  tightHold,
  type ExpectedUse,
  costOfTokens,
} from "./hold-ceiling.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { totalOutputTokens } from "../../../platform/kernel/usage.ts";
import { holdsMedia, saysSomething, type StreamRelay } from "../../dialects/passthrough.ts";
import type { EventReader } from "../../upstream/sse-decoder.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";

/** What a request may use, where its worst case was too dear to be held whole. */
export interface Allowance {
  /** What is held of it, and what the balance and the limits would have borne when it came. */
  heldNano: bigint;
  freeNano: bigint;
  /** The hold grows with the stream, so that its cap is what was free; otherwise what is held. */
  grows: boolean;
  /**
   * The amount that the limits bear which count the caller's own provider keys; undefined where
   * none does.
   */
  byokNano: bigint | undefined;
}

/** A candidate that neither credits nor limits have to bear. */
const isUncounted = (candidate: Candidate): boolean => isFree(candidate) && !isOnOwnKey(candidate);

/** Which candidates are still borne, with less left to hold from one to the next. */
const fallbackPolicies: readonly ((candidate: Candidate) => boolean)[] = [
  () => true,
  isFree,
  isUncounted,
];

type Refused = NotReserved & { expected: ExpectedUse };

/**
 * What a request may use of its candidates. A caller who wants no parameter lost is not given a
 * shorter answer than was asked for.
 */
function expectedUse({
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
  };
}

/**
 * Holds what the request may cost over all candidates. With too little left to hold, those that
 * cost no credits and come before any that does may still serve: provider keys and free models, and
 * with a limit that counts provider keys the latter alone. A request for a paid model is refused.
 * Throws `GatewayError`. A promise only where processes share the ledger.
 */
export function takeHold(
  execution: Execution,
  step = 0,
  before?: Refused,
): Promise<void> | undefined {
  const { deps, call, candidates } = execution;
  const { key, parent, workspace } = call.caller;
  const [first] = candidates;
  const bears = fallbackPolicies[step];
  if (before !== undefined && (first === undefined || bears === undefined || !bears(first)))
    return refuse(execution, before);
  const borne = bears === undefined ? candidates : candidates.filter(bears);
  const expected = expectedUse(execution);
  const grows =
    call.requirements.stream &&
    expected.isUncut !== true &&
    !borne.some((candidate) => hidesThoughts(candidate, call.requirements));
  const ceilingNano = call.unbilled ? 0n : holdCeiling(borne, expected);
  const byokNano = holdCeiling(borne, expected, isOnOwnKey);
  const conclude = (outcome: ReserveOutcome): Promise<void> | undefined => {
    if (!outcome.ok) {
      const refused = { ...outcome, expected };
      const others = outcome.budget === undefined ? [] : beside(outcome.budget, borne);
      if (others.length > 0) {
        execution.candidates = others;
        return takeHold(execution, step, before);
      }
      return outcome.reason === "exists"
        ? refuse(execution, refused)
        : takeHold(execution, step + 1, refused);
    }
    if (ceilingNano > 0n) execution.balanceAtAdmissionNano = outcome.balanceNano;
    execution.candidates = borne;
    execution.allowance = allowanceOf(outcome, { ceilingNano, byokNano, grows });
    return undefined;
  };
  const reserving = deps.ledger.reserve({
    holdId: call.generationId,
    workspaceId: workspace.id,
    ceilingNano,
    byokNano,
    tight: () => tightHold(borne, { expected, grows, counts: isPaid }),
    byokTight: () => tightHold(borne, { expected, grows: false, counts: isOnOwnKey }),
    ...spendingKeyOf(key),
    parent: parent && spendingKeyOf(parent),
    tags: () => tagsOf(call, borne.filter(isPaid)),
    admission: call.admission,
  });
  return reserving instanceof Promise ? reserving.then(conclude) : conclude(reserving);
}

/** The budget tags that a request counts for, with the candidates that may cost credits. */
export function tagsOf(
  { caller: { key, parent } }: Pick<InferenceCall, "caller">,
  candidates: readonly Candidate[],
): string[] {
  return budgetTags({
    keyId: key.id,
    parentId: parent?.id,
    userId: key.creatorUserId,
    models: candidates.map(({ model }) => model.id),
    providers: candidates.map(({ route }) => route.provider.id),
  });
}

/**
 * The candidates that a budget of a model or a provider does not count; none where it counts them
 * all.
 */
function beside(
  { scope, subject }: Budget,
  candidates: readonly Candidate[],
): readonly Candidate[] {
  if (scope !== "model" && scope !== "provider") return [];
  const subjectOf = ({ model, route }: Candidate): string =>
    scope === "model" ? model.id : route.provider.id;
  return candidates.filter((candidate) => !isPaid(candidate) || subjectOf(candidate) !== subject);
}

/** Undefined where the worst case is held whole, so that nothing has to be lowered. */
function allowanceOf(
  { heldNano, freeNano, byokHeldNano }: Reserved,
  { ceilingNano, byokNano, grows }: { ceilingNano: bigint; byokNano: bigint; grows: boolean },
): Allowance | undefined {
  if (heldNano === ceilingNano && (byokHeldNano === undefined || byokHeldNano === byokNano))
    return undefined;
  return { heldNano, freeNano, grows, byokNano: byokHeldNano };
}

/** What an allowance pays of a candidate; undefined where nothing bounds it. */
function amountFor(
  { heldNano, freeNano, grows, byokNano }: Allowance,
  candidate: Candidate,
): bigint | undefined {
  if (isOnOwnKey(candidate)) return byokNano;
  if (isFree(candidate)) return undefined;
  return grows ? freeNano : heldNano;
}

/**
 * The cap that a candidate is to be given in place of a larger one, by its own price; undefined
 * where nothing is lowered. Throws `insufficient_balance` where the candidate is too dear for an
 * answer of any use.
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
 * Says why nothing was held. A workspace whose credits for signing up are still held learns of
 * those.
 */
function refuse({ deps, call, candidates }: Execution, refused: Refused): Promise<void> {
  if (refused.reason === "exists" || refused.reason === "away") throw heldElsewhere(refused.reason);
  const error = unaffordable(candidates, { ...refused, reason: refused.reason });
  if (refused.reason !== "insufficient_balance" || deps.holdsBonus === undefined) throw error;
  return deps.holdsBonus(call.caller.workspace.id).then((isHeld) => {
    throw isHeld ? bonusRefusal() : error;
  });
}

/**
 * What the contract calls a held sign-up bonus: credits are on their way, and the caller can do
 * something for it.
 */
const bonusRefusal = (): GatewayError =>
  new GatewayError(
    "insufficient_balance",
    "There are no credits yet: those for signing up are held until the address is confirmed or the first top-up is made. GET /referrals" +
      " tells which. Until then a model whose id ends in :free can be used.",
    { metadata: { reason: "signup_bonus_pending" } },
  );

const heldElsewhere = (reason: "exists" | "away"): GatewayError =>
  new GatewayError(
    "service_unavailable",
    reason === "away"
      ? "The gateway cannot see what other requests hold at the moment. Try again in a few seconds."
      : "A request with this trace id is under way. Try again in a few seconds.",
    { retryAfterSeconds: 2 },
  );

/** How long other requests hold what this one lacks: most answers have come by then. */
const retryAfterSeconds = 5;

/** What is wrong with the balance or the limit, and what can be done for it. */
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
  budget: {
    reason: "budget_reached",
    name: "a budget",
    way: "raise the budget, or wait until its next period",
  },
} as const;

/** A budget as its refusals name it. */
const budgetFacts = ({ id, name, scope, subject, period }: Budget) => ({
  budget_id: id,
  budget_name: name,
  budget_scope: scope,
  budget_subject: subject,
  budget_period: period,
});

/**
 * The refusal of a request whose answer would be too short to be of use, or shorter than its caller
 * takes.
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
  const { way, ...told } = shortages[reason];
  const name = budget === undefined ? told.name : `the ${budget.period} budget "${budget.name}"`;
  const { leastNano } = tightHold(counted, { expected, grows: false, counts });
  const waits = heldNano > 0n && freeNano + heldNano >= leastNano;
  const held =
    heldNano > 0n ? ` beside the ${usdText(heldNano)} USD that other requests under way hold` : "";
  const less =
    expected.maxOutputTokens === 0 ? "send less at once" : "lower the limit on output tokens";
  const ways = [...(waits ? ["try again when those have ended"] : []), less, way].join(", ");
  const message =
    `This request may cost up to ${usdText(worstNano)} USD, and ${usdText(availableNano)} USD is left of ${name}${held}, ` +
    `which affords ${tokens} output tokens. ${ways[0]?.toUpperCase()}${ways.slice(1)}.`;
  return new GatewayError("insufficient_balance", message, {
    metadata: {
      reason: told.reason,
      ...(budget !== undefined && budgetFacts(budget)),
      worst_case_usd: usdFromNano(worstNano),
      available_usd: usdFromNano(availableNano),
      held_usd: usdFromNano(heldNano),
      affordable_output_tokens: tokens,
    },
    ...(waits && { retryAfterSeconds, retry: true }),
  });
}

/** Tokens that a hold grows ahead of what has come. */
const stepTokens = 4_096;

/**
 * Characters that make a token at the least where text is counted before its provider has counted
 * it.
 */
const charactersPerToken = 3;

/**
 * Characters that are as likely a token each: those of scripts beyond ASCII, as they are or
 * escaped.
 */
const wideCharacter = /[^\x00-\x7f]|\\u[0-9a-fA-F]{4}/g;

type Speaking = Pick<StreamRelay, "finished" | "outputCharacters" | "metered">;

/** A hold that grows ahead of its stream, for one candidate. */
export class StreamAllowance {
  private readonly ledger: Pick<LedgerPort, "grow">;
  private readonly holdId: string;
  private readonly allowance: Allowance;
  private readonly costOf: (tokens: number) => bigint;
  /**
   * What the stream costs at the cap that its provider was given: beyond that nothing has to be
   * held.
   */
  private readonly mostNano: bigint;
  private wideCharacters = 0;
  /** Tokens of output that the hold is known to pay. */
  private coveredTokens = 0;

  private constructor(
    { deps, call, allowance }: Execution & { allowance: Allowance },
    {
      candidate,
      expected,
      mostTokens,
    }: { candidate: Candidate; expected: ExpectedUse; mostTokens: number },
  ) {
    this.ledger = deps.ledger;
    this.holdId = call.generationId;
    this.allowance = allowance;
    this.costOf = (tokens) => costOfTokens(tokens, candidate, expected);
    this.mostNano = this.costOf(mostTokens);
  }

  /**
   * The allowance of a stream whose hold has to grow; undefined where what is held pays for all
   * that can come.
   */
  static of(
    execution: Execution,
    { candidate, outputCap }: { candidate: Candidate; outputCap: number | undefined },
  ): StreamAllowance | undefined {
    const { allowance } = execution;
    if (allowance?.grows !== true || !isPaid(candidate) || execution.call.unbilled)
      return undefined;
    const expected = expectedUse(execution);
    const { askedTokens } = affordedBy(allowance.freeNano, candidate, expected);
    const mostTokens = (outputCap ?? askedTokens) * expected.choices;
    const stream = new StreamAllowance(
      { ...execution, allowance },
      { candidate, expected, mostTokens },
    );
    return stream.isWhole ? undefined : stream;
  }

  private get isWhole(): boolean {
    return this.allowance.heldNano >= this.mostNano;
  }

  /**
   * The frames of the next event where it is paid for; otherwise its upstream is left, and they end
   * the answer at its limit. A promise for the last event, and where several processes are asked to
   * raise the hold; the events between make none.
   */
  next({
    reader,
    relay,
    response,
  }: {
    reader: EventReader;
    relay: StreamRelay;
    response: Pick<UpstreamResponse, "abort">;
  }): string | Promise<string> | undefined {
    const event = reader.next();
    if (event === undefined) return undefined;
    const pass = (isBorne: boolean): string | Promise<string> => {
      if (isBorne) return relay.accept(event);
      response.abort();
      return relay.endAtCap();
    };
    const admitted = this.admits(relay, event.data);
    return admitted instanceof Promise ? admitted.then(pass) : pass(admitted);
  }

  /**
   * Whether an event may be passed on: the hold pays for what was said with it, or could be raised
   * as far.
   */
  private admits(relay: Speaking, data: string): boolean | Promise<boolean> {
    if (this.isWhole || relay.finished || !saysSomething(data)) return true;
    const wide = data.match(wideCharacter)?.length ?? 0;
    this.wideCharacters += wide;
    const said = Math.max(
      totalOutputTokens(relay.metered().usage),
      tokensOf(relay.outputCharacters + 2 * this.wideCharacters),
    );
    const tokens = said + (holdsMedia(data) ? 1 : tokensOf(data.length + 2 * wide));
    return tokens <= this.coveredTokens || this.raise(tokens);
  }

  private raise(tokens: number): boolean | Promise<boolean> {
    if (this.pays(tokens)) return true;
    const ahead = this.costOf(tokens + stepTokens);
    const grown = this.ledger.grow(this.holdId, ahead < this.mostNano ? ahead : this.mostNano);
    const conclude = (heldNano: bigint): boolean => {
      this.allowance.heldNano = heldNano;
      return this.isWhole || this.pays(tokens);
    };
    return grown instanceof Promise ? grown.then(conclude) : conclude(grown);
  }

  private pays(tokens: number): boolean {
    if (this.costOf(tokens) > this.allowance.heldNano) return false;
    this.coveredTokens = tokens;
    return true;
  }
}

const tokensOf = (characters: number): number => Math.ceil(characters / charactersPerToken);
