import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hourMs } from "../../../src/platform/kernel/clock.ts";
import { provider, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const usage = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 40 },
  completion_tokens_details: { reasoning_tokens: 5 },
};
const pricing = { prompt: "1", completion: "2", cache_read: "0.5" };
/** 60 uncached, 40 cached and 20 output tokens. */
const cost = 0.000_12;

describe.each(allEngines)("analytics on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let stage: TwoWorkspaces;
  let secondKey: string;
  const clock = middayClock();
  const today = new Date(clock.nowMs()).toISOString().slice(0, 10);

  beforeAll(async () => {
    upstream = await startFaultUpstream();
    upstream.script((request) => chatAnswer(request, { usage }));
    const providers = ["one", "two"].map((id) =>
      provider({
        id,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: [{ id: `acme/${id}`, pricing }],
      }),
    );
    stage = await startTwoWorkspaces(freshUrl, { providers }, { clock });
    secondKey = textAt(await (await stage.own("POST", "/keys", { name: "second" })).json(), "key");
    const ask = async (secret: string, model: string): Promise<void> => {
      await (await stage.as(secret)("POST", "/chat/completions", chatRequest({ model }))).text();
    };
    for (const model of ["acme/one", "acme/one", "acme/two"]) await ask(testLlmKey, model);
    await ask(secondKey, "acme/one");
    upstream.enqueue(json(chatError("no"), { status: 500 }));
    await ask(secondKey, "acme/two");
  }, 240_000);
  afterAll(async () => {
    await stage.stop();
    upstream.stop();
  });

  const bodyOf = async (path: string, secret = testManagementKey): Promise<unknown> => {
    const response = await stage.as(secret)("GET", path);
    expect(response.status).toBe(200);
    return response.json();
  };
  /** Ids of the key of the tests and of the second one. */
  const keyIds = async (): Promise<string[]> =>
    listAt(await bodyOf("/keys"), "data")
      .toSorted(
        (left, right) =>
          Number(at(left, "name") === "second") - Number(at(right, "name") === "second"),
      )
      .map((key) => textAt(key, "id"));

  test("reports exact usage totals for the workspace", async () => {
    const body = await bodyOf("/analytics/usage");
    expect(body).toMatchObject({ object: "list", interval: "day" });
    expect(listAt(body, "data")).toEqual([
      {
        bucket: `${today}T00:00:00.000Z`,
        requests: 5,
        errors: 1,
        tokens: 480,
        prompt_tokens: 400,
        completion_tokens: 80,
        cached_tokens: 160,
        reasoning_tokens: 20,
        cost: expect.closeTo(4 * cost, 9) as unknown,
      },
    ]);
  });

  test("groups usage by model, key and provider, alone and combined, also by the hour", async () => {
    const rowsOf = async (query: string, names: string[]): Promise<string[]> =>
      listAt(await bodyOf(`/analytics/usage?${query}`), "data").map((row) =>
        [...names, "requests", "errors"].map((name) => String(at(row, name))).join(" "),
      );
    expect(await rowsOf("group_by=model", ["model"])).toEqual(["acme/one 3 0", "acme/two 2 1"]);
    expect(await rowsOf("group_by=provider&interval=hour", ["provider"])).toEqual([
      "one 3 0",
      "two 2 1",
    ]);
    const [first = "", second = ""] = await keyIds();
    expect((await rowsOf("group_by=key,model", ["model", "key_id"])).sort()).toEqual(
      [
        `acme/one ${first} 2 0`,
        `acme/one ${second} 1 0`,
        `acme/two ${first} 1 0`,
        `acme/two ${second} 1 1`,
      ].sort(),
    );
  });

  test("cuts days in the requested time zone without changing the totals", async () => {
    for (const zone of ["Pacific/Auckland", "America/New_York", "Asia/Kolkata"]) {
      const body = await bodyOf(`/analytics/usage?time_zone=${zone}&group_by=model`);
      const [row] = listAt(body, "data");
      const bucket = new Date(textAt(row, "bucket"));
      const times = new Intl.DateTimeFormat("en-GB", { timeZone: zone, timeStyle: "short" });
      expect([at(body, "time_zone"), times.format(bucket)]).toEqual([zone, "00:00"]);
      expect(clock.nowMs() - bucket.getTime()).toBeLessThan(25 * hourMs);
      const requests = listAt(body, "data").map((each) => Number(at(each, "requests")));
      expect(requests.reduce((sum, count) => sum + count, 0)).toBe(5);
      const [activity] = listAt(await bodyOf(`/analytics/activity?time_zone=${zone}`), "data");
      expect(textAt(activity, "date")).toBe(
        new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(bucket),
      );
    }
    expect(at(await bodyOf("/analytics/usage"), "time_zone")).toBe("UTC");
  });

  test.each([
    ["/analytics/usage?time_zone=Mars/Olympus", "time_zone"],
    ["/analytics/activity?time_zone=x", "time_zone"],
    ["/analytics/usage?time_zone=Europe/Berlin&from=2026-01-01&to=2026-03-01", "from"],
  ])("returns 400 that names the invalid parameter of %s", async (path, param) => {
    const refused = await errorOf(await stage.own("GET", path));
    expect([refused.status, refused.param]).toEqual([400, param]);
  });

  test("lists activity by day, model and key", async () => {
    const rows = listAt(await bodyOf("/analytics/activity"), "data");
    expect(rows).toHaveLength(4);
    expect(Object.keys(rows[0] as object)).toEqual([
      "date",
      "model",
      "key_id",
      "requests",
      "errors",
      "tokens",
      "prompt_tokens",
      "completion_tokens",
      "cached_tokens",
      "reasoning_tokens",
      "cost",
    ]);
    expect(textAt(rows, "0.date")).toBe(today);
  });

  test("pages generations newest first without gaps or repeats", async () => {
    const ids: string[] = [];
    let cursor: unknown;
    for (let page = 0; page < 3; page += 1) {
      const body = await bodyOf(
        `/analytics/generations?limit=2${typeof cursor === "string" ? `&after=${cursor}` : ""}`,
      );
      ids.push(...listAt(body, "data").map((row) => textAt(row, "id")));
      cursor = at(body, "next_cursor");
      expect(at(body, "has_more")).toBe(ids.length < 5);
      if (cursor === null) break;
    }
    expect(ids).toHaveLength(5);
    expect(ids).toEqual(ids.toSorted().reverse());
    const [newest, last] = listAt(await bodyOf("/analytics/generations"), "data");
    expect(newest).toMatchObject({
      model: "acme/two",
      provider_name: "two",
      status: "failed",
      tokens_prompt: 0,
      total_cost: 0,
    });
    expect(last).toMatchObject({
      model: "acme/one",
      provider_name: "one",
      status: "completed",
      tokens_prompt: 100,
      total_cost: cost,
    });
    const hourAgo = new Date(clock.nowMs() - hourMs).toISOString();
    expect(listAt(await bodyOf(`/analytics/generations?to=${hourAgo}`), "data")).toEqual([]);
    expect(listAt(await bodyOf(`/analytics/generations?from=${hourAgo}`), "data")).toHaveLength(5);
  });

  test.each(["/analytics/usage", "/analytics/activity", "/analytics/generations"])(
    "%s returns nothing to another workspace",
    async (path) => {
      expect(listAt(await (await stage.stranger("GET", path)).json(), "data")).toEqual([]);
    },
  );

  test("returns nothing for a cursor from another workspace", async () => {
    const [generation] = listAt(await bodyOf("/analytics/generations?limit=1"), "data");
    const after = `/analytics/generations?after=${textAt(generation, "id")}`;
    expect(listAt(await (await stage.stranger("GET", after)).json(), "data")).toEqual([]);
  });

  test("reports the same counts after a restart", async () => {
    const before = await bodyOf("/analytics/usage?group_by=model,key,provider");
    await stage.restart();
    expect(await bodyOf("/analytics/usage?group_by=model,key,provider")).toEqual(before);
  }, 240_000);

  test("publishes exact service-wide statistics, cacheable for ten minutes", async () => {
    await stage.gateway().app.insights.network.refresh();
    const response = await fetch(`${stage.gateway().baseUrl}/analytics/network`);
    expect(response.headers.get("cache-control")).toBe("public, max-age=600, s-maxage=600");
    const body: unknown = await response.json();
    expect(Object.keys(body as object)).toEqual(["generated_at", "totals", "top_models", "trend"]);
    expect(at(body, "totals")).toEqual({
      tokens: 480,
      requests: 5,
      prompt_tokens: 400,
      completion_tokens: 80,
      cached_tokens: 160,
      reasoning_tokens: 20,
    });
    expect(listAt(body, "top_models")).toEqual(
      [
        {
          model_id: "acme/one",
          model_name: "one",
          provider: "acme",
          rank: 1,
          tokens: 360,
          requests: 3,
          share: 0.75,
        },
        {
          model_id: "acme/two",
          model_name: "two",
          provider: "acme",
          rank: 2,
          tokens: 120,
          requests: 2,
          share: 0.25,
        },
      ].map((row) => ({ ...row, model_name: expect.any(String) as unknown })),
    );
  });
});

describe("invalid analytics parameters", () => {
  let stage: TwoWorkspaces;
  beforeEach(async () => {
    stage = await startTwoWorkspaces(async () => undefined);
  });
  afterEach(() => stage.stop());

  test.each([
    ["/analytics/usage?from=yesterday", "from"],
    ["/analytics/usage?from=2026-13-40", "from"],
    ["/analytics/usage?from=2026-02-02&to=2026-02-01", "from"],
    ["/analytics/usage?from=2026-02-01&to=2026-02-01", "from"],
    ["/analytics/usage?from=2024-01-01&to=2026-01-01", "from"],
    ["/analytics/usage?interval=hour&from=2026-01-01&to=2026-03-01", "from"],
    ["/analytics/usage?interval=minute", "interval"],
    ["/analytics/usage?group_by=colour", "group_by"],
    ["/analytics/activity?from=2026-01-01&to=2026-09-01", "from"],
    ["/analytics/generations?limit=0", "limit"],
    ["/analytics/generations?limit=1001", "limit"],
    ["/analytics/generations?limit=many", "limit"],
    ["/analytics/generations?after=1", "after"],
  ])("%s", async (path, param) => {
    const error = await errorOf(await stage.own("GET", path));
    expect([error.status, error.code, error.param]).toEqual([400, "bad_request", param]);
  });
});
