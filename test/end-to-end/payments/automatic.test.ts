import { afterEach, describe, expect, test } from "bun:test";
import { startPayingGateway, type PayingGateway } from "../../support/stripe/paying-gateway.ts";
import { at, listAt } from "../api/at.ts";
import { engines } from "../api/two-workspaces.ts";

let paying: PayingGateway;
afterEach(() => paying.stop());

const terms = { threshold: 10, amount: 20, monthly_limit: 50, consent: true };
const day = 86_400_000;

/** A workspace with 5 USD, a saved card and an agreement. */
async function agreed(
  freshUrl: () => Promise<string | undefined> = async () => undefined,
  changes: Partial<typeof terms> = {},
) {
  paying = await startPayingGateway(await freshUrl());
  await paying.topUp(5, { save_card: true });
  paying.clock.advance(1);
  return paying.json("POST", "/credits/automatic", { ...terms, ...changes });
}

const round = (): Promise<void> => paying.payments().rounds.run(false);
const charges = (): number =>
  paying.stripe.requests.filter(
    ({ method, path }) => method === "POST" && path === "/payment_intents",
  ).length;

describe.each(engines)("automatic top-ups on %s", (_, freshUrl) => {
  test("charge the saved card below the threshold, up to the monthly limit, and again next month", async () => {
    expect(await agreed(freshUrl)).toMatchObject({
      object: "automatic_top_ups",
      status: "on",
      threshold: 10,
      amount: 20,
      fee: 1.5,
      total: 21.5,
      monthly_limit: 50,
      charged_this_month: 0,
      card: "visa 4242",
      consented_at: "2026-11-21T12:00:00.001Z",
      stopped_reason: null,
    });
    await round();
    expect(await paying.balance()).toBe(25);
    expect(await paying.json("GET", "/credits/automatic")).toMatchObject({
      charged_this_month: 21.5,
      status: "on",
    });
    const order = listAt(await paying.json("GET", "/credits/top-ups"), "data")[0];
    expect(order).toMatchObject({
      kind: "automatic",
      status: "paid",
      amount: 20,
      total: 21.5,
      created_by: "automatic",
    });
    const [request] = paying.stripe.requests.filter(
      ({ path, method }) => method === "POST" && path === "/payment_intents",
    );
    expect(Object.fromEntries(request!.form)).toMatchObject({
      amount: "2150",
      currency: "usd",
      off_session: "true",
      confirm: "true",
      "metadata[switchyard_order]": at(order, "id"),
    });
    expect(request!.idempotencyKey).toBe(String(at(order, "id")));
    // Its webhook says nothing new, and above the threshold nothing is charged.
    expect(await paying.deliver(paying.stripe.world.events.at(-1)!)).toBe("already");
    await round();
    expect([await paying.balance(), charges()]).toEqual([25, 1]);
    // Another 21.50 fit below 50, a third do not.
    await paying.json("POST", "/credits/automatic", { ...terms, threshold: 1_000 });
    for (let count = 0; count < 4; count++) await round();
    expect([await paying.balance(), charges()]).toEqual([45, 2]);
    expect(await paying.json("GET", "/credits/automatic")).toMatchObject({
      charged_this_month: 43,
      status: "on",
    });
    paying.clock.advance(10 * day);
    await round();
    expect([await paying.balance(), charges()]).toEqual([65, 3]);
    expect(await paying.json("GET", "/credits/automatic")).toMatchObject({
      charged_this_month: 21.5,
    });
  });

  test("make one order in parallel checks, also beside a restart", async () => {
    await agreed(freshUrl);
    const { automatic } = paying.payments();
    await Promise.all(Array.from({ length: 12 }, () => automatic.run()));
    expect([await paying.balance(), charges()]).toEqual([25, 1]);
  });

  test("find a lost response again and charge the card once", async () => {
    await agreed(freshUrl);
    paying.stripe.nextFault = "answer-lost";
    await round();
    expect([await paying.balance(), paying.stripe.world.payments.size]).toEqual([5, 2]);
    expect(listAt(await paying.json("GET", "/credits/top-ups"), "data")[0]).toMatchObject({
      kind: "automatic",
      status: "open",
    });
    await paying.restart();
    await round();
    expect([await paying.balance(), paying.stripe.world.payments.size]).toEqual([25, 2]);
    expect(listAt(await paying.json("GET", "/credits/top-ups"), "data")[0]).toMatchObject({
      kind: "automatic",
      status: "paid",
    });
  });

  test("stop with the reason when the card is declined, until they are agreed to again", async () => {
    await agreed(freshUrl);
    paying.stripe.nextFault = "declined";
    await round();
    const declined = {
      status: "stopped",
      stopped_reason: "card_declined: insufficient_funds",
      charged_this_month: 0,
    };
    expect(await paying.json("GET", "/credits/automatic")).toMatchObject(declined);
    expect(listAt(await paying.json("GET", "/credits/top-ups"), "data")[0]).toMatchObject({
      kind: "automatic",
      status: "failed",
      failure: "card_declined: insufficient_funds",
    });
    for (let count = 0; count < 3; count++) await round();
    expect([await paying.balance(), charges()]).toEqual([5, 1]);
    const entries = listAt(await paying.json("GET", "/security/audit"), "data").map((entry) =>
      at(entry, "action"),
    );
    expect(entries).toContain("automatic top-ups stopped: card_declined: insufficient_funds");
    expect(await paying.json("POST", "/credits/automatic", terms)).toMatchObject({
      status: "on",
      stopped_reason: null,
    });
    // The webhook of the old refusal comes late, and is about an order that is over.
    expect(await paying.deliver(paying.stripe.world.events.at(-1)!)).toBe("already");
    await round();
    expect([await paying.balance(), charges()]).toEqual([25, 2]);
  });
});

test("an order waits while Stripe is down and is charged once afterwards", async () => {
  await agreed();
  paying.stripe.nextFault = "down";
  await round();
  expect(await paying.json("GET", "/credits/automatic")).toMatchObject({
    status: "on",
    charged_this_month: 21.5,
  });
  await round();
  expect([await paying.balance(), paying.stripe.world.payments.size]).toEqual([25, 2]);
  expect(listAt(await paying.json("GET", "/credits/top-ups"), "data")).toHaveLength(2);
});

test("an order unknown to Stripe after a day fails and is not charged again", async () => {
  await agreed();
  paying.stripe.nextFault = "down";
  await round();
  paying.clock.advance(day);
  await round();
  expect([await paying.balance(), paying.stripe.world.payments.size]).toEqual([5, 1]);
  expect(await paying.json("GET", "/credits/automatic")).toMatchObject({
    status: "stopped",
    stopped_reason: "no_answer",
  });
});

test("ending automatic top-ups stops new charges, but earlier ones are still credited", async () => {
  await agreed();
  paying.stripe.nextFault = "answer-lost";
  await round();
  expect(await paying.json("DELETE", "/credits/automatic")).toMatchObject({
    status: "off",
    threshold: 10,
  });
  await round();
  expect(await paying.balance()).toBe(25);
  await paying.json("POST", "/credits/automatic", { ...terms, threshold: 1_000 });
  await paying.json("DELETE", "/credits/automatic");
  await round();
  expect([await paying.balance(), charges()]).toEqual([25, 1]);
});

test("every consent is stored with its time, author and terms", async () => {
  await agreed();
  paying.clock.advance(1_000);
  await paying.json("POST", "/credits/automatic", { ...terms, amount: 30 });
  const rows = await paying
    .gateway()
    .app.storage.database.selectFrom("payment_consents")
    .selectAll()
    .orderBy("at_ms")
    .execute();
  expect(rows.map(({ by_id: by, at_ms: at }) => [by, at])).toEqual([
    [expect.stringMatching(/^mgk_/), Date.UTC(2026, 10, 21, 12) + 1],
    [expect.stringMatching(/^mgk_/), Date.UTC(2026, 10, 21, 12) + 1_001],
  ]);
  expect(JSON.parse(rows[1]!.terms)).toMatchObject({
    creditCents: 3_000,
    thresholdCents: 1_000,
    monthlyMaxCents: 5_000,
  });
});

test.each([
  [{ ...terms, consent: false }, 400, "consent: must be true"],
  [{ ...terms, consent: undefined }, 400, "consent"],
  [{ ...terms, monthly_limit: 21.49 }, 400, "monthly_limit: must be at least 21.5 USD"],
  [{ ...terms, amount: 1 }, 400, "amount: must be from 5 to 5000 USD."],
  [{ ...terms, threshold: 0.001 }, 400, "threshold: must be whole cents."],
])("an agreement %j is refused", async (body, status, message) => {
  paying = await startPayingGateway(undefined);
  const response = await paying.ask("POST", "/credits/automatic", body);
  expect([response.status, String(at(await response.json(), "error.message"))]).toEqual([
    status,
    expect.stringContaining(message),
  ]);
});

test("an agreement needs a saved card", async () => {
  paying = await startPayingGateway(undefined);
  expect((await paying.ask("POST", "/credits/automatic", terms)).status).toBe(409);
  await paying.topUp(5);
  const response = await paying.ask("POST", "/credits/automatic", terms);
  expect([response.status, at(await response.json(), "error.code")]).toEqual([409, "conflict"]);
  expect(await paying.json("GET", "/credits/automatic")).toMatchObject({
    status: "off",
    threshold: null,
    card: null,
  });
});

test("a blocked workspace is not charged", async () => {
  await agreed();
  const { app } = paying.gateway();
  await app.storage.database.updateTable("workspaces").set({ blocked_at_ms: 1 }).execute();
  await paying.restart();
  await round();
  expect(charges()).toBe(0);
  expect((await paying.ask("GET", "/credits")).status).toBe(401);
});
