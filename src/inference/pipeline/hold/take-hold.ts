import type { Execution } from "../execution.ts";
import { affordedBy, isFree, isOnOwnKey } from "./hold-ceiling.ts";
import { unaffordable } from "./hold-refusal.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { expectedUse } from "./expected-use.ts";
import { type Allowance, HoldSearch } from "./hold-search.ts";

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
