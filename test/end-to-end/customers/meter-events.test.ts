import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme } from "../../support/gateway.ts";
import { startPayingGateway, type PayingGateway } from "../../support/stripe/paying-gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { engines } from "../api/two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500, with a fifth more: 19.2 millionths of a USD. */
const priceUnits = 19.2;

describe.each(engines)("meter events on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let paying: PayingGateway;
  let secret: string;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    paying = await startPayingGateway(await freshUrl(), {
      providers: [acme(upstream.baseUrl)],
      customers: { rule: undefined, most: 100, stripeMeter: "usage" },
    });
    secret = textAt(await paying.json("POST", "/keys", { name: "service" }), "key");
    await paying.topUp(50);
  }, 240_000);
  afterAll(async () => {
    await paying.stop();
    upstream.stop();
  });

  const ask = async (customer: string, times: number): Promise<void> => {
    for (let sent = 0; sent < times; sent += 1) {
      const answer = await fetch(`${paying.gateway().baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify(chatRequest({ max_tokens: 7, user: customer })),
      });
      expect(answer.status).toBe(200);
      await answer.text();
    }
  };
  const create = (externalId: string, plan: object, stripeId = `cus_${externalId}`) =>
    paying.json("POST", "/customers", {
      external_id: externalId,
      stripe_customer_id: stripeId,
      plan: { type: "postpaid", markup: 0.2, ...plan },
    });
  const run = (): Promise<void> => paying.gateway().app.meterEvents.run();
  const meters = () => paying.stripe.world.meters;
  const eventsOf = async (customer: string): Promise<unknown[]> =>
    listAt(await paying.json("GET", `/customers/${customer}/meter-events`), "data");

  test("what is billed beyond the allowance is reported, each part once", async () => {
    await create("shop", { allowance: 0.00002 });
    await ask("shop", 1);
    await run();
    expect(meters().events).toHaveLength(0);
    await ask("shop", 4);
    await Promise.all([run(), run()]);
    expect(meters().sumOf("cus_shop")).toBe(Math.floor(5 * priceUnits - 20));
    await run();
    await ask("shop", 5);
    await run();
    expect(meters().sumOf("cus_shop")).toBe(Math.floor(10 * priceUnits - 20));
    expect(await eventsOf("shop")).toMatchObject([
      { status: "sent", value: 96, attempts: 1, event_name: "usage" },
      { status: "sent", value: 76 },
    ]);
  });

  test("an event whose answer was lost counts once, also after a restart", async () => {
    await create("lost", {});
    await ask("lost", 10);
    paying.stripe.nextFault = "answer-lost";
    await run();
    expect(await eventsOf("lost")).toMatchObject([{ status: "pending", attempts: 1 }]);
    await paying.restart();
    await run();
    paying.clock.advance(120_000);
    await run();
    expect(await eventsOf("lost")).toMatchObject([{ status: "sent", attempts: 2, error: null }]);
    expect(meters().events.filter(({ customer }) => customer === "cus_lost")).toHaveLength(1);
    expect(meters().sumOf("cus_lost")).toBe(192);
  });

  test("an event that was never answered is not sent where it could count twice", async () => {
    await create("late", {});
    await ask("late", 10);
    paying.stripe.nextFault = "answer-lost";
    await run();
    paying.clock.advance(25 * 3_600_000);
    await run();
    expect(await eventsOf("late")).toMatchObject([{ status: "failed" }]);
    expect(meters().sumOf("cus_late")).toBe(192);
  });

  test("what Stripe refuses is shown, and sent again", async () => {
    await create("refused", {});
    meters().names.delete("usage");
    await ask("refused", 10);
    await run();
    const [event] = await eventsOf("refused");
    expect(event).toMatchObject({ status: "pending" });
    expect(textAt(event, "error")).toContain("No active meter");
    meters().names.add("usage");
    paying.clock.advance(3_700_000);
    await run();
    expect(meters().sumOf("cus_refused")).toBe(192);
    expect(at((await eventsOf("refused"))[0], "status")).toBe("sent");
  });

  test("a balance is shown to who has the link, without costs, in a frame of any site", async () => {
    const made = await paying.json("POST", "/customers", {
      external_id: "viewer",
      name: "The viewer",
      plan: { type: "prepaid", markup: 0.2 },
    });
    const path = `/customers/${textAt(made, "id")}`;
    await paying.json("POST", `${path}/credits`, { amount: 0.001 });
    await ask("viewer", 1);
    const { pathname } = new URL(
      textAt(await paying.json("POST", `${path}/balance-link`, {}), "url"),
    );
    const token = pathname.slice("/balance/".length);
    const url = new URL(`/balance/${token}`, paying.gateway().baseUrl);
    const page = await fetch(url);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors *");
    expect(page.headers.get("x-frame-options")).toBeNull();
    const text = await page.text();
    expect(text).toContain("The viewer");
    expect(text).toContain("0.0009808 USD");
    expect(text).not.toContain("0.000016");
    const json: unknown = await (
      await fetch(url, { headers: { accept: "application/json" } })
    ).json();
    expect(json).toMatchObject({ remaining: 0.0009808, used: 0.0000192, limit: 0.001 });
    expect(JSON.stringify(json)).not.toMatch(/cost|margin/);
    const forged = new URL(`${pathname.slice(0, -1)}${pathname.endsWith("A") ? "B" : "A"}`, url);
    const refused = await fetch(forged, { headers: { accept: "application/json" } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([
      404,
      "*",
    ]);
    expect(refused.headers.get("ratelimit-policy")).toMatch(/;w=60$/);
    expect(at(await refused.json(), "error.metadata.type")).toBe("not_found_error");
    await paying.json("POST", `${path}/balance-link`, { revoke: true });
    expect((await fetch(url)).status).toBe(404);
    const brief = await paying.json("POST", `${path}/balance-link`, { expires_in: 60 });
    paying.clock.advance(61_000);
    expect((await fetch(new URL(new URL(textAt(brief, "url")).pathname, url))).status).toBe(404);
  });
});
