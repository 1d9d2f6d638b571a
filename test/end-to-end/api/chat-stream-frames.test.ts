import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import {
  chatChunks,
  plainUsage,
  type StreamedChatAnswer,
} from "../../support/upstream/openai-chat-fixtures.ts";
import { at } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { type ReadStream, readChatStream } from "./read-chat-stream.ts";

const pricing = { prompt: "0.50", completion: "1.50" };

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    providers: [
      acme(upstream.baseUrl, {
        models: [
          { id: "acme/large", upstream_model: "large-v2", pricing },
          { id: "acme/tiny:free" },
        ],
      }),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

interface Asked extends ReadStream {
  traceId: string;
}

async function ask(
  answer: StreamedChatAnswer,
  options: { fields?: Record<string, unknown>; headers?: Record<string, string> } = {},
): Promise<Asked> {
  upstream.enqueue((request) => chatAnswer(request, answer));
  const response = await gateway.post(
    "/chat/completions",
    chatRequest({ stream: true, ...options.fields }),
    { headers: options.headers ?? {} },
  );
  const traceId = response.headers.get("x-service-trace-id") ?? "";
  return { ...(await readChatStream(response)), traceId };
}

const usageOf = (chunk: unknown): unknown => at(chunk, "usage") ?? undefined;
const priced = { ...plainUsage, cost: 0.000016 };

/**
 * What a chunk looks like to the client: the upstream's, under the gateway's id and the catalog's
 * model.
 */
const relayed = (chunk: Record<string, unknown>, traceId: string): Record<string, unknown> => ({
  ...chunk,
  id: `chatcmpl-${traceId}`,
  model: "acme/large",
});

describe("usage in a separate chunk after the finish chunk", () => {
  test("adds and reorders no chunk, and puts usage, cost and metadata on the last one", async () => {
    const { chunks, done, traceId } = await ask({ usageOn: "after" });
    const sent = chatChunks({ usageOn: "after" });
    expect(chunks).toHaveLength(sent.length);
    expect(done).toBe(true);
    expect(chunks.slice(0, -1)).toEqual(sent.slice(0, -1).map((chunk) => relayed(chunk, traceId)));
    expect(chunks.at(-1)).toMatchObject({
      ...relayed(sent.at(-1) ?? {}, traceId),
      choices: [],
      usage: priced,
      service_metadata: { requestId: traceId },
    });
  });
});

describe("usage on the finish chunk", () => {
  test("puts the cost on that chunk and the metadata on an added last chunk without choices", async () => {
    const { chunks, done, traceId } = await ask({ usageOn: "finish" });
    const sent = chatChunks({ usageOn: "finish" });
    expect(chunks).toHaveLength(sent.length + 1);
    expect(done).toBe(true);
    expect(chunks.at(-2)).toEqual(relayed({ ...sent.at(-1), usage: priced }, traceId));
    expect(chunks.at(-1)).toMatchObject({
      id: `chatcmpl-${traceId}`,
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model: "acme/large",
      choices: [],
    });
    expect(at(chunks.at(-1), "service_metadata.requestId")).toBe(traceId);
    expect(usageOf(chunks.at(-1))).toBeUndefined();
  });
});

describe("usage repeated on every chunk", () => {
  test("puts the cost only on the finish chunk", async () => {
    const { chunks } = await ask({ usageOn: "every" });
    const costs = chunks.map((chunk) => at(usageOf(chunk), "cost"));
    expect(costs.filter((cost) => cost !== undefined)).toEqual([0.000016]);
    const finish = chunks.find((chunk) => typeof at(chunk, "choices.0.finish_reason") === "string");
    expect(usageOf(finish)).toEqual(priced);
  });
});

describe("no usage at all", () => {
  test("adds a last chunk with the metadata and the estimated, charged usage", async () => {
    const { chunks, traceId } = await ask(
      { usageOn: "never" },
      { headers: { "x-service-balance-after-debit": "true" } },
    );
    expect(chunks).toHaveLength(chatChunks({ usageOn: "never" }).length + 1);
    expect(
      chunks
        .slice(0, -1)
        .map(usageOf)
        .filter((usage) => usage !== undefined),
    ).toEqual([]);
    const charged = at(chunks.at(-1), "service_metadata.creditsCharged");
    expect(charged).toBeGreaterThan(0);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { cost: charged } });
    const generation: unknown = await (await gateway.get(`/generation/${traceId}`)).json();
    expect(at(generation, "data")).toMatchObject({ usage_estimated: true, total_cost: charged });
  });
});

test.each([
  [undefined, { include_usage: true }],
  [{ include_usage: true }, { include_usage: true }],
  [{ include_usage: false }, { include_usage: true }],
  [
    { include_obfuscation: false, x_new: 1 },
    { include_obfuscation: false, x_new: 1, include_usage: true },
  ],
  [null, { include_usage: true }],
])("requests usage from upstream for any stream_options of the caller: %j", async (asked, sent) => {
  const { chunks } = await ask(
    {},
    { fields: asked === undefined ? {} : { stream_options: asked } },
  );
  expect(at(upstream.requests.at(-1)?.json(), "stream_options")).toEqual(sent);
  expect(usageOf(chunks.at(-1))).toEqual(priced);
});

test("the metadata names the provider that served the request and the time of each step", async () => {
  const { chunks, traceId } = await ask({});
  expect(at(chunks.at(-1), "service_metadata")).toEqual({
    requestId: traceId,
    model: "acme/large",
    upstream: { provider: "Acme Inference", backend: "acme", latencyMs: expect.any(Number) },
    timings: {
      gw: expect.any(Number),
      upstream: [{ provider: "acme", dur: expect.any(Number) }],
      post: expect.any(Number),
      total: expect.any(Number),
    },
  });
});

test("the metadata has the charge and the balance on request", async () => {
  const { chunks } = await ask({}, { headers: { "x-service-balance-after-debit": "true" } });
  const balance = Number((await gateway.get("/credits")).headers.get("x-service-credits-balance"));
  expect(at(chunks.at(-1), "service_metadata")).toMatchObject({
    creditsCharged: 0.000016,
    balanceAfterDebit: balance,
  });
});

test("the metadata of a free request has no charge or balance, even on request", async () => {
  const { chunks } = await ask(
    {},
    { fields: { model: "acme/tiny:free" }, headers: { "x-service-balance-after-debit": "true" } },
  );
  expect(at(usageOf(chunks.at(-1)), "cost")).toBe(0);
  expect(Object.keys(Object(at(chunks.at(-1), "service_metadata"))).sort()).toEqual([
    "model",
    "requestId",
    "timings",
    "upstream",
  ]);
});
