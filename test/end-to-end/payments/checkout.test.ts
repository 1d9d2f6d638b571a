import { afterEach, describe, expect, test } from "bun:test";
import { acme, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { startPayingGateway, type PayingGateway } from "../../support/stripe/paying-gateway.ts";
import { found } from "../../support/stripe/stripe-world.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { at, listAt } from "../api/at.ts";
import { engines } from "../api/two-workspaces.ts";

let paying: PayingGateway;
afterEach(() => paying.stop());

describe.each(engines)("on %s", (_, freshUrl) => {
  test("the fee is quoted before an order, and the checkout charges exactly that", async () => {
    paying = await startPayingGateway(await freshUrl());
    expect(await paying.json("GET", "/credits/quote?amount=10")).toEqual({
      object: "top_up_quote",
      amount: 10,
      fee: 1,
      total: 11,
      currency: "usd",
    });
    expect(paying.stripe.requests).toEqual([]);
    const { orderId, sessionId } = await paying.order(10);
    const session = found(paying.stripe.world.sessions, sessionId);
    expect(session).toMatchObject({
      amount_total: 1_100,
      lines: [1_000, 100],
      currency: "usd",
      client_reference_id: orderId,
      metadata: { switchyard_order: orderId },
      saves_card: false,
      success_url: "http://127.0.0.1/top-up?paid=1",
      cancel_url: "http://127.0.0.1/top-up",
    });
    // Amounts in a currency of the payer's would not be those of the order.
    expect(paying.stripe.requests[1]?.form.get("adaptive_pricing[enabled]")).toBe("false");
    expect(paying.stripe.requests[1]?.idempotencyKey).toBe(orderId);
    expect(paying.stripe.requests.map(({ authorization }) => authorization)).toEqual(
      Array(2).fill("Bearer sk_test_of_the_tests"),
    );
    expect(await paying.json("GET", `/credits/top-ups/${orderId}`)).toMatchObject({
      id: orderId,
      status: "open",
      kind: "checkout",
      amount: 10,
      fee: 1,
      total: 11,
      failure: null,
    });
    expect(await paying.balance()).toBe(0);
  });

  test("a payment is credited at once and only once, with an invoice and an audit entry", async () => {
    paying = await startPayingGateway(await freshUrl());
    const { orderId, sessionId } = await paying.order(20.21);
    const events = paying.stripe.world.pay(sessionId);
    expect(await paying.deliver(events[0]!)).toBe("credited");
    expect(await paying.balance()).toBe(20.21);
    // The other event of the same payment, and both of them again.
    expect(await paying.deliver(events[1]!)).toBe("already");
    expect([await paying.deliver(events[1]!), await paying.deliver(events[0]!)]).toEqual([
      "already",
      "already",
    ]);
    expect(await paying.json("GET", "/credits")).toMatchObject({
      balance: 20.21,
      topup_balance: 20.21,
      monthly_balance: 0,
    });
    expect(await paying.json("GET", "/credits/top-ups")).toMatchObject({
      data: [{ id: orderId, status: "paid" }],
    });
    expect(await paying.json("GET", "/credits/invoices")).toMatchObject({
      data: [
        {
          id: "TEST-INV-000001",
          object: "invoice",
          top_up_id: orderId,
          amount: 20.21,
          fee: 1.52,
          total: 21.73,
        },
      ],
    });
    const entries = listAt(await paying.json("GET", "/security/audit"), "data");
    expect(
      entries.map((entry) => [at(entry, "action"), at(entry, "actor.label"), at(entry, "outcome")]),
    ).toContainEqual(["top-up credited", "Stripe", "done"]);
    expect(
      entries.map((entry) => [at(entry, "action"), at(entry, "target"), at(entry, "fields")]),
    ).toContainEqual(["POST /credits/top-ups", orderId, ["amount"]]);
    await paying.restart();
    expect(await paying.balance()).toBe(20.21);
    expect(await paying.deliver(events[0]!)).toBe("already");
    expect(await paying.balance()).toBe(20.21);
  });
});

/** @see https://github.com/songquanpeng/one-api/issues/499 a balance that was cached for minutes */
test("a request refused for lack of credits succeeds once its top-up is delivered", async () => {
  const upstream = await startFaultUpstream();
  upstream.script(healthyChat);
  paying = await startPayingGateway(undefined, {
    providers: [acme(upstream.baseUrl)],
    bootstrap: {
      llmKey: testLlmKey,
      managementKey: testManagementKey,
      creditsNanoUsd: undefined,
      plan: "enterprise",
    },
  });
  const ask = async (): Promise<number> => {
    const messages = [{ role: "user", content: "Hello" }];
    const response = await paying
      .gateway()
      .post("/chat/completions", { model: "acme/large", messages });
    await response.text();
    return response.status;
  };
  const { sessionId } = await paying.order(5);
  expect([await ask(), upstream.requests.length]).toEqual([402, 0]);
  await paying.deliver(paying.stripe.world.pay(sessionId)[0]!);
  expect([await ask(), upstream.requests.length]).toEqual([200, 1]);
  expect(Number(await paying.balance())).toBeLessThan(5);
  upstream.stop();
});

test("a delayed payment method is credited only when the payment succeeds", async () => {
  paying = await startPayingGateway(undefined);
  const { orderId, sessionId } = await paying.order(10);
  const { world } = paying.stripe;
  const session = found(world.sessions, sessionId);
  expect(await paying.deliver(world.happen("checkout.session.completed", session))).toBe("noted");
  expect(await paying.balance()).toBe(0);
  const [, completed] = world.pay(sessionId);
  const succeeded = {
    ...completed!,
    id: "evt_async",
    type: "checkout.session.async_payment_succeeded",
  };
  expect(await paying.deliver(succeeded)).toBe("credited");
  expect(await paying.balance()).toBe(10);
  expect(await paying.json("GET", `/credits/top-ups/${orderId}`)).toMatchObject({ status: "paid" });
});

test("an expired checkout ends, and a late payment is still credited", async () => {
  paying = await startPayingGateway(undefined);
  const { orderId, sessionId } = await paying.order(10);
  const { world } = paying.stripe;
  expect(await paying.deliver(world.expire(sessionId))).toBe("noted");
  expect(await paying.json("GET", `/credits/top-ups/${orderId}`)).toMatchObject({
    status: "expired",
  });
  const failed = world.happen(
    "checkout.session.async_payment_failed",
    found(world.sessions, sessionId),
  );
  expect(await paying.deliver(failed)).toBe("already");
  for (const event of world.pay(sessionId)) await paying.deliver(event);
  expect(await paying.json("GET", `/credits/top-ups/${orderId}`)).toMatchObject({
    status: "paid",
    failure: null,
  });
  expect(await paying.balance()).toBe(10);
});

test.each([
  [{ amount: 4.99 }, "amount: must be from 5 to 5000 USD."],
  [{ amount: 5_000.01 }, "amount: must be from 5 to 5000 USD."],
  [{ amount: 10.005 }, "amount: must be whole cents."],
  [{ amount: "10" }, "amount: is required: USD as a number"],
  [{}, "amount: is required: USD as a number"],
  [
    { amount: 10, return_url: "https://elsewhere.example/" },
    "return_url: must be an address of this service.",
  ],
  [{ amount: 10, currency: "eur" }, "currency"],
])("an order %j returns 400 before Stripe is called", async (body, message) => {
  paying = await startPayingGateway(undefined);
  const response = await paying.ask("POST", "/credits/top-ups", body);
  expect(response.status).toBe(400);
  expect(at(await response.json(), "error.message")).toContain(message);
  expect(paying.stripe.requests).toEqual([]);
});

test("when Stripe does not answer, nothing is charged and the caller gets 503", async () => {
  paying = await startPayingGateway(undefined);
  paying.stripe.nextFault = "down";
  const response = await paying.ask("POST", "/credits/top-ups", { amount: 10 });
  expect([response.status, at(await response.json(), "error.code")]).toEqual([
    503,
    "service_unavailable",
  ]);
  expect(paying.stripe.world.sessions.size).toBe(0);
  expect(await paying.json("GET", "/credits/top-ups")).toMatchObject({
    data: [{ status: "open" }],
  });
  expect((await paying.ask("POST", "/credits/top-ups", { amount: 10 })).status).toBe(200);
  expect(paying.stripe.world.customers.size).toBe(1);
});

test("the return pages of a checkout", async () => {
  paying = await startPayingGateway(undefined);
  const { origin } = paying.gateway();
  expect(await (await fetch(`${origin}/top-up?paid=1`)).text()).toContain("Thank you");
  expect(await (await fetch(`${origin}/top-up`)).text()).toContain("Nothing was paid");
});
