import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { KeyedMutex } from "../../platform/kernel/keyed-mutex.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import { newCustomer, type CustomerBook } from "./customer-book.ts";
import type { CustomerCredit, CustomerStore } from "./customer-store.ts";
import { customerIdOf, planBudget, type Customer, type CustomerPlan } from "./customer.ts";

/** The fields of a customer that its workspace sets. */
export type CustomerFields = Pick<
  Customer,
  "name" | "email" | "plan" | "suspended" | "stripeCustomerId" | "linkVersion"
>;

interface EditorOptions {
  store: CustomerStore;
  book: CustomerBook;
  ledger: Pick<LedgerPort, "watch">;
  clock: Clock;
  /** Writes the customers that requests named just now, which are in memory alone. */
  flush(): Promise<void>;
  /** Returns the price of all that a customer used. */
  usedOf(customer: Customer): Promise<bigint>;
  /** Called with a customer that was changed here, so that other gateways read it again. */
  onChange(customer: Pick<Customer, "id">): void;
}

const noCustomer = (): GatewayError =>
  new GatewayError("not_found", "There is no customer with this id. GET /customers lists them.");

/** Creates, changes and removes customers, one change of a customer at a time. */
export class CustomerEditor {
  private readonly mutex = new KeyedMutex();

  constructor(private readonly options: EditorOptions) {}

  /** Returns a customer by its id or its external id. Throws `not_found`. */
  find({ workspaceId, id }: { workspaceId: string; id: string }): Promise<Customer> {
    return this.stored(workspaceId, id).then((customer) => {
      if (customer === undefined) throw noCustomer();
      return customer;
    });
  }

  /** Creates a customer. Throws `conflict` where there is one with the external id. */
  create(
    { workspaceId, externalId }: Pick<Customer, "workspaceId" | "externalId">,
    fields: Partial<CustomerFields>,
  ): Promise<Customer> {
    const id = customerIdOf(workspaceId, externalId);
    return this.mutex.run(id, async () => {
      const { store, book, clock } = this.options;
      if ((await store.find(id)) !== undefined || book.find(workspaceId, externalId) !== undefined)
        throw duplicate({ id, externalId });
      if (book.isFull(workspaceId))
        throw new GatewayError(
          "conflict",
          "This workspace has as many customers as customers.most of the configuration allows.",
        );
      const wanted = newCustomer({ workspaceId, externalId, nowMs: clock.nowMs() });
      const customer = await this.withPlan(wanted, fields);
      await this.watch(customer);
      const stored = await store.insert(customer);
      // Another gateway may have created it meanwhile.
      if (stored === undefined) throw duplicate(customer);
      return this.inForce(stored);
    });
  }

  /** Changes some fields. Throws `not_found`. */
  change(customer: Customer, changes: Partial<CustomerFields>): Promise<Customer> {
    return this.mutex.run(customer.id, async () => {
      const { store, flush, clock } = this.options;
      await flush();
      const current = await this.find(customer);
      const changed = await this.withPlan(current, changes);
      await this.watch(changed);
      const stored = await store.change(current, { ...changed, updatedAtMs: clock.nowMs() });
      if (stored === undefined) throw noCustomer();
      return this.inForce(stored);
    });
  }

  /** Removes a customer. What it used stays, and counts if it is created again. */
  remove(customer: Customer): Promise<void> {
    return this.mutex.run(customer.id, async () => {
      await this.options.store.remove(customer.id, this.options.clock.nowMs());
      this.options.book.remove(customer);
      this.options.onChange(customer);
    });
  }

  /** Adds credits, or takes them back. Throws `not_found`, and `conflict` for more than was added. */
  addCredit(
    customer: Customer,
    { amountNano, note }: Pick<CustomerCredit, "amountNano" | "note">,
  ): Promise<{ customer: Customer; credit: CustomerCredit }> {
    return this.mutex.run(customer.id, async () => {
      const { store, flush } = this.options;
      await flush();
      const current = await this.find(customer);
      const credit: CustomerCredit = { ...this.creditOf(customer), amountNano, note };
      const changed = await store.addCredit(credit);
      if (changed === undefined)
        throw new GatewayError(
          "conflict",
          "amount: less than this was ever added to the customer, so it cannot be taken back.",
          { param: "amount" },
        );
      await this.watch({ ...current, creditsNano: changed.creditsNano });
      return { customer: this.inForce(changed), credit };
    });
  }

  /**
   * Returns a customer with changed fields. What it used before a prepaid plan began is not paid
   * with credits, and what it used under one that ends is taken off them.
   */
  private async withPlan(customer: Customer, changes: Partial<CustomerFields>): Promise<Customer> {
    const { plan } = changes;
    const changed = { ...customer, ...changes };
    const was = customer.plan?.type === "prepaid" ? customer.plan : undefined;
    if (plan === undefined || (was === undefined && plan?.type !== "prepaid")) return changed;
    if (was !== undefined && plan?.type === "prepaid")
      return { ...changed, plan: { ...plan, baseNano: was.baseNano } };
    const usedNano = await this.options.usedOf(customer);
    if (plan?.type === "prepaid") return { ...changed, plan: { ...plan, baseNano: usedNano } };
    const drawnNano = least(usedNano - (was?.baseNano ?? 0n), customer.creditsNano);
    if (drawnNano === 0n) return changed;
    const taken = await this.options.store.addCredit({
      ...this.creditOf(customer),
      amountNano: -drawnNano,
      note: "Used before the plan changed",
    });
    return { ...changed, creditsNano: taken?.creditsNano ?? changed.creditsNano };
  }

  private creditOf(
    customer: Customer,
  ): Pick<CustomerCredit, "id" | "customerId" | "workspaceId" | "createdAtMs"> {
    const nowMs = this.options.clock.nowMs();
    return {
      id: newId("txn", nowMs),
      customerId: customer.id,
      workspaceId: customer.workspaceId,
      createdAtMs: nowMs,
    };
  }

  /** Returns a customer of this process or of the database, by either of its ids. */
  private async stored(workspaceId: string, id: string): Promise<Customer | undefined> {
    const { store, book } = this.options;
    for (const each of [id, customerIdOf(workspaceId, id)]) {
      if (!/^cust_[0-9a-f]{32}$/.test(each)) continue;
      const found = await store.find(each);
      if (found?.workspaceId === workspaceId) return found;
    }
    return book.find(workspaceId, id) ?? book.findById(workspaceId, id);
  }

  /** Puts a customer in force as it is stored now, here and at other gateways. */
  private inForce(stored: Customer): Customer {
    this.options.book.put(stored);
    this.options.onChange(stored);
    return stored;
  }

  /** Reads what a customer used in the period of its plan, before the plan bounds it. */
  private async watch(customer: Customer): Promise<void> {
    const plan: CustomerPlan | undefined = this.options.book.planOf(customer);
    const budget = plan && planBudget(customer, plan);
    if (budget !== undefined) await this.options.ledger.watch(budget);
  }
}

const duplicate = ({ id, externalId }: Pick<Customer, "id" | "externalId">): GatewayError =>
  new GatewayError(
    "conflict",
    `There is a customer with the external_id ${externalId}: ${id}. PATCH /customers/${id} changes it.`,
    { param: "external_id", metadata: { customer_id: id } },
  );

const least = (one: bigint, other: bigint): bigint => (one < other ? one : other);
