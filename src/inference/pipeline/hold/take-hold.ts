import type { Execution, Allowance } from "../execution.ts";
import {
  affordedBy,
  isFree,
  isOnOwnKey,
  expectedUse,
  hidesThoughts,
  holdCeiling,
  isPaid,
  tightHold,
  type ExpectedUse,
} from "./hold-ceiling.ts";
import { unaffordable, refuse, type Refused } from "./hold-refusal.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { Budget, CustomerShare, Sender } from "../../../billing/budgets/budget.ts";
import type { Reserved, ReserveOutcome } from "../../../billing/ledger/hold-rule.ts";
import { spendingKeyOf, spendingParentOf } from "../../../identity/keys/caller.ts";
import { countedSenders, countedTags } from "../../../billing/budgets/counted-request.ts";
import { shareOfRequest } from "../../../billing/customers/customer-book.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { timeOfId } from "../../../insights/generation-record.ts";
import type { InferenceCall } from "../inference-call.ts";

/**
 * Holds the amount that the request may cost over all candidates. Where too little is left, only
 * the candidates that cost no credits and come before every paid one may serve: those on provider
 * keys and free models, or, under a limit that counts provider keys, free models alone. A request
 * for a paid model is refused. Throws `GatewayError`. Returns a promise only where processes share
 * the ledger.
 */
export function takeHold(execution: Execution): Promise<void> | undefined {
  const search = new HoldSearch(execution);
  while (!search.isOver) {
    const outcome = search.reserve();
    if (outcome instanceof Promise) return search.continueAfter(outcome);
    search.accept(outcome);
  }
  return search.refusal;
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

/** Returns whether a candidate counts against neither credits nor limits. */
const isUncounted = (candidate: Candidate): boolean => isFree(candidate) && !isOnOwnKey(candidate);

/**
 * Filters of the candidates that remain when too little is left to hold for all of them, from least
 * to most restrictive. The first keeps all of them.
 */
const fallbackPolicies: readonly (((candidate: Candidate) => boolean) | undefined)[] = [
  undefined,
  isFree,
  isUncounted,
];

/** The candidates that one try holds for, and the most that they may cost. */
interface HoldTry {
  affordable: readonly Candidate[];
  expected: ExpectedUse;
  grows: boolean;
  ceilingNano: bigint;
  byokNano: bigint;
}

/** Tries one policy after another, until a hold is taken or none of them may serve. */
class HoldSearch {
  /** Whether a hold was taken or the request refused. */
  isOver = false;
  /** The refusal, which rejects; undefined where a hold was taken or the refusal was thrown. */
  refusal: Promise<void> | undefined;
  private policy = 0;
  /** Why the policy before the present one held nothing; undefined for the first. */
  private previous: Refused | undefined;
  private tried: HoldTry;

  constructor(private readonly execution: Execution) {
    this.tried = this.nextTry();
  }

  /** Asks the ledger for a hold for the candidates that the present policy lets serve. */
  reserve(): ReserveOutcome | Promise<ReserveOutcome> {
    const { deps, call } = this.execution;
    const { key, workspace } = call.caller;
    const { affordable, expected, grows, ceilingNano, byokNano } = this.tried;
    const paid = affordable.filter(isPaid);
    const share =
      ceilingNano > 0n ? shareOf(call, { ledger: deps.ledger, candidates: paid }) : undefined;
    const { keyId, keyLimit, countsByok } = spendingKeyOf(key);
    return deps.ledger.reserve({
      holdId: call.generationId,
      workspaceId: workspace.id,
      ceilingNano,
      byokNano,
      tight: () => tightHold(affordable, { expected, grows, counts: isPaid }),
      byokTight: () => tightHold(affordable, { expected, grows: false, counts: isOnOwnKey }),
      keyId,
      keyLimit,
      countsByok,
      parent: spendingParentOf(call.caller),
      tags: () => tagsOf(call, { ledger: deps.ledger, candidates: paid, share }),
      admission: call.admission,
    });
  }

  /** Does the same where the ledger answers with promises. */
  async continueAfter(reserving: Promise<ReserveOutcome>): Promise<void> {
    this.accept(await reserving);
    while (!this.isOver) this.accept(await this.reserve());
    await this.refusal;
  }

  /** Takes the hold, or goes on to what may serve without it. Throws `GatewayError`. */
  accept(outcome: ReserveOutcome): void {
    const { execution } = this;
    const { affordable, expected, grows, ceilingNano, byokNano } = this.tried;
    if (outcome.ok) {
      if (ceilingNano > 0n) execution.balanceAtAdmissionNano = outcome.balanceNano;
      execution.candidates = affordable;
      execution.allowance = allowanceOf(outcome, { ceilingNano, byokNano, grows });
      this.isOver = true;
      return;
    }
    const refused = { ...outcome, expected };
    const others = outcome.budget === undefined ? [] : notCountedBy(outcome.budget, affordable);
    if (others.length > 0) execution.candidates = others;
    else if (outcome.reason === "exists") return this.refuseWith(refused);
    else {
      this.policy += 1;
      this.previous = refused;
    }
    this.goOn();
  }

  /** Prepares the next try; refuses where the first candidate may not serve in it. */
  private goOn(): void {
    const mayServe = fallbackPolicies[this.policy];
    const [first] = this.execution.candidates;
    const mayGoOn = first !== undefined && mayServe?.(first) === true;
    if (this.previous !== undefined && !mayGoOn) this.refuseWith(this.previous);
    else this.tried = this.nextTry();
  }

  private refuseWith(refused: Refused): void {
    this.isOver = true;
    this.refusal = refuse(this.execution, refused);
  }

  private nextTry(): HoldTry {
    const { call, candidates } = this.execution;
    const mayServe = fallbackPolicies[this.policy];
    const affordable = mayServe === undefined ? candidates : candidates.filter(mayServe);
    const expected = expectedUse(this.execution);
    return {
      affordable,
      expected,
      grows:
        call.requirements.stream &&
        expected.isUncut !== true &&
        !affordable.some((candidate) => hidesThoughts(candidate, call.requirements)),
      ceilingNano: call.unbilled ? 0n : holdCeiling(affordable, expected),
      byokNano: holdCeiling(affordable, expected, isOnOwnKey),
    };
  }
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

type SentCall = Pick<InferenceCall, "caller" | "customer" | "metadata" | "generationId">;
type SenderScopes = Pick<LedgerPort, "senderScopesOf" | "windowsOf">;

/**
 * A call as budgets count it, given the candidates that may cost credits. Lists are made only where
 * a budget looks at them.
 */
class CountedCall {
  readonly caller: SentCall["caller"];
  readonly customer: SentCall["customer"];
  readonly metadata: SentCall["metadata"];
  readonly atMs: number;

  constructor(
    { caller, customer, metadata, generationId }: SentCall,
    private readonly candidates: readonly Candidate[],
  ) {
    this.caller = caller;
    this.customer = customer;
    this.metadata = metadata;
    this.atMs = timeOfId(generationId);
  }

  get models(): string[] {
    return this.candidates.map(({ model }) => model.id);
  }

  get providers(): string[] {
    return this.candidates.map(({ route }) => route.provider.id);
  }
}

/**
 * Returns the budget tags that a request counts towards, given the candidates that may cost
 * credits.
 */
export const tagsOf = (
  call: SentCall,
  {
    candidates,
    ...parts
  }: {
    ledger: SenderScopes;
    candidates: readonly Candidate[];
    share: CustomerShare | undefined;
  },
): string[] => countedTags(new CountedCall(call, candidates), parts);

/** Returns the customer whose plan counts a request, given the candidates that may cost credits. */
export const shareOf = (
  { caller, customer }: SentCall,
  {
    ledger,
    candidates,
  }: { ledger: Pick<LedgerPort, "customers">; candidates: readonly Candidate[] },
): CustomerShare | undefined =>
  ledger.customers?.isActive(caller.workspace.id) === true
    ? shareOfRequest(ledger, { caller, customer, models: candidates.map(({ model }) => model.id) })
    : undefined;

/** Returns the team, the customer, the tags and the periods that the charge of a request counts in. */
export const sendersOf = (
  call: SentCall,
  { ledger, candidates }: { ledger: SenderScopes; candidates: readonly Candidate[] },
): readonly Sender[] => countedSenders(new CountedCall(call, candidates), ledger);
