import { afterEach, describe, expect, test } from "bun:test";
import { openCredits } from "../../../src/billing/credits/open-credits.ts";
import { openPayments, type Payments } from "../../../src/billing/payments/open-payments.ts";
import {
  paymentSettings,
  startPayingGateway,
  type PayingGateway,
} from "../../support/stripe/paying-gateway.ts";
import type { StripeEvent } from "../../support/stripe/stripe-world.ts";
import { at, listAt } from "../api/at.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

let paying: PayingGateway;
afterEach(() => paying.stop());

/**
 * Payments as a second process has them: nothing but the database and the ledger is shared, no turn
 * is waited for.
 */
async function secondPayments(): Promise<Payments> {
  const {
    storage: { database, commits },
    ledger,
  } = paying.gateway().app;
  const shared = {
    database: withTables(database),
    commits,
    clock: paying.clock,
    ledger,
    onError: () => undefined,
  };
  const { withdrawals } = openCredits({ ...shared, plans: {}, workspaces: () => [] });
  const payments = openPayments({
    ...shared,
    withdrawals,
    settings: paymentSettings(paying.stripe.url),
    buyerOf: () => ({ name: "a" }),
    onRefused: () => undefined,
    onReconciled: () => undefined,
  });
  if (payments === undefined) throw new Error("payments are off");
  return payments;
}

const receive = (
  { events }: Payments,
  { id, type, created, livemode: live, data }: StripeEvent,
): Promise<string> =>
  events.receive({
    id,
    type,
    createdAtMs: created * 1000,
    live,
    connectedAccount: undefined,
    object: data.object,
  });

describe.each(allEngines)("two processes on %s", (_, freshUrl) => {
  test("credit each payment once in parallel and number invoices without gaps", async () => {
    paying = await startPayingGateway(await freshUrl());
    const both = [paying.payments(), await secondPayments()];
    for (let count = 0; count < 8; count++) {
      const { sessionId } = await paying.order(10);
      const [succeeded, completed] = paying.stripe.world.pay(sessionId);
      const outcomes = await Promise.all(
        both.flatMap((each) => [receive(each, succeeded!), receive(each, completed!)]),
      );
      expect(outcomes.sort()).toEqual(["already", "already", "already", "credited"]);
    }
    // Different payments at once want the same number.
    const orders = [await paying.order(10), await paying.order(10)];
    const events = orders.map(({ sessionId }) => paying.stripe.world.pay(sessionId)[0]!);
    expect(await Promise.all(both.map((each, index) => receive(each, events[index]!)))).toEqual([
      "credited",
      "credited",
    ]);
    expect(await paying.balance()).toBe(100);
    const ids = listAt(await paying.json("GET", "/credits/invoices"), "data").map((each) =>
      at(each, "id"),
    );
    expect(ids.sort()).toEqual(
      Array.from({ length: 10 }, (__, index) => `TEST-INV-${String(index + 1).padStart(6, "0")}`),
    );
  });

  test("charge a saved card once", async () => {
    paying = await startPayingGateway(await freshUrl());
    await paying.topUp(5, { save_card: true });
    await paying.json("POST", "/credits/automatic", {
      threshold: 10,
      amount: 20,
      monthly_limit: 500,
      consent: true,
    });
    const both = [paying.payments(), await secondPayments(), await secondPayments()];
    for (let count = 0; count < 4; count++)
      await Promise.all(both.map(({ automatic }) => automatic.run()));
    expect(await paying.balance()).toBe(25);
    expect(paying.stripe.world.payments.size).toBe(2);
  });

  test("deduct a refund once", async () => {
    paying = await startPayingGateway(await freshUrl());
    const both = [paying.payments(), await secondPayments()];
    for (let count = 0; count < 5; count++) {
      const { paymentId } = await paying.topUp(10);
      const [refund] = paying.stripe.world.refund(paymentId, 550);
      // The one that comes second to the same step is refused by the database, and told again.
      await Promise.allSettled(both.map((each) => receive(each, refund!)));
      expect(["already", "noted"]).toContain(await receive(both[0]!, refund!));
    }
    expect(await paying.balance()).toBe(25);
  });
});
