import { afterEach, describe, expect, test } from "bun:test";
import { startPayingGateway, type PayingGateway } from "../../support/stripe/paying-gateway.ts";
import { at, listAt } from "../api/at.ts";
import { allEngines } from "../api/two-workspaces.ts";

let paying: PayingGateway;
afterEach(() => paying.stop());

const minute = 60_000;
const reconcile = (): Promise<void> => paying.payments().reconciliation.run();
const statusOf = async (orderId: string): Promise<unknown> =>
  (await paying.json("GET", `/credits/top-ups/${orderId}`))["status"];

describe.each(allEngines)("reconciliation on %s", (_, freshUrl) => {
  test("finds payments, refunds and expired orders with lost webhooks, once", async () => {
    paying = await startPayingGateway(await freshUrl());
    const { world } = paying.stripe;
    const [first, second, third] = [
      await paying.order(10),
      await paying.order(20),
      await paying.order(30),
    ];
    world.pay(first!.sessionId);
    const [succeeded] = world.pay(second!.sessionId);
    world.refund(String(succeeded!.data.object.id), 2_150);
    world.expire(third!.sessionId);
    paying.clock.advance(11 * minute);
    await reconcile();
    expect(await paying.balance()).toBe(10);
    expect(
      await Promise.all([first, second, third].map((order) => statusOf(order!.orderId))),
    ).toEqual(["paid", "paid", "expired"]);
    const ids = listAt(await paying.json("GET", "/credits/invoices"), "data").map((each) =>
      at(each, "id"),
    );
    expect(ids.sort()).toEqual(["TEST-CN-000001", "TEST-INV-000001", "TEST-INV-000002"]);
    await reconcile();
    for (const event of world.events) await paying.deliver(event);
    expect(await paying.balance()).toBe(10);
  });
});

test("an open order is looked up even if Stripe has dropped its events", async () => {
  paying = await startPayingGateway(undefined);
  const { orderId, sessionId } = await paying.order(10);
  paying.stripe.world.pay(sessionId);
  paying.stripe.world.events.splice(0);
  paying.clock.advance(9 * minute);
  await reconcile();
  expect([await paying.balance(), await statusOf(orderId)]).toEqual([0, "open"]);
  paying.clock.advance(2 * minute);
  await reconcile();
  expect([await paying.balance(), await statusOf(orderId)]).toEqual([10, "paid"]);
});

test("an order that lost its checkout in a crash is found by its customer, and an unopened one expires", async () => {
  paying = await startPayingGateway(undefined);
  const { orderId, sessionId } = await paying.order(10);
  await paying
    .gateway()
    .app.storage.database.updateTable("payment_orders")
    .set({ session_id: null })
    .execute();
  paying.stripe.nextFault = "down";
  expect((await paying.ask("POST", "/credits/top-ups", { amount: 20 })).status).toBe(503);
  paying.stripe.world.pay(sessionId);
  paying.stripe.world.events.splice(0);
  paying.clock.advance(11 * minute);
  await reconcile();
  expect([await paying.balance(), await statusOf(orderId)]).toEqual([10, "paid"]);
  const statuses = async (): Promise<unknown[]> =>
    listAt(await paying.json("GET", "/credits/top-ups"), "data").map((each) => at(each, "status"));
  expect((await statuses()).sort()).toEqual(["open", "paid"]);
  paying.clock.advance(25 * 60 * minute);
  await reconcile();
  expect((await statuses()).sort()).toEqual(["expired", "paid"]);
});

test("events are read from the last time on, with an hour's overlap", async () => {
  paying = await startPayingGateway(undefined);
  await paying.topUp(10);
  await reconcile();
  paying.clock.advance(24 * 60 * minute);
  await reconcile();
  const since = paying.stripe.requests
    .filter(({ path }) => path === "/events")
    .map(({ form }) => Number(form.get("created[gte]")));
  const noon = Date.UTC(2026, 10, 21, 12) / 1000;
  expect(since.slice(-2)).toEqual([noon - 3_600, noon - 3_600]);
  await reconcile();
  expect(Number(paying.stripe.requests.at(-1)?.form.get("created[gte]"))).toBe(noon + 23 * 3_600);
});

test("GET /health reports the reconciliation", async () => {
  paying = await startPayingGateway(undefined);
  await paying.payments().rounds.run(true);
  const jobs = listAt(
    await (await fetch(`${paying.gateway().baseUrl}/health`)).json(),
    "components.workflows.data.workflows",
  );
  expect(jobs).toContainEqual(
    expect.objectContaining({ kind: "payment_reconciliation", state: "healthy" }),
  );
});
