import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider } from "../../support/gateway.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startPeopled, type Browser, type PeopledGateway } from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";

const messages = [{ role: "user", content: "Hello" }];

describe.each(engines)("the catalog for a session, on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let people: PeopledGateway;
  let owner: Browser;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    upstream.script(healthyChat);
    const at = (id: string, models: readonly string[]) =>
      provider({
        id,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: models.map((model) => ({
          id: model,
          pricing: { prompt: "1", completion: "2" },
        })),
      });
    people = await startPeopled(await freshUrl(), {
      providers: [at("one", ["acme/both", "acme/one"]), at("two", ["acme/both"])],
    });
    owner = people.owner;
    await owner.json("POST", "/presets", { slug: "brief", name: "Brief", config: {} });
  }, 240_000);
  afterAll(async () => {
    await people.stop();
    upstream.stop();
  });

  const models = async (browser: Browser): Promise<string[]> =>
    listAt(await browser.json("GET", "/models"), "data")
      .map((model) => textAt(model, "id"))
      .filter((id) => id.startsWith("acme/"));

  test("shows presets and leaves out models that the workspace blocks", async () => {
    expect(at(await people.stranger().json("GET", "/models"), "presets")).toBeUndefined();
    expect(textAt(await owner.json("GET", "/models"), "presets.0.slug")).toBe("brief");
    expect(await models(owner)).toEqual(["acme/both", "acme/one"]);
    await owner.json("PATCH", "/security/privacy", { blocked_providers: ["one"] });
    expect(await models(owner)).toEqual(["acme/both"]);
    expect(await models(people.stranger())).toEqual(["acme/both", "acme/one"]);
    const preview = await owner.json("GET", "/models/acme/both/routing-preview");
    expect(listAt(preview, "data").map((step) => textAt(step, "provider"))).toEqual(["two"]);
    const hidden = await errorOf(
      await people.stranger().api("GET", "/models/acme/both/routing-preview"),
    );
    expect(hidden.status).toBe(401);
    await owner.json("PATCH", "/security/privacy", { blocked_providers: [] });
  });

  test("shows an ended session the anonymous list", async () => {
    const left = people.stranger();
    await left.signIn("owner@example.com", "the owner's long password");
    const cookies = new Map(left.cookies);
    await left.ask("POST", "/api/auth/sign-out");
    for (const [name, value] of cookies) left.cookies.set(name, value);
    expect((await left.api("GET", "/session")).status).toBe(401);
    expect(at(await left.json("GET", "/models"), "presets")).toBeUndefined();
  });

  test("explains routing for the workspace without sending, charging, storing or auditing anything", async () => {
    const explained = await owner.json("POST", "/routing/explain", {
      model: "acme/both",
      messages,
      provider: { ignore: ["one"] },
    });
    expect(listAt(explained, "candidates")).toMatchObject([{ provider: "two" }]);
    expect(listAt(explained, "left_out")).toMatchObject([{ provider: "one", rule: "ignore" }]);
    await owner.json("PATCH", "/security/privacy", { blocked_providers: ["two"] });
    const blocked = await owner.json("POST", "/routing/explain", { model: "acme/both", messages });
    expect(listAt(blocked, "candidates")).toMatchObject([{ provider: "one" }]);
    await owner.json("PATCH", "/security/privacy", { blocked_providers: [] });
    expect(upstream.requests.length).toBe(0);
    expect(people.gateway().app.ledger.openHoldCount).toBe(0);
    expect(listAt(await owner.json("GET", "/analytics/generations"), "data")).toEqual([]);
    const audit = listAt(await owner.json("GET", "/security/audit"), "data");
    expect(audit.map((entry) => textAt(entry, "action"))).not.toContain("POST /routing/explain");
  });

  test("cannot be read by another site in the browser of a signed-in user", async () => {
    const { origin } = owner;
    owner.origin = "https://elsewhere.example";
    const body = { model: "acme/both", messages };
    expect((await owner.api("POST", "/routing/explain", body)).status).toBe(403);
    owner.origin = origin;
    const answer = await people.stranger().api("POST", "/routing/explain", body);
    expect(answer.status).toBe(401);
    expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("returns usage, speed and uptime of all models in one response each", async () => {
    const key = textAt(await owner.json("POST", "/keys", { name: "asks" }), "key");
    for (const model of ["acme/one", "acme/one", "acme/both"]) {
      const answer = await people
        .gateway()
        .post(
          "/chat/completions",
          { model, messages },
          { headers: { authorization: `Bearer ${key}` } },
        );
      expect(answer.status).toBe(200);
      await answer.text();
    }
    // Reading what was used waits until it is written.
    await owner.json("GET", "/analytics/usage");
    await people.gateway().app.storage.commits.flush();
    const metrics = listAt(await owner.json("GET", "/models/metrics"), "data");
    expect(metrics).toMatchObject([
      { model: "acme/one", weekly_requests: 2, weekly_rank: 1, providers: [{ provider: "one" }] },
      { model: "acme/both", weekly_requests: 1, weekly_rank: 2 },
    ]);
    const uptime = listAt(await owner.json("GET", "/models/uptime"), "data");
    expect(uptime).toContainEqual({
      model: "acme/one",
      provider: "one",
      attempts: 2,
      failures: 0,
      uptime: 1,
    });
    await owner.json("PATCH", "/security/privacy", { blocked_providers: ["one"] });
    const seen = listAt(await owner.json("GET", "/models/metrics"), "data");
    expect(seen.map((line) => textAt(line, "model"))).toEqual(["acme/both"]);
  });
});
