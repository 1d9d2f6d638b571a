import type { CustomerShare, Sender } from "../../../billing/budgets/budget.ts";
import { countedSenders, countedTags } from "../../../billing/budgets/counted-request.ts";
import { shareOfRequest } from "../../../billing/customers/customer-share.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { timeOfId } from "../../../insights/generation-record.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { InferenceCall } from "../inference-call.ts";

type SentCall = Pick<InferenceCall, "caller" | "customer" | "metadata" | "generationId">;
type SenderScopes = Pick<LedgerPort, "senderScopesOf" | "windowsOf">;

/** Returns a call as budgets count it, given the candidates that may cost credits. */
const countedOf = (
  { caller, customer, metadata, generationId }: SentCall,
  candidates: readonly Candidate[],
) => ({
  caller,
  customer,
  metadata,
  models: candidates.map(({ model }) => model.id),
  providers: candidates.map(({ route }) => route.provider.id),
  atMs: timeOfId(generationId),
});

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
): string[] => countedTags(countedOf(call, candidates), parts);

/** Returns the customer whose plan counts a request, given the candidates that may cost credits. */
export const shareOf = (
  { caller, customer }: SentCall,
  {
    ledger,
    candidates,
  }: { ledger: Pick<LedgerPort, "customers">; candidates: readonly Candidate[] },
): CustomerShare | undefined =>
  shareOfRequest(ledger, { caller, customer, models: candidates.map(({ model }) => model.id) });

/** Returns the team, the customer, the tags and the periods that the charge of a request counts in. */
export const sendersOf = (
  call: SentCall,
  { ledger, candidates }: { ledger: SenderScopes; candidates: readonly Candidate[] },
): readonly Sender[] => countedSenders(countedOf(call, candidates), ledger);
