import { budgetTags, type CustomerShare, type Sender } from "../../../billing/budgets/budget.ts";
import { shareOfRequest } from "../../../billing/customers/customer-share.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { budgetKeyIdsOf, customerOfKey } from "../../../identity/keys/caller.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { InferenceCall } from "../inference-call.ts";

/**
 * Returns the budget tags that a request counts towards, given the candidates that may cost
 * credits.
 */
export function tagsOf(
  call: SentCall,
  {
    ledger,
    candidates,
    share,
  }: {
    ledger: SenderScopes;
    candidates: readonly Candidate[];
    share: CustomerShare | undefined;
  },
): string[] {
  const { caller } = call;
  return budgetTags({
    keyIds: budgetKeyIdsOf(caller),
    userId: caller.key.creatorUserId,
    models: candidates.map(({ model }) => model.id),
    providers: candidates.map(({ route }) => route.provider.id),
    senders: sendersOf(call, ledger),
    share,
  });
}

/** Returns the customer whose plan counts a request, given the candidates that may cost credits. */
export const shareOf = (
  { caller, customer }: SentCall,
  {
    ledger,
    candidates,
  }: { ledger: Pick<LedgerPort, "customers">; candidates: readonly Candidate[] },
): CustomerShare | undefined =>
  shareOfRequest(ledger, { caller, customer, models: candidates.map(({ model }) => model.id) });

type SentCall = Pick<InferenceCall, "caller" | "customer" | "metadata">;
type SenderScopes = Pick<LedgerPort, "senderScopesOf">;

/** Returns the customer and the tags of a request that budgets of its workspace count. */
export function sendersOf(
  { caller, customer, metadata }: SentCall,
  ledger: SenderScopes,
): readonly Sender[] {
  const scopes = ledger.senderScopesOf(caller.workspace.id);
  if (scopes === undefined) return noSenders;
  return scopes.flatMap((scope) => {
    const value =
      scope === "customer"
        ? (customerOfKey(caller) ?? customer)
        : metadata?.[scope.slice("tag:".length)];
    const isValue = typeof value === "string" || typeof value === "number";
    return isValue && value !== "" ? [{ scope, subject: String(value).slice(0, 200) }] : [];
  });
}

const noSenders: readonly Sender[] = [];
