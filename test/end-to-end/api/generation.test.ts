import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { chatError, usageFixtures } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at, listAt, numberAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";
import { seedStorage, type SeededStorage } from "./seed-storage.ts";

const elsewhere = "sk-svc-v1-otherworkspaceotherworkspaceother";
const here = "sk-svc-v1-thisworkspacethisworkspacethiswork";

let upstream: FaultUpstream;
let storage: SeededStorage;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  storage = await seedStorage({
    workspaces: [{ id: "ws_here" }, { id: "ws_elsewhere" }],
    llmKeys: [
      { secret: here, workspaceId: "ws_here" },
      { secret: elsewhere, workspaceId: "ws_elsewhere" },
    ],
  });
  const pricing = {
    prompt: "0.50",
    completion: "1.50",
    cache_read: "0.05",
    cache_write: "0.60",
    reasoning: "3",
    request: "0.001",
  };
  gateway = await startGateway({
    ...storage.settings,
    providers: ["one", "two"].map((id) =>
      provider({
        id,
        base_url: upstream.baseUrl,
        dialect: "openai-chat",
        api_key: "k",
        models: [{ id: "acme/large", upstream_model: `${id}-large`, pricing }],
      }),
    ),
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
  storage.remove();
});

const as = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

/** Sends a chat request and returns its trace id. */
async function serve(fields: Record<string, unknown> = {}): Promise<string> {
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({ provider: { order: ["one"] }, ...fields }),
    { headers: as(here) },
  );
  await response.text();
  return response.headers.get("x-service-trace-id") ?? "";
}

const find = async (id: string): Promise<unknown> =>
  at(await (await gateway.get(`/generation/${id}`, as(here))).json(), "data");

test("a record is found by generation id, trace id and response id, in the path or the query", async () => {
  const traceId = await serve();
  const record = await find(traceId);
  expect(at(record, "id")).toBe(`gen_${traceId}`);
  for (const id of [`gen_${traceId}`, `chatcmpl-${traceId}`, traceId]) {
    expect(await find(id)).toEqual(record);
    const byQuery: unknown = await (await gateway.get(`/generation?id=${id}`, as(here))).json();
    expect(byQuery).toEqual({ data: record });
  }
});

test("a record has OpenRouter's fields, the attempts, the price and the hold", async () => {
  upstream.enqueue(json(chatError("no"), { status: 500 }), (request) =>
    chatAnswer(request, { id: "up-1", usage: usageFixtures.cached }),
  );
  const traceId = await serve();
  const record = await find(traceId);
  expect(record).toMatchObject({
    id: `gen_${traceId}`,
    upstream_id: "up-1",
    trace_id: traceId,
    model: "acme/large",
    requested_model: "acme/large",
    provider_name: "two",
    upstream_model: "two-large",
    status: "completed",
    streamed: false,
    cancelled: false,
    finish_reason: "stop",
    is_byok: false,
    credential_source: "platform",
    tokens_prompt: 130,
    tokens_completion: 7,
    native_tokens_prompt: 130,
    native_tokens_completion: 7,
    native_tokens_cached: 100,
    native_tokens_reasoning: 0,
    usage_estimated: false,
    usage_clamped: false,
    upstream_inference_cost: null,
    attempts: [
      {
        provider: "one",
        upstream_model: "one-large",
        status: 500,
        outcome: "failed",
        reason: "upstream_error",
      },
      {
        provider: "two",
        upstream_model: "two-large",
        status: 200,
        outcome: "served",
        reason: null,
      },
    ],
  });
  expect(Date.parse(textAt(record, "created_at"))).toBeWithin(Date.now() - 60_000, Date.now() + 1);
  expect(numberAt(record, "usage")).toBe(numberAt(record, "total_cost"));
  expect(numberAt(record, "hold.reserved_usd")).toBeGreaterThan(
    numberAt(record, "hold.charged_usd"),
  );
});

describe("the price lines explain a charge to the nano-dollar", () => {
  test.each(["plain", "cached", "reasoning", "audio", "zero"] as const)(
    "usage %s",
    async (name) => {
      upstream.enqueue((request) => chatAnswer(request, { usage: usageFixtures[name] }));
      const record = await find(await serve({ stream: true }));
      const lines = listAt(record, "price.lines");
      const nano = (value: unknown): number => Math.round(numberAt(value, "amount_usd") * 1e9);
      expect(lines.reduce<number>((sum, line) => sum + nano(line), 0)).toBe(
        Math.round(numberAt(record, "total_cost") * 1e9),
      );
      for (const line of lines) {
        if (at(line, "part") === "request") continue;
        expect(
          Math.abs(
            numberAt(line, "quantity") * numberAt(line, "usd_per_million") * 1000 - nano(line),
          ),
        ).toBeLessThan(1);
      }
      expect(textAt(record, "price.version")).toStartWith("one/acme/large@");
      expect(at(record, "price.usd_per_million.inputTokens")).toBe("0.5");
    },
  );
});

test("latency and generation time of a stream add up to the total time", async () => {
  const record = await find(await serve({ stream: true }));
  expect(at(record, "streamed")).toBe(true);
  expect(numberAt(record, "latency") + numberAt(record, "generation_time")).toBe(
    numberAt(record, "total_time"),
  );
});

test("another workspace's record returns 404, the same as an unknown one", async () => {
  const traceId = await serve();
  for (const path of [
    `/generation/gen_${traceId}`,
    `/generation?id=${traceId}`,
    "/generation/gen_00000000000000000000000000000000",
  ])
    expect(await errorOf(await gateway.get(path, as(elsewhere)))).toMatchObject({
      status: 404,
      code: "not_found",
      type: "not_found_error",
    });
});

test.each(["/generation", "/generation?id="])(
  "GET %s without an id returns 400 that names it",
  async (path) => {
    expect(await errorOf(await gateway.get(path, as(here)))).toMatchObject({
      status: 400,
      code: "bad_request",
      param: "id",
    });
  },
);
