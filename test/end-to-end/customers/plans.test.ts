import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { CustomerTables } from "../../../src/billing/customers/customer-store.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";
import { acme } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";

/** 11 tokens in at 500 nano-USD and 7 out at 1500. */
const costUsd = 0.000016;
/** What each customer may use by the rule: three requests, each of which is held at 0.000023. */
const ruleUsd = 0.00006;

const freeProvider = (baseUrl: string) => ({
  ...acme(baseUrl),
  id: "free",
  models: [{ id: "acme/small:free", pricing: { prompt: "0", completion: "0" } }],
});

describe.each(engines)("plans of customers on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let workspaces: TwoWorkspaces;
  let secret: string;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    workspaces = await startTwoWorkspaces(freshUrl, {
      providers: [acme(upstream.baseUrl), freeProvider(upstream.baseUrl)],
      customers: {
        rule: { limitNanoUsd: 60_000n, per: "month", markup: 0 },
        most: 1_000,
        stripeMeter: undefined,
      },
    });
    secret = textAt(
      await (await workspaces.own("POST", "/keys", { name: "service" })).json(),
      "key",
    );
  }, 240_000);
  afterAll(async () => {
    await workspaces.stop();
    upstream.stop();
  });

  const own = async (method: string, path: string, body?: unknown): Promise<unknown> =>
    (await workspaces.own(method, path, body)).json();
  const chat = (
    customer: string | undefined,
    { key = secret, ...fields }: { key?: string } & Record<string, unknown> = {},
  ): Promise<Response> =>
    fetch(`${workspaces.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        ...(customer !== undefined && { "x-service-customer": customer }),
      },
      body: JSON.stringify(chatRequest({ max_tokens: 7, ...fields })),
    });
  const served = async (times: number, customer: string, key?: string): Promise<number> => {
    const statuses = await Promise.all(
      Array.from({ length: times }, async () => {
        const answer = await chat(customer, key === undefined ? {} : { key });
        await answer.text();
        return answer.status;
      }),
    );
    return statuses.filter((status) => status === 200).length;
  };
  /** Sends requests one by one until one is refused. */
  const untilRefused = async (customer: string): Promise<Response> => {
    for (let sent = 0; sent < 20; sent += 1) {
      const answer = await chat(customer);
      if (answer.status !== 200) return answer;
      await answer.text();
    }
    throw new Error(`${customer} was never refused`);
  };

  test("the rule creates and bounds each customer, however many ask at once", async () => {
    const [anna, ben] = await Promise.all([served(30, "anna"), served(30, "ben")]);
    expect(anna * costUsd).toBeLessThanOrEqual(ruleUsd);
    expect(Math.min(anna, ben)).toBeGreaterThan(0);
    const refused = await untilRefused("anna");
    expect(refused.status).toBe(402);
    const body: unknown = await refused.json();
    expect(at(body, "error.metadata")).toMatchObject({
      reason: "customer_limit_reached",
      customer: "anna",
    });
    const shown = await own("GET", "/customers/anna");
    expect(shown).toMatchObject({
      object: "customer",
      external_id: "anna",
      has_own_plan: false,
      limit: ruleUsd,
      plan: { type: "free", per: "month", allowance: ruleUsd, markup: 0 },
      usage: { requests: 3, cost: 3 * costUsd, price: 3 * costUsd, margin: 0 },
    });
    expect(at(body, "error.metadata.customer_id")).toBe(at(shown, "id"));
    const listed = listAt(await own("GET", "/customers?limit=200"), "data");
    expect(listed.map((each) => textAt(each, "external_id")).sort()).toEqual(["anna", "ben"]);
    await workspaces.restart();
    expect((await chat("anna")).status).toBe(402);
    expect((await chat("carla")).status).toBe(200);
    expect((await chat(undefined)).status).toBe(200);
  });

  test("credits are added to a customer that a request named just now", async () => {
    const [key] = listAt(await own("GET", "/keys"), "data");
    // It is in memory before it is written.
    const { customers } = workspaces.gateway().app.ledger;
    customers?.shareOf(textAt(key, "workspace_id"), { externalId: "new", models: [] });
    const added = await own("POST", "/customers/new/credits", { amount: 2 });
    expect(at(added, "data.amount")).toBe(2);
    expect(listAt(await own("GET", "/customers/new/credits"), "data")).toHaveLength(1);
    await own("DELETE", "/customers/new");
    customers?.shareOf(textAt(key, "workspace_id"), { externalId: "newer", models: [] });
    const { id } = (await own("GET", "/customers/newer")) as { id: string };
    expect(await own("GET", `/customers/${id}`)).toMatchObject({ external_id: "newer" });
    await own("DELETE", "/customers/newer");
  });

  test("one that follows a removed customer begins without its plan and its credits", async () => {
    const plan = { type: "prepaid" };
    await own("POST", "/customers", { external_id: "again", name: "Again", plan });
    await own("POST", "/customers/again/credits", { amount: 3 });
    await own("DELETE", "/customers/again");
    // The rule creates it with the first request.
    expect((await chat("again")).status).toBe(200);
    const fresh = { has_own_plan: false, limit: ruleUsd, credits: 0, name: "again" };
    expect(await own("GET", "/customers/again")).toMatchObject(fresh);
    await own("DELETE", "/customers/again");
    await own("POST", "/customers", { external_id: "again", name: "Again", plan });
    expect(await own("GET", "/customers/again")).toMatchObject({ limit: 0, credits: 0 });
    await own("DELETE", "/customers/again");
  });

  test("links to the balance of a removed customer do not show the one that follows", async () => {
    const link = async (): Promise<URL> => {
      const made = await own("POST", "/customers/moved/balance-link", {});
      return new URL(new URL(textAt(made, "url")).pathname, workspaces.gateway().baseUrl);
    };
    await own("POST", "/customers", { external_id: "moved" });
    const first = await link();
    await own("DELETE", "/customers/moved");
    expect((await chat("moved")).status).toBe(200);
    const second = await link();
    await own("DELETE", "/customers/moved");
    await own("POST", "/customers", { external_id: "moved" });
    const third = await link();
    const answers = await Promise.all([first, second, third].map((url) => fetch(url)));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 200]);
    await own("DELETE", "/customers/moved");
  });

  test("one that an earlier release removed with its plan and credits begins without", async () => {
    const { database } = workspaces.gateway().app.storage;
    const plan = { type: "prepaid" };
    for (const external of ["named", "created"]) {
      await own("POST", "/customers", { external_id: external, name: "Old", plan });
      await own("POST", `/customers/${external}/credits`, { amount: 3 });
      const rows = withTables<CustomerTables>(database);
      const stored = await rows
        .selectFrom("customers")
        .selectAll()
        .where("external_id", "=", external)
        .executeTakeFirstOrThrow();
      await own("DELETE", `/customers/${external}`);
      // That release left them in the row.
      const { removed_at_ms: _, ...left } = stored;
      await rows.updateTable("customers").set(left).where("id", "=", stored.id).execute();
    }
    expect((await chat("named")).status).toBe(200);
    // A list waits for what first requests write.
    await own("GET", "/customers?limit=1");
    const fresh = { has_own_plan: false, credits: 0, name: "named" };
    expect(await own("GET", "/customers/named")).toMatchObject(fresh);
    await own("POST", "/customers", { external_id: "created", plan });
    expect(await own("GET", "/customers/created")).toMatchObject({ limit: 0, credits: 0 });
    for (const external of ["named", "created"]) await own("DELETE", `/customers/${external}`);
  });

  test("a markup by model is priced exactly, and bounds at the price", async () => {
    const made = await own("POST", "/customers", {
      external_id: "shop",
      name: "The shop",
      plan: {
        type: "postpaid",
        allowance: 0.00001,
        cap: 0.0001,
        markup: 0.1,
        markup_by_model: { "acme/large": 0.3333 },
      },
    });
    expect(at(made, "limit")).toBe(0.00011);
    await served(40, "shop");
    const refused = await untilRefused("shop");
    expect(refused.status).toBe(402);
    const price = Math.ceil(16_000 * 1.3333) / 1e9;
    const shown = await own("GET", "/customers/shop");
    const requests = Number(at(shown, "usage.requests"));
    const nano = (usd: unknown): number => Math.round(Number(usd) * 1e9);
    expect(nano(at(shown, "usage.price"))).toBe(requests * nano(price));
    expect(nano(at(shown, "usage.price"))).toBeLessThanOrEqual(110_000);
    expect(nano(at(shown, "usage.margin"))).toBe(
      nano(at(shown, "usage.price")) - nano(at(shown, "usage.cost")),
    );
    expect(nano(at(shown, "billed"))).toBe(requests * nano(price) - 10_000);
    const statement = await own("GET", "/customers/shop/statement");
    expect(at(statement, "total")).toEqual(at(shown, "usage"));
    expect(at(statement, "billed")).toBe(at(shown, "billed"));
    expect(listAt(statement, "data")).toMatchObject([{ model: "acme/large", requests }]);
    const csv = await (await workspaces.own("GET", "/customers/shop/statement?format=csv")).text();
    const [head, line] = csv.split("\r\n");
    expect(head).toBe("day,model,requests,prompt_tokens,completion_tokens,cost,price,margin");
    expect(line).toContain(`acme/large,${requests},`);
  });

  test("a prepaid plan ends at its credits, and goes on with more", async () => {
    const made = await own("POST", "/customers", {
      external_id: "prepaid",
      plan: { type: "prepaid", markup: 1 },
    });
    expect(made).toMatchObject({ credits: 0, remaining: 0, status: "exhausted" });
    expect((await chat("prepaid")).status).toBe(402);
    const path = `/customers/${textAt(made, "id")}`;
    const added = await own("POST", `${path}/credits`, { amount: 0.0001, note: "invoice 1" });
    expect(added).toMatchObject({ data: { amount: 0.0001 }, customer: { remaining: 0.0001 } });
    expect(await served(30, "prepaid")).toBeLessThanOrEqual(2);
    await untilRefused("prepaid");
    const spent = await own("GET", path);
    expect(spent).toMatchObject({ used: 2 * 2 * costUsd, usage: { margin: 2 * costUsd } });
    expect((await workspaces.own("POST", `${path}/credits`, { amount: -1 })).status).toBe(409);
    await own("POST", `${path}/credits`, { amount: 0.0001 });
    // Less than a nano-dollar is nothing.
    for (const amount of [0, 1e-12, -1e-12])
      expect(at(await own("POST", `${path}/credits`, { amount }), "error.param")).toBe("amount");
    expect((await chat("prepaid")).status).toBe(200);
    await workspaces.restart();
    await untilRefused("prepaid");
    expect(at(await own("GET", path), "used")).toBe(0.00016);
    expect(listAt(await own("GET", `${path}/credits`), "data")).toHaveLength(2);
    // What was used is taken off the credits when the plan ends, and they do not come back.
    await own("PATCH", path, { plan: { type: "postpaid", cap: 1 } });
    await own("PATCH", path, { plan: { type: "prepaid" } });
    expect(at(await own("GET", path), "remaining")).toBe(0.00004);
  });

  test("a key of a customer counts towards it, whatever its requests say", async () => {
    await own("POST", "/customers", {
      external_id: "keyed",
      plan: { type: "free", allowance: ruleUsd },
    });
    const { key, data } = (await own("POST", "/customers/keyed/keys", { name: "app" })) as {
      key: string;
      data: { external_user: string };
    };
    expect(data.external_user).toBe("keyed");
    const child = textAt(
      await (await workspaces.as(key)("POST", "/key/children", { name: "c" })).json(),
      "key",
    );
    const run = textAt(
      await (await workspaces.as(key)("POST", "/runs", { name: "r", limit: 1 })).json(),
      "key",
    );
    for (const each of [key, child, run])
      expect((await chat("other", { key: each })).status).toBe(200);
    expect(at(await own("GET", "/customers/keyed"), "usage.requests")).toBe(3);
    for (const each of [key, child, run])
      expect((await chat("other", { key: each })).status).toBe(402);
    expect(listAt(await own("GET", "/customers/keyed/keys"), "data")).toHaveLength(1);
    await own("DELETE", "/customers/keyed");
    expect((await chat(undefined, { key })).status).toBe(401);
  });

  test("changes of a plan apply at once, and suspended customers are refused", async () => {
    const dora = await own("POST", "/customers", {
      external_id: "dora",
      plan: { type: "free", allowance: 1, reset_day: 15 },
    });
    expect(textAt(dora, "period_start")).toMatch(/-15T00:00:00.000Z$/);
    expect((await chat("dora")).status).toBe(200);
    await own("PATCH", "/customers/dora", { suspended: true });
    for (const model of ["acme/large", "acme/small:free"]) {
      const refused: unknown = await (await chat("dora", { model })).json();
      expect([model, at(refused, "error.metadata.reason")]).toEqual([model, "customer_suspended"]);
    }
    await own("PATCH", "/customers/dora", { suspended: false });
    expect((await chat("dora")).status).toBe(200);
    await own("PATCH", "/customers/dora", { plan: { type: "free", allowance: 0.00004 } });
    expect((await chat("dora")).status).toBe(402);
    await own("PATCH", "/customers/dora", { plan: { type: "postpaid", cap: null } });
    expect((await chat("dora")).status).toBe(200);
    expect(at(await own("GET", "/customers/dora"), "usage.requests")).toBe(3);
  });

  test("refuses what is no plan, twice the same customer, and strangers", async () => {
    const wrong = async (body: object): Promise<string> =>
      textAt(await own("POST", "/customers", { external_id: "wrong", ...body }), "error.param");
    expect(await wrong({ plan: { type: "free" } })).toBe("plan.allowance");
    expect(await wrong({ plan: { type: "prepaid", allowance: 1 } })).toBe("plan.allowance");
    expect(await wrong({ plan: { type: "free", allowance: 1, cap: 1 } })).toBe("plan.cap");
    expect(await wrong({ plan: { type: "free", allowance: 1, per: "week", reset_day: 8 } })).toBe(
      "plan.reset_day",
    );
    const made = await own("POST", "/customers", { external_id: "mine" });
    expect((await workspaces.own("POST", "/customers", { external_id: "mine" })).status).toBe(409);
    for (const path of ["", "/keys", "/credits", "/statement"])
      expect(
        (await workspaces.stranger("GET", `/customers/${textAt(made, "id")}${path}`)).status,
      ).toBe(404);
    expect((await workspaces.stranger("GET", "/customers/mine")).status).toBe(404);
  });
});
