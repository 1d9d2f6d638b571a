import type { CustomerShare, Sender } from "../../../billing/budgets/budget.ts";
import { countedSenders, countedTags } from "../../../billing/budgets/counted-request.ts";
import { shareOfRequest } from "../../../billing/customers/customer-share.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import { timeOfId } from "../../../insights/generation-record.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { InferenceCall } from "../inference-call.ts";

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
  private readonly candidates: readonly Candidate[];

  constructor(
    { caller, customer, metadata, generationId }: SentCall,
    candidates: readonly Candidate[],
  ) {
    this.caller = caller;
    this.customer = customer;
    this.metadata = metadata;
    this.atMs = timeOfId(generationId);
    this.candidates = candidates;
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
