import {
  type BudgetBound,
  type CustomerPlans,
  type CustomerRefusal,
  type CustomerShare,
  plainWeight,
  priceOf,
} from "../budgets/budget.ts";
import { boundOf, customerIdOf, type Customer, type CustomerPlan, weightOf } from "./customer.ts";
import { customerOfKey, type LlmKeyCaller } from "../../identity/keys/caller.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";

/** The customers in memory, by workspace and external id, with the rule for those first seen. */
export class CustomerBook implements CustomerPlans {
  /** Called with a customer that a request named for the first time. */
  onFirstUse: (customer: Customer) => void = () => undefined;
  private readonly byWorkspace = new Map<string, Map<string, Customer>>();
  private readonly rule: CustomerPlan | undefined;
  private readonly mostPerWorkspace: number;
  private readonly nowMs: () => number;

  constructor({
    rule,
    mostPerWorkspace,
    nowMs,
  }: {
    /** The plan of customers that have none of their own; undefined counts no others. */
    rule: CustomerPlan | undefined;
    mostPerWorkspace: number;
    nowMs(): number;
  }) {
    this.rule = rule;
    this.mostPerWorkspace = mostPerWorkspace;
    this.nowMs = nowMs;
  }

  /** Returns whether requests of a workspace may have a customer that is counted. */
  isActive(workspaceId: string): boolean {
    return this.rule !== undefined || this.byWorkspace.has(workspaceId);
  }

  /** Returns the plan that is in force for a customer; undefined where it has none. */
  planOf({ plan }: Pick<Customer, "plan">): CustomerPlan | undefined {
    return plan ?? this.rule;
  }

  find(workspaceId: string, externalId: string): Customer | undefined {
    return this.byWorkspace.get(workspaceId)?.get(externalId);
  }

  /** Returns a customer by its id, which is that of a row where it is written. */
  findById(workspaceId: string, id: string): Customer | undefined {
    return this.byWorkspace
      .get(workspaceId)
      ?.values()
      .find((customer) => customer.id === id);
  }

  /** The number of customers of all workspaces. */
  get size(): number {
    return this.byWorkspace.values().reduce((sum, customers) => sum + customers.size, 0);
  }

  /** Returns every customer of all workspaces. */
  *all(): Generator<Customer> {
    for (const customers of this.byWorkspace.values()) yield* customers.values();
  }

  /**
   * Returns the share of the cost that a customer pays of a request; undefined where it is not
   * counted. A customer that the rule covers is created by its first request.
   */
  shareOf(
    workspaceId: string,
    { externalId, models }: { externalId: string; models: readonly string[] },
  ): CustomerShare | undefined {
    const customer = this.find(workspaceId, externalId) ?? this.create(workspaceId, externalId);
    if (customer === undefined) return undefined;
    const plan = this.planOf(customer);
    return { externalId, weight: plan === undefined ? plainWeight : weightOf(plan, models) };
  }

  boundOf(workspaceId: string, externalId: string, day: number): BudgetBound | undefined {
    const customer = this.find(workspaceId, externalId);
    const plan = customer && this.planOf(customer);
    return customer && plan && boundOf(customer, { plan, day });
  }

  refusalOf(workspaceId: string, externalId: string): CustomerRefusal | undefined {
    const customer = this.find(workspaceId, externalId);
    if (customer?.suspended === true) return "customer_suspended";
    const isFurther = customer === undefined && this.rule !== undefined;
    return isFurther && this.isFull(workspaceId) ? "too_many_customers" : undefined;
  }

  put(customer: Customer): void {
    let customers = this.byWorkspace.get(customer.workspaceId);
    if (customers === undefined)
      this.byWorkspace.set(customer.workspaceId, (customers = new Map<string, Customer>()));
    customers.set(customer.externalId, customer);
  }

  remove({ workspaceId, externalId }: Pick<Customer, "workspaceId" | "externalId">): void {
    const customers = this.byWorkspace.get(workspaceId);
    customers?.delete(externalId);
    if (customers?.size === 0) this.byWorkspace.delete(workspaceId);
  }

  /** Returns whether a workspace has as many customers as it may. */
  isFull(workspaceId: string): boolean {
    return (this.byWorkspace.get(workspaceId)?.size ?? 0) >= this.mostPerWorkspace;
  }

  private create(workspaceId: string, externalId: string): Customer | undefined {
    if (this.rule === undefined || this.isFull(workspaceId)) return undefined;
    const customer = newCustomer({ workspaceId, externalId, nowMs: this.nowMs() });
    this.put(customer);
    this.onFirstUse(customer);
    return customer;
  }
}

/** Returns a customer without a plan, address or credits of its own. */
export const newCustomer = ({
  workspaceId,
  externalId,
  nowMs,
}: {
  workspaceId: string;
  externalId: string;
  nowMs: number;
}): Customer => ({
  id: customerIdOf(workspaceId, externalId),
  workspaceId,
  externalId,
  name: externalId,
  email: null,
  plan: null,
  creditsNano: 0n,
  suspended: false,
  stripeCustomerId: null,
  linkVersion: 0,
  createdAtMs: nowMs,
  updatedAtMs: nowMs,
});

/** A request, as far as its customer follows from it. */
interface CustomerRequest {
  caller: LlmKeyCaller;
  /** The customer that the request names; that of the key comes first. */
  customer?: string | undefined;
  /** The models, tools or routes that may serve it, of which the dearest markup counts. */
  models: readonly string[];
}

/**
 * Refuses the requests of a customer that is suspended, or one too many, free ones too. Throws
 * `insufficient_balance`.
 */
export function assertServed(
  { customers }: Pick<LedgerPort, "customers">,
  { caller, customer: named }: Omit<CustomerRequest, "models">,
): void {
  const { id } = caller.workspace;
  if (customers?.isActive(id) !== true) return;
  const customer = customerOfKey(caller) ?? named;
  const reason = customer === undefined ? undefined : customers.refusalOf(id, customer);
  if (customer === undefined || reason === undefined) return;
  throw new GatewayError("insufficient_balance", refusals[reason], {
    metadata: { reason, customer, customer_id: customerIdOf(id, customer) },
  });
}

const refusals: Record<CustomerRefusal, string> = {
  customer_suspended:
    'This customer is suspended. PATCH /customers/{id} with "suspended": false serves it again.',
  too_many_customers:
    "This workspace has as many customers as it may (customers.most), so it serves no further one.",
};

/**
 * Returns the customer that a request counts for, with the share of the cost that its price is;
 * undefined where none is known.
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
