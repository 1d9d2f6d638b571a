import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { provider, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { recordInSeries, settledUnit } from "../../support/generation-records.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { isNightly } from "../../support/nightly.ts";
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
const pricing = { prompt: "1", completion: "2" };
/** A page of four of the rare ones takes two steps of a search, of 15,000 records each. */
const [records, rareOnes] = isNightly ? [40_000, 10] : [20_000, 5];
/** One cheap answer costs 0.00014 USD; those of the dear model a hundred times as much. */
const dear = { prompt: "100", completion: "200" };

describe.each(allEngines)("the list of generations on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let stage: TwoWorkspaces;
  let secondId: string;
  let secondKey: string;
  let presetId: string;

  const ask = async (
    secret: string,
    body: object,
    headers: Record<string, string> = {},
  ): Promise<number> => {
    const response = await fetch(`${stage.gateway().baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, ...headers },
      body: JSON.stringify(body),
    });
    await response.text();
    return response.status;
  };

  beforeAll(async () => {
    upstream = await startFaultUpstream();
    upstream.script((request) => chatAnswer(request, { usage }));
    const providers = ["one", "two"].map((id) =>
      provider({
        id,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: [
          { id: "acme/both", pricing },
          { id: `acme/${id}`, pricing: id === "two" ? dear : pricing },
        ],
      }),
    );
    stage = await startTwoWorkspaces(freshUrl, { providers }, { clock: middayClock() });
    const made: unknown = await (
      await stage.own("POST", "/keys", { name: '=second, "quoted"' })
    ).json();
    [secondKey, secondId] = [textAt(made, "key"), textAt(made, "data.id")];
    const app = { "x-title": "Writer", "http-referer": "https://writer.example" };
    expect(await ask(testLlmKey, chatRequest({ model: "acme/one" }), app)).toBe(200);
    expect(
      await ask(testLlmKey, chatRequest({ model: "acme/two", stream: true, session_id: "s-1" })),
    ).toBe(200);
    const preset = { slug: "plain", name: "Plain", config: { model: "acme/one" } };
    presetId = textAt(await (await stage.own("POST", "/presets", preset)).json(), "id");
    expect(await ask(secondKey, chatRequest({ model: "@preset/plain" }))).toBe(200);
    // Served by the second provider after the first one failed.
    upstream.enqueue(json(chatError("no"), { status: 500 }));
    expect(
      await ask(
        secondKey,
        chatRequest({ model: "acme/both", provider: { order: ["one", "two"] } }),
      ),
    ).toBe(200);
    upstream.enqueue(json(chatError("no"), { status: 500 }));
    expect(await ask(secondKey, chatRequest({ model: "acme/two" }))).toBe(502);
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
  const rowsOf = async (query: string): Promise<unknown[]> =>
    listAt(await bodyOf(`/analytics/generations?${query}`), "data");

  test("is filtered by the time that it shows, so that from just after it a generation is left out", async () => {
    const listed = async (query: string): Promise<unknown[]> =>
      listAt(await (await stage.own("GET", `/analytics/generations?${query}`)).json(), "data");
    const rows = await listed("limit=50");
    expect(rows.length).toBeGreaterThan(2);
    for (const row of rows) {
      const [id, createdAt] = [textAt(row, "id"), textAt(row, "created_at")];
      const after = new Date(Date.parse(createdAt) + 1).toISOString();
      const from = await listed(`limit=50&from=${createdAt}`);
      const later = await listed(`limit=50&from=${after}`);
      expect(from.map((each) => textAt(each, "id"))).toContain(id);
      expect(later.map((each) => textAt(each, "id"))).not.toContain(id);
    }
  });

  test("has every documented field of a generation", async () => {
    const [failed, moved, plain, , first] = await rowsOf("");
    expect(first).toMatchObject({
      object: "generation",
      key_name: expect.any(String) as unknown,
      user_id: expect.any(String) as unknown,
      surface: "chat",
      status: "completed",
      model: "acme/one",
      app_title: "Writer",
      origin: "https://writer.example",
      attempts: 1,
      fallback: false,
      tokens_cached: 40,
      tokens_reasoning: 5,
      credential_source: "platform",
      is_byok: false,
      error: null,
      session_id: null,
      preset_id: null,
    });
    expect(plain).toMatchObject({
      key_name: '=second, "quoted"',
      key_id: secondId,
      app_title: null,
      model: "acme/one",
      preset_id: presetId,
    });
    expect(moved).toMatchObject({ attempts: 2, fallback: true, provider_name: "two" });
    expect(failed).toMatchObject({
      status: "failed",
      attempts: 1,
      error: { code: "upstream_error", status: 502 },
    });
  });

  test.each([
    ["model=acme/one", 2],
    ["model=acme/one,acme/two", 4],
    ["requested_model=acme/both", 1],
    ["provider=two", 3],
    ["provider=none", 0],
    ["surface=chat", 5],
    ["surface=messages,embeddings", 0],
    ["status=failed", 1],
    ["status=failed,cut", 1],
    ["status=completed", 4],
    ["status=failed,completed", 5],
    ["error=upstream_error", 1],
    ["error=no_upstream", 0],
    ["app=Writer", 1],
    ["session_id=s-1", 1],
    ["streamed=true", 1],
    ["streamed=false", 4],
    ["byok=true", 0],
    ["byok=false", 5],
    ["min_cost=0.001", 1],
    ["min_cost=1e-9", 4],
    ["min_latency=0", 5],
    ["min_latency=600000", 0],
    ["model=acme/one&app=Writer&status=completed", 1],
    ["model=acme/two&app=Writer", 0],
    ["user_id=usr_nobody", 0],
  ])("%s matches %d", async (query, count) => {
    expect(await rowsOf(query)).toHaveLength(count);
    const histogram = await bodyOf(`/analytics/generations/histogram?${query}`);
    expect(at(histogram, "totals.requests")).toBe(count);
    expect(at(histogram, "complete")).toBe(true);
  });

  test("filters by key, by the user who created it and by any form of the request id", async () => {
    expect(await rowsOf(`key_id=${secondId}`)).toHaveLength(3);
    const [row] = await rowsOf(`key_id=${secondId}&model=acme/one`);
    expect((await rowsOf(`user_id=${textAt(row, "user_id")}`)).length).toBeGreaterThanOrEqual(3);
    expect(await rowsOf(`user_id=${textAt(row, "user_id")}&key_id=key_none`)).toEqual([]);
    const id = textAt(row, "id");
    for (const form of [id, `chatcmpl-${id.slice(4)}`, id.slice(4)])
      expect(await rowsOf(`id=${form}`)).toEqual([row]);
    expect(
      listAt(await (await stage.stranger("GET", `/analytics/generations?id=${id}`)).json(), "data"),
    ).toEqual([]);
  });

  test("filters and counts by preset, and shows the preset on a single record", async () => {
    const [row, ...others] = await rowsOf(`preset_id=prs_other,${presetId}`);
    expect([at(row, "preset_id"), others]).toEqual([presetId, []]);
    const own = await bodyOf(`/generation/${textAt(row, "id")}`, secondKey);
    expect(at(own, "data.preset_id")).toBe(presetId);
    const histogram = await bodyOf(`/analytics/generations/histogram?preset_id=${presetId}`);
    expect(at(histogram, "totals.requests")).toBe(1);
    expect(await rowsOf("preset_id=prs_other")).toEqual([]);
  });

  test.each([
    ["colour=red", "colour"],
    ["status=odd", "status"],
    ["streamed=yes", "streamed"],
    ["min_cost=much", "min_cost"],
    ["min_latency=-1", "min_latency"],
    ["min_cost=1e30", "min_cost"],
    ["min_latency=1e300", "min_latency"],
    ["model=", "model"],
    ["app=", "app"],
    ["format=xml", "format"],
  ])("%s returns 400 that names the parameter", async (query, param) => {
    const error = await errorOf(await stage.own("GET", `/analytics/generations?${query}`));
    expect([error.status, error.param]).toEqual([400, param]);
  });

  test("exports the filtered list as CSV, with key names escaped so that they are not formulas", async () => {
    const response = await stage.own("GET", `/analytics/generations?format=csv&key_id=${secondId}`);
    expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    const lines = (await response.text()).split("\r\n");
    expect(lines[0]?.split(",").slice(0, 4)).toEqual(["id", "created_at", "key_id", "key_name"]);
    expect(lines).toHaveLength(5);
    for (const line of lines.slice(1, 4)) expect(line).toContain('"\'=second, ""quoted"""');
  });

  test("groups errors by code, provider and model, and counts requests that limits refused", async () => {
    const tight: unknown = await (
      await stage.own("POST", "/keys", { name: "tight", limit: 0.000001 })
    ).json();
    for (let asked = 0; asked < 2; asked += 1)
      expect(await ask(textAt(tight, "key"), chatRequest({ model: "acme/two" }))).toBe(402);
    const body = await bodyOf("/analytics/errors");
    expect(listAt(body, "data")).toMatchObject([
      {
        status: "failed",
        code: "upstream_error",
        http_status: 502,
        provider: "two",
        model: "acme/two",
        requests: 1,
      },
    ]);
    expect(listAt(body, "refused")).toEqual([
      {
        code: "insufficient_balance",
        http_status: 402,
        key_id: textAt(tight, "data.id"),
        key_name: "tight",
        requests: 2,
      },
    ]);
    expect(at(await bodyOf(`/analytics/errors?key_id=${secondId}`), "refused")).toEqual([]);
    expect(at(await (await stage.stranger("GET", "/analytics/errors")).json(), "refused")).toEqual(
      [],
    );
  });

  test("reports latency percentiles", async () => {
    const buckets = listAt(
      await bodyOf("/analytics/latency?model=acme/one,acme/two,acme/both"),
      "data",
    );
    expect(buckets).toHaveLength(1);
    const number = expect.any(Number) as unknown;
    expect(buckets[0]).toMatchObject({
      samples: 4,
      total: { p50: number },
      first_token: { p99: number },
    });
    expect(await bodyOf("/analytics/latency?provider=none")).toMatchObject({ data: [] });
  });

  test("finds rare records among many, page by page, without gaps or repeats", async () => {
    const { commits } = stage.gateway().app.storage;
    const startMs = Date.UTC(2026, 0, 1);
    const many = Array.from({ length: records }, (_each, index) => {
      const record = recordInSeries(index, startMs + index * 60_000);
      const rare = index % 4_000 === 7;
      const asked = {
        keyId: rare ? "key_rare" : "key_common",
        requestedModel: rare ? "asked/rare" : record.model,
      };
      return { ...record, ...asked, workspaceId: "ws_own" };
    });
    for (let index = 0; index < many.length; index += 1_000) {
      await Promise.all(
        many.slice(index, index + 1_000).map((record) => commits.commit(settledUnit(record))),
      );
    }
    for (const [filter, name] of [
      ["key_id=key_rare", "cursor"],
      ["requested_model=asked/rare", "after"],
    ] as const) {
      const found: string[] = [];
      for (let cursor: unknown = ""; typeof cursor === "string"; ) {
        const body = await bodyOf(
          `/analytics/generations?limit=4&${filter}${cursor === "" ? "" : `&${name}=${cursor}`}`,
        );
        found.push(...listAt(body, "data").map((row) => textAt(row, "id")));
        cursor = at(body, "next_cursor");
      }
      expect(found).toEqual(
        many
          .filter(({ requestedModel }) => requestedModel === "asked/rare")
          .map(({ id }) => id)
          .toReversed(),
      );
    }
    const year = "from=2026-01-01&to=2026-12-31";
    expect(
      at(
        await bodyOf(`/analytics/generations/histogram?${year}&key_id=key_rare`),
        "totals.requests",
      ),
    ).toBe(rareOnes);
    const table = await (
      await stage.own("GET", "/analytics/generations?format=csv&key_id=key_common")
    ).text();
    expect(table.split("\r\n")).toHaveLength(records - rareOnes + 2);
  }, 240_000);
});
