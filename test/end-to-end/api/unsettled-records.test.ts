import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { middayClock } from "../../support/midday-clock.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json, type Script } from "../../support/upstream/steps.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { allEngines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const pricing = { prompt: "1", completion: "2" };
const failing = (status: number): Script => json(chatError("no"), { status });

/**
 * Requests that come to nothing, or that no provider is asked for, and the record that they leave.
 */
describe.each(allEngines)("records of requests that were not charged, on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let stage: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    const at = (id: string, models: unknown[]) =>
      provider({
        id,
        base_url: upstream.baseUrl,
        dialect: { chat: "openai-chat", embeddings: "openai-embeddings" },
        api_key: "k",
        models,
      });
    const providers = [
      at("one", [
        { id: "acme/large", pricing },
        { id: "acme/embed", surface: "embeddings", pricing },
      ]),
      at("two", [{ id: "acme/large", pricing }]),
    ];
    stage = await startTwoWorkspaces(freshUrl, { providers }, { clock: middayClock() });
  }, 240_000);
  afterAll(async () => {
    await stage.stop();
    upstream.stop();
  });

  const ask = (path: string, body: unknown): Promise<Response> =>
    stage.as(testLlmKey)("POST", path, body);
  const generation = async (id: string): Promise<unknown> =>
    at(await (await stage.as(testLlmKey)("GET", `/generation?id=${id}`)).json(), "data");
  const traceOf = (response: Response): string => response.headers.get("x-service-trace-id") ?? "";

  test.each([
    ["chat", "/chat/completions", chatRequest({ provider: { order: ["one", "two"] } })],
    [
      "messages",
      "/messages",
      { ...chatRequest(), max_tokens: 9, provider: { order: ["one", "two"] } },
    ],
    [
      "responses",
      "/responses",
      { model: "acme/large", input: "Hi", stream: true, provider: { order: ["one", "two"] } },
    ],
  ])("%s: every provider failed", async (surface, path, body) => {
    upstream.enqueue(failing(500), failing(503));
    const response = await ask(path, body);
    expect(response.status).toBe(502);
    await response.text();
    expect(await generation(traceOf(response))).toMatchObject({
      id: `gen_${traceOf(response)}`,
      status: "failed",
      model: "acme/large",
      requested_model: "acme/large",
      provider_name: "two",
      streamed: surface === "responses",
      total_cost: 0,
      tokens_prompt: 0,
      cancelled: false,
      error: { code: "upstream_exhausted", status: 502 },
      attempts: [
        { provider: "one", status: 500, outcome: "failed" },
        { provider: "two", status: 503, outcome: "failed" },
      ],
      routing: { order: ["one acme/large: order", "two acme/large: order"] },
      hold: { charged_usd: 0 },
    });
  });

  test.each([
    [408, 408, "request_timeout"],
    [504, 504, "upstream_timeout"],
    [400, 400, "bad_request"],
  ])("the only provider answers %d: %d", async (said, status, code) => {
    upstream.enqueue(failing(said));
    const response = await ask("/chat/completions", chatRequest({ provider: { only: ["one"] } }));
    expect(response.status).toBe(status);
    expect(await generation(traceOf(response))).toMatchObject({
      status: "failed",
      error: { code, status },
      attempts: [{ status: said }],
    });
  });

  test("no eligible provider, or an unknown one: the record has the excluded providers", async () => {
    const response = await ask("/chat/completions", chatRequest({ provider: { zdr: true } }));
    expect(response.status).toBe(403);
    expect(await generation(`chatcmpl-${traceOf(response)}`)).toMatchObject({
      status: "failed",
      requested_model: "acme/large",
      model: "acme/large",
      provider_name: null,
      attempts: [],
      total_cost: 0,
      error: { code: "forbidden", status: 403 },
      routing: { left_out: expect.arrayContaining(["one acme/large: zdr", "two acme/large: zdr"]) },
    });
    const none = await ask("/messages", {
      ...chatRequest(),
      max_tokens: 9,
      provider: { only: ["nobody"] },
    });
    expect(none.status).toBe(404);
    expect(await generation(traceOf(none))).toMatchObject({
      status: "failed",
      error: { code: "no_upstream", status: 404 },
    });
  });

  test("embeddings from the cache are found by their own id and free of charge", async () => {
    const vectors = [{ object: "embedding", index: 0, embedding: [1] }];
    upstream.enqueue(
      json({
        object: "list",
        data: vectors,
        model: "embed",
        usage: { prompt_tokens: 3, total_tokens: 3 },
      }),
    );
    const request = { model: "acme/embed", input: "twice" };
    await (await ask("/embeddings", request)).text();
    const second = await ask("/embeddings", request);
    expect(second.headers.get("x-service-cache-status")).toBe("HIT");
    expect(await generation(textAt(await second.json(), "id"))).toMatchObject({
      id: `gen_${traceOf(second)}`,
      status: "cached",
      model: "acme/embed",
      provider_name: "one",
      total_cost: 0,
      attempts: [],
      error: null,
    });
  });

  test("a request refused before routing leaves no record", async () => {
    const invalid = await ask("/chat/completions", chatRequest({ temperature: "warm" }));
    const unknown = await ask("/chat/completions", chatRequest({ model: "acme/nothing" }));
    const stranger = await stage.as("sk-svc-v1-wrongwrongwrongwrongwrongwrongwrong")(
      "POST",
      "/chat/completions",
      chatRequest(),
    );
    for (const response of [invalid, unknown, stranger])
      expect(await generation(traceOf(response))).toBeUndefined();
  });

  test("each record is explained in a sentence, and usage counts match the records", async () => {
    const records = listAt(
      await (await stage.as(testManagementKey)("GET", "/analytics/generations")).json(),
      "data",
    );
    const explained = async (status: string): Promise<string> => {
      const id = textAt(
        records.find((record) => at(record, "status") === status),
        "id",
      );
      return listAt(
        await (await stage.as(testLlmKey)("GET", `/generation/${id}/explain`)).json(),
        "explanation",
      ).join(" ");
    };
    expect(await explained("cached")).toBe(
      "acme/embed was asked for, and an answer of acme/embed at one was found in the cache. Nothing was charged.",
    );
    expect(await explained("failed")).toContain("no provider served it: the answer was");
    const counted = (key: string, value: unknown): unknown[] =>
      records.filter((record) => at(record, key) === value);
    const usage = listAt(
      await (await stage.as(testManagementKey)("GET", "/analytics/usage?group_by=provider")).json(),
      "data",
    );
    for (const name of ["one", "two", null]) {
      expect(usage.find((line) => at(line, "provider") === name)).toMatchObject({
        requests: counted("provider_name", name).length,
        errors: counted("provider_name", name).filter((record) => at(record, "status") === "failed")
          .length,
      });
    }
  });
});
