import { CustomerBook, newCustomer } from "../../src/billing/customers/customer-book.ts";
import { CustomerStore } from "../../src/billing/customers/customer-store.ts";
import type { Customer } from "../../src/billing/customers/customer.ts";
import { MeterEvents } from "../../src/billing/customers/meter-events.ts";
import { StripeClient } from "../../src/billing/payments/stripe-client.ts";
import { customerAdds } from "../../src/insights/usage/usage-rollup.ts";
import type { Clock } from "../../src/platform/kernel/clock.ts";
import { openInsightStorage, recordOf } from "./generation-records.ts";
import { withTables } from "../../src/platform/storage/with-tables.ts";

/** Customers whose use is reported to a meter, in a database of its own. */
export interface MeterReporter {
  close(): Promise<void>;
  store: CustomerStore;
  customers: readonly Customer[];
  events: MeterEvents;
  /** Commits the use of one request of each customer. */
  use(priceNano: number): Promise<void>;
}

/** Postpaid customers without an allowance, so that all that they use is billed. */
const customersOf = (nowMs: number): Customer[] =>
  Array.from({ length: 5 }, (_, index) => ({
    ...newCustomer({ workspaceId: "ws_own", externalId: `shop-${index}`, nowMs }),
    stripeCustomerId: `cus_${index}`,
    plan: {
      type: "postpaid",
      period: "total",
      allowanceNano: 0n,
      capNano: null,
      baseNano: 0n,
      weight: 10_000,
      weightsByModel: {},
    },
  }));

/** Opens them on a database, with the address of a simulated Stripe. */
export async function openMeterReporter({
  url,
  apiBase,
  clock,
}: {
  url: string;
  apiBase: string;
  clock: Clock;
}): Promise<MeterReporter> {
  const storage = await openInsightStorage(url);
  const store = new CustomerStore(withTables(storage.database));
  const customers = customersOf(clock.nowMs());
  const book = new CustomerBook({
    rule: undefined,
    mostPerWorkspace: 100,
    nowMs: () => clock.nowMs(),
  });
  for (const customer of customers) book.put(customer);
  const stripe = new StripeClient("sk_test_of_the_tests", { apiBase });
  const events = new MeterEvents({
    database: withTables(storage.database),
    store,
    book,
    clock,
    eventName: "usage",
    flush: () => storage.commits.flush(),
    send: (event) => stripe.reportUse(event),
    onRun: () => undefined,
  });
  const use = async (priceNano: number): Promise<void> => {
    const adds = customers.flatMap(({ externalId }) => {
      const record = recordOf({ createdAtMs: clock.nowMs() });
      Object.assign(record.detail, {
        customer: externalId,
        customerPriceNanoUsd: String(priceNano),
      });
      return customerAdds(record);
    });
    await storage.commits.commit({ inserts: [], adds });
  };
  return { store, customers, events, use, close: () => storage.close() };
}
