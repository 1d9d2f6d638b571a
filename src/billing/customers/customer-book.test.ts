import { expect, test } from "bun:test";
import { CustomerBook, newCustomer } from "./customer-book.ts";
import type { CustomerPlan } from "./customer.ts";

const [workspaceId, externalId] = ["ws_1", "shop"];
const customer = newCustomer({ workspaceId, externalId, nowMs: 0 });
const rule: CustomerPlan = {
  type: "free",
  period: "monthly",
  allowanceNano: 10n,
  capNano: null,
  baseNano: 0n,
  weight: 12_000,
  weightsByModel: {},
};
const bookWith = (plan: CustomerPlan | undefined): CustomerBook =>
  new CustomerBook({ rule: plan, mostPerWorkspace: 1, nowMs: () => 0 });

test("a customer without a plan is counted at cost and has no bound", () => {
  const book = bookWith(undefined);
  book.put(customer);
  expect(book.shareOf(workspaceId, { externalId, models: ["acme/large"] })).toEqual({
    externalId,
    weight: 10_000,
  });
  expect(book.boundOf(workspaceId, externalId, 0)).toBeUndefined();
  expect(book.shareOf(workspaceId, { externalId: "other", models: [] })).toBeUndefined();
});

test("a suspended customer is refused, with or without a plan", () => {
  for (const plan of [undefined, rule]) {
    const book = bookWith(plan);
    book.put(customer);
    expect(book.refusalOf(workspaceId, externalId)).toBeUndefined();
    book.put({ ...customer, suspended: true });
    expect(book.refusalOf(workspaceId, externalId)).toBe("customer_suspended");
  }
});

test("a customer too many is refused where a rule would create it", () => {
  const book = bookWith(rule);
  expect(book.shareOf(workspaceId, { externalId, models: [] })).toEqual({
    externalId,
    weight: 12_000,
  });
  expect(book.refusalOf(workspaceId, externalId)).toBeUndefined();
  expect(book.refusalOf(workspaceId, "another")).toBe("too_many_customers");
  expect(book.shareOf(workspaceId, { externalId: "another", models: [] })).toBeUndefined();
});
