import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startFakeStripe, type FakeStripe } from "../../support/stripe/fake-stripe.ts";
import { paymentSettings, signed } from "../../support/stripe/paying-gateway.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startPeopled, type PeopledGateway } from "./people-browser.ts";
import { allEngines } from "./two-workspaces.ts";

describe.each(allEngines)("paged lists on %s", (_, freshUrl) => {
  let stripe: FakeStripe;
  let people: PeopledGateway;
  let organizationId: string;

  /** Buys credits, and has Stripe report the payment. */
  async function buy(amount: number): Promise<void> {
    const topUp = await people.owner.json("POST", "/credits/top-ups", { amount });
    const session = textAt(topUp, "url").slice("https://checkout.example/".length);
    const body = JSON.stringify(stripe.world.pay(session)[0]);
    const told = await fetch(`${people.gateway().baseUrl}/webhooks/stripe`, {
      method: "POST",
      body,
      headers: signed(body, { atMs: Date.now() }),
    });
    expect(told.status).toBe(200);
  }

  beforeAll(async () => {
    stripe = startFakeStripe();
    people = await startPeopled(await freshUrl(), { payments: paymentSettings(stripe.url) });
    const { owner } = people;
    for (const slug of ["one", "two", "three", "four", "five"])
      await owner.json("POST", "/presets", { slug, name: slug, config: { model: "acme/large" } });
    for (const name of ["a", "b", "c", "d", "e"])
      await owner.json("POST", "/budgets", { name, limit: 5 });
    organizationId = textAt(await owner.json("POST", "/organizations", { name: "Yard" }), "id");
    for (const name of ["ada", "bob", "cy", "dora"])
      await people.invited(organizationId, { email: `${name}@example.com`, role: "member" });
    for (const amount of [10, 11, 12, 13, 14]) await buy(amount);
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    await stripe.stop();
  });

  const lists = [
    ["/presets", "slug"],
    ["/budgets", "id"],
    ["/organizations/{id}/members", "user_id"],
    ["/credits/top-ups", "id"],
    ["/credits/invoices", "id"],
  ] as const;
  const pathOf = (path: string): string => path.replace("{id}", organizationId);

  test.each(lists)("%s: pages have no gaps or repeats and end", async (path, id) => {
    const ask = (query: string): Promise<unknown> =>
      people.owner.json("GET", `${pathOf(path)}${query}`);
    const whole = listAt(await ask(""), "data").map((row) => textAt(row, id));
    expect(whole).toHaveLength(5);
    for (const limit of [1, 2, 5, 6]) {
      const seen: string[] = [];
      for (let cursor = ""; ; ) {
        const page = await ask(`?limit=${limit}${cursor}`);
        const data = listAt(page, "data");
        expect(data.length).toBeLessThanOrEqual(limit);
        seen.push(...data.map((row) => textAt(row, id)));
        const more = at(page, "has_more");
        expect([more, at(page, "next_cursor") !== null]).toEqual([
          seen.length < whole.length,
          seen.length < whole.length,
        ]);
        if (more !== true) break;
        cursor = `&cursor=${encodeURIComponent(textAt(page, "next_cursor"))}`;
      }
      expect(seen).toEqual(whole);
    }
    const later = await ask("?limit=2&offset=2");
    expect(listAt(later, "data").map((row) => textAt(row, id))).toEqual(whole.slice(2, 4));
    expect(at(later, "has_more")).toBe(true);
  });

  test.each(lists)("%s: an invalid parameter returns 400 that names it", async (path) => {
    for (const query of ["limit=0", "limit=1000", "limit=x", "limit=2&cursor=none", "colour=red"]) {
      const refused = await errorOf(await people.owner.api("GET", `${pathOf(path)}?${query}`));
      const named = query.includes("cursor") ? "cursor" : (query.split("=")[0] ?? "");
      expect([query, refused.status, refused.param]).toEqual([query, 400, named]);
    }
  });

  test.each([
    ["/keys", "hash", "/keys"],
    ["/keys?sort=name", "hash", "/keys"],
    ["/keys?sort=spend", "hash", "/keys"],
    ["/keys?sort=last_used", "hash", "/keys"],
    ["/presets", "slug", "/presets"],
    ["/budgets", "id", "/budgets"],
    ["/organizations/{id}/members", "user_id", "/organizations/{id}/members"],
    ["/customers", "id", "/customers"],
  ] as const)("%s: entries can be removed while they are paged", async (path, id, one) => {
    const { owner } = people;
    if (one === "/keys")
      for (const name of ["b", "a", "d", "c", "e"]) await owner.json("POST", "/keys", { name });
    if (one === "/customers")
      for (const name of ["a", "b", "c", "d", "e"])
        await owner.json("POST", "/customers", { external_id: name });
    const query = (more: string): string => `${path.includes("?") ? "&" : "?"}${more}`;
    const rows = async (more = ""): Promise<unknown> =>
      owner.json("GET", pathOf(path) + (more === "" ? "" : query(more)));
    const whole = listAt(await rows(), "data").map((row) => textAt(row, id));
    const seen: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await rows(`limit=2${cursor}`);
      const ids = listAt(page, "data").map((row) => textAt(row, id));
      seen.push(...ids);
      for (const each of ids) await owner.api("DELETE", `${pathOf(one)}/${each}`);
      if (at(page, "has_more") !== true) break;
      cursor = `&cursor=${textAt(page, "next_cursor")}`;
    }
    expect(seen).toEqual(whole);
  });

  test("a cursor of another order returns 400 where its entry was removed", async () => {
    const { owner } = people;
    for (const name of ["x", "y", "z"]) await owner.json("POST", "/keys", { name });
    const page = await owner.json("GET", "/keys?sort=name&limit=1");
    await owner.api("DELETE", `/keys/${textAt(page, "data.0.hash")}`);
    const cursor = textAt(page, "next_cursor");
    const refused = await errorOf(await owner.api("GET", `/keys?sort=spend&cursor=${cursor}`));
    expect([refused.status, refused.param]).toEqual([400, "cursor"]);
  });

  test("a cursor from another workspace returns 400", async () => {
    const [order] = listAt(await people.owner.json("GET", "/credits/top-ups"), "data");
    const [invoice] = listAt(await people.owner.json("GET", "/credits/invoices"), "data");
    const workspaces = listAt(await people.owner.json("GET", "/workspaces"), "data");
    const other = workspaces.find((each) => at(each, "organization_id") === organizationId);
    await people.owner.json("PATCH", "/session", { workspace_id: at(other, "id") });
    for (const [path, cursor] of [
      ["/credits/top-ups", textAt(order, "id")],
      ["/credits/invoices", textAt(invoice, "id")],
    ] as const) {
      const refused = await errorOf(await people.owner.api("GET", `${path}?cursor=${cursor}`));
      expect([path, refused.status, refused.param]).toEqual([path, 400, "cursor"]);
    }
  });
});
