import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  paymentSettings,
  signed,
  startPayingGateway,
  webhookSecret,
  type PayingGateway,
} from "../../support/stripe/paying-gateway.ts";
import type { StripeEvent, StripeObject } from "../../support/stripe/stripe-world.ts";
import { at } from "../api/at.ts";
import { allEngines } from "../api/two-workspaces.ts";

let paying: PayingGateway;

const send = (body: string, headers: Record<string, string>): Promise<Response> =>
  fetch(`${paying.gateway().baseUrl}/webhooks/stripe`, { method: "POST", body, headers });

/** Pays for 10 USD of credits at Stripe; no webhook has reported the payment yet. */
async function paid(): Promise<{
  orderId: string;
  completed: StripeEvent;
  succeeded: StripeEvent;
}> {
  const { orderId, sessionId } = await paying.order(10);
  const [succeeded, completed] = paying.stripe.world.pay(sessionId);
  return { orderId, completed: completed!, succeeded: succeeded! };
}

describe("on the gateway of all of them", () => {
  beforeAll(async () => {
    paying = await startPayingGateway(undefined);
  });
  afterAll(() => paying.stop());

  const invoiceCount = async (): Promise<number> =>
    ((await paying.json("GET", "/credits/invoices"))["data"] as unknown[]).length;

  describe("a webhook without a current signature of Stripe is refused and changes nothing:", () => {
    const nowMs = Date.UTC(2026, 10, 21, 12);
    test.each<[string, (body: string) => Record<string, string>]>([
      ["no signature", () => ({})],
      ["garbage", () => ({ "stripe-signature": "t=1,v1=00" })],
      [
        "a signature with another secret",
        (body) => signed(body, { secret: "whsec_of_somebody_else", atMs: nowMs }),
      ],
      ["a signature of another body", (body) => signed(`${body} `, { atMs: nowMs })],
      ["a signature of six minutes ago", (body) => signed(body, { atMs: nowMs - 6 * 60_000 })],
      [
        "a signature in an older scheme",
        (body) => ({
          "stripe-signature": signed(body, { atMs: nowMs })["stripe-signature"]!.replace(
            "v1=",
            "v0=",
          ),
        }),
      ],
    ])("%s", async (_, headersOf) => {
      const { completed } = await paid();
      const body = JSON.stringify(completed);
      const before = Number(await paying.balance());
      const response = await send(body, headersOf(body));
      expect([response.status, at(await response.json(), "error.code")]).toEqual([
        400,
        "bad_request",
      ]);
      expect(await paying.balance()).toBe(before);
      // It was the signature: with its own the same event is good, four minutes old as well.
      expect((await send(body, signed(body, { atMs: nowMs - 4 * 60_000 }))).status).toBe(200);
      expect(await paying.balance()).toBe(before + 10);
    });

    test("a signed body that is not JSON", async () => {
      expect((await send("{", signed("{", { atMs: paying.clock.nowMs() }))).status).toBe(400);
    });

    test("a body above half a megabyte", async () => {
      const body = JSON.stringify({ id: "evt_1", padding: "x".repeat(600_000) });
      expect((await send(body, signed(body, { atMs: paying.clock.nowMs() }))).status).toBe(413);
    });
  });

  describe("an event that does not match its order is logged for the operator and credits nothing:", () => {
    const changed = (event: StripeEvent, fields: Partial<StripeObject>): StripeEvent => ({
      ...event,
      data: { object: { ...event.data.object, ...fields } as StripeObject },
    });
    test.each<[string, string, (events: Awaited<ReturnType<typeof paid>>) => StripeEvent]>([
      [
        "another amount",
        "refused_amount",
        ({ completed }) => changed(completed, { amount_total: 1_099 }),
      ],
      [
        "another amount received",
        "refused_amount",
        ({ succeeded }) => changed(succeeded, { amount_received: 1 }),
      ],
      [
        "another currency",
        "refused_currency",
        ({ completed }) => changed(completed, { currency: "jpy" }),
      ],
      [
        "another customer",
        "refused_customer",
        ({ completed }) => changed(completed, { customer: "cus_of_somebody" }),
      ],
      [
        "no customer",
        "refused_customer",
        ({ succeeded }) => changed(succeeded, { customer: null }),
      ],
      [
        "another checkout",
        "refused_session",
        ({ completed }) => changed(completed, { id: "cs_another" }),
      ],
      [
        "an invalid shape",
        "refused_shape",
        ({ completed }) => changed(completed, { payment_status: 7 }),
      ],
      [
        "the other mode (live or test)",
        "refused_mode",
        ({ completed }) => ({ ...completed, livemode: true }),
      ],
      [
        "a connected account",
        "ignored",
        ({ completed }) => ({ ...completed, account: "acct_other" }),
      ],
      [
        "an unknown order",
        "ignored",
        ({ completed }) => changed(completed, { client_reference_id: "top_none", metadata: {} }),
      ],
      [
        "an unhandled event type",
        "ignored",
        ({ completed }) => ({ ...completed, type: "customer.created" }),
      ],
    ])("%s", async (_, outcome, eventOf) => {
      const events = await paid();
      const [before, invoices] = [Number(await paying.balance()), await invoiceCount()];
      const logged = paying.gateway().logLines.length;
      expect(await paying.deliver(eventOf(events))).toBe(outcome);
      expect([await paying.balance(), await invoiceCount()]).toEqual([before, invoices]);
      const told = paying
        .gateway()
        .logLines.slice(logged)
        .filter((line) => line.includes("does not match its order"));
      expect(told).toHaveLength(
        outcome.startsWith("refused") && outcome !== "refused_mode" ? 1 : 0,
      );
      // The payment itself stays good.
      expect(await paying.deliver({ ...events.completed, id: `evt_good_${events.orderId}` })).toBe(
        "credited",
      );
      expect(await paying.balance()).toBe(before + 10);
    });
  });
});

describe("on a gateway of its own", () => {
  afterEach(() => paying.stop());

  describe.each(allEngines)("parallel webhooks on %s", (_, freshUrl) => {
    test("forty parallel deliveries of one payment credit it once, with one invoice", async () => {
      paying = await startPayingGateway(await freshUrl());
      const { completed, succeeded } = await paid();
      const events = Array.from(
        { length: 40 },
        (__, index) =>
          [
            completed,
            succeeded,
            { ...completed, id: `evt_more_${index}` },
            { ...succeeded, id: `evt_more_${index}` },
          ][index % 4]!,
      );
      const outcomes = await Promise.all(events.map((event) => paying.deliver(event)));
      expect(outcomes.filter((outcome) => outcome === "credited")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "already")).toHaveLength(39);
      expect(await paying.balance()).toBe(10);
      expect(await paying.json("GET", "/credits/invoices")).toMatchObject({
        data: [{ id: "TEST-INV-000001" }],
      });
    });

    test("twelve parallel payments have invoice numbers without gaps", async () => {
      paying = await startPayingGateway(await freshUrl());
      const payments = await Promise.all(Array.from({ length: 12 }, paid));
      await Promise.all(
        payments.flatMap(({ completed, succeeded }) => [
          paying.deliver(completed),
          paying.deliver(succeeded),
        ]),
      );
      expect(await paying.balance()).toBe(120);
      const { data } = (await paying.json("GET", "/credits/invoices")) as {
        data: { id: string; top_up_id: string }[];
      };
      expect(data.map(({ id }) => id).sort()).toEqual(
        Array.from({ length: 12 }, (__, index) => `TEST-INV-${String(index + 1).padStart(6, "0")}`),
      );
      expect(new Set(data.map((invoice) => invoice.top_up_id)).size).toBe(12);
    });
  });

  test("a second payment of an order is not credited, and is logged for the operator", async () => {
    paying = await startPayingGateway(undefined);
    const { completed, succeeded } = await paid();
    expect(await paying.deliver(completed)).toBe("credited");
    const second = { ...succeeded.data.object, id: "pi_second" };
    expect(
      await paying.deliver(paying.stripe.world.happen("payment_intent.succeeded", second)),
    ).toBe("refused_second_payment");
    expect(await paying.balance()).toBe(10);
    expect(paying.gateway().logLines.some((line) => line.includes("refused_second_payment"))).toBe(
      true,
    );
  });

  test("the log contains neither the webhook secret, the Stripe key nor the card", async () => {
    paying = await startPayingGateway(undefined);
    await paying.topUp(10, { save_card: true });
    await send("{}", signed("{}", { secret: "whsec_other", atMs: paying.clock.nowMs() }));
    const log = paying.gateway().logLines.join("\n");
    for (const secret of [webhookSecret, "sk_test_of_the_tests"]) expect(log).not.toContain(secret);
    // The digits alone also occur in ids, which are random.
    expect(log).not.toMatch(/"4242"|4242 ?4242/);
  });

  test("without the webhook secret only the webhook route returns 501", async () => {
    paying = await startPayingGateway(undefined, {
      payments: {
        stripe: { ...paymentSettings("http://127.0.0.1:1").stripe, webhookSecret: undefined },
      },
    });
    const response = await send("{}", signed("{}", { atMs: paying.clock.nowMs() }));
    expect([response.status, at(await response.json(), "error.code")]).toEqual([
      501,
      "not_configured",
    ]);
    expect((await paying.ask("GET", "/credits/quote?amount=5")).status).toBe(200);
  });
});
