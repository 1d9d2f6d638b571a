import { customerOfKey, type LlmKeyCaller } from "../../identity/keys/caller.ts";
import { priceOf, type CustomerShare } from "../budgets/budget.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";

/** A request, as far as its customer follows from it. */
interface CustomerRequest {
  caller: LlmKeyCaller;
  /** The customer that the request names; that of the key comes first. */
  customer?: string | undefined;
  /** The models, tools or routes that may serve it, of which the dearest markup counts. */
  models: readonly string[];
}

/**
 * Returns the customer whose plan counts a request, with the share of the cost that its price is;
 * undefined where no plan does.
 */
export function shareOfRequest(
  { customers }: Pick<LedgerPort, "customers">,
  { caller, customer, models }: CustomerRequest,
): CustomerShare | undefined {
  const { id } = caller.workspace;
  if (customers?.isActive(id) !== true) return undefined;
  const externalId = customerOfKey(caller) ?? customer;
  return externalId === undefined ? undefined : customers.shareOf(id, { externalId, models });
}

/** Notes in a record which customer it counts for, and at what price. */
export function noteShare(
  {
    detail,
    costNanoUsd,
  }: { detail: { customer?: string; customerPriceNanoUsd?: string }; costNanoUsd: bigint },
  share: CustomerShare | undefined,
): void {
  if (share === undefined) return;
  detail.customer = share.externalId;
  detail.customerPriceNanoUsd = String(priceOf(costNanoUsd, share.weight));
}
