import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { acme, startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { at, textAt } from "../api/at.ts";

const upstream = Bun.serve({
  port: 0,
  async fetch() {
    await Bun.sleep(20);
    return Response.json({
      id: "up_1",
      object: "chat.completion",
      created: 1,
      model: "large-v2",
      choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 },
    });
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [acme(`http://127.0.0.1:${upstream.port}/v1`)],
    batch: { concurrency: 2, native: "auto", pollSeconds: 60 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const asOwner = { headers: { authorization: `Bearer ${testManagementKey}` } };

/** Creates a key, and a client that uses it. */
async function newKey(fields: Record<string, unknown>): Promise<{ hash: string; openai: OpenAI }> {
  const created: unknown = await (
    await gateway.post("/keys", { name: "batches", ...fields }, asOwner)
  ).json();
  const apiKey = textAt(created, "key");
  const hash = textAt(created, "data.hash");
  return { hash, openai: new OpenAI({ apiKey, baseURL: gateway.baseUrl, maxRetries: 0 }) };
}

async function submit(
  openai: OpenAI,
  count: number,
  userOf?: (line: number) => string,
): Promise<Batch> {
  const text = Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      custom_id: `l${index}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: {
        model: "acme/large",
        max_tokens: 1_000,
        messages: [{ role: "user", content: "x".repeat(4_000) }],
        user: userOf?.(index),
      },
    }),
  ).join("\n");
  const file = await openai.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  return openai.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
}

async function until(openai: OpenAI, id: string, isSo: (batch: Batch) => boolean): Promise<Batch> {
  for (;;) {
    const batch = await openai.batches.retrieve(id);
    if (isSo(batch)) return batch;
    await Bun.sleep(50);
  }
}

test("a batch whose key has no money left waits, and continues once it has", async () => {
  const { hash, openai } = await newKey({ limit: 0.007 });
  const { id } = await submit(openai, 6);
  const paused = await until(
    openai,
    id,
    ({ metadata }) => metadata !== null && metadata !== undefined,
  );
  expect(paused.status).toBe("in_progress");
  expect(JSON.stringify(paused.metadata)).toContain("Paused until there is money");
  expect((paused as Batch & { cost: number }).cost).toBeLessThanOrEqual(0.007);
  const raised = await fetch(`${gateway.baseUrl}/keys/${hash}`, {
    method: "PATCH",
    headers: { ...asOwner.headers, "content-type": "application/json" },
    body: JSON.stringify({ limit: 1 }),
  });
  expect(raised.status).toBe(200);
  const ended = await until(openai, id, ({ status }) => status === "completed");
  expect(ended).toMatchObject({
    request_counts: { total: 6, completed: 6, failed: 0 },
    metadata: null,
  });
  // What the provider counted beyond the cap that the limit bore is not charged.
  const { cost } = ended as Batch & { cost: number };
  expect(cost).toBeGreaterThan(0.01);
  expect(cost).toBeLessThanOrEqual(0.012);
}, 240_000);

test("lines of customers that are not served fail with 402, and stop no other line", async () => {
  const plan = { type: "free", allowance: 0 };
  await gateway.post("/customers", { external_id: "off", suspended: true }, asOwner);
  await gateway.post("/customers", { external_id: "spent", plan }, asOwner);
  const { openai } = await newKey({});
  const { id } = await submit(openai, 6, (line) => ["off", "spent", "served"][line % 3] ?? "");
  const ended = await until(openai, id, ({ status }) => status === "completed");
  expect(ended.request_counts).toEqual({ total: 6, completed: 2, failed: 4 });
  const errors = (await (await openai.files.content(ended.error_file_id ?? "")).text()).trimEnd();
  const refusals = errors.split("\n").map((line): unknown => {
    const { response } = JSON.parse(line) as { response: unknown };
    return [at(response, "status_code"), at(response, "body.error.metadata.reason")];
  });
  const reasons = ["customer_suspended", "customer_limit_reached"];
  expect(refusals).toEqual([...reasons, ...reasons].map((reason) => [402, reason]));
}, 60_000);

test("lines of a run that has made its requests fail with 402", async () => {
  const { openai: owner } = await newKey({});
  const opened: unknown = await (
    await gateway.post(
      "/runs",
      { name: "few", limit: 1, max_requests: 2 },
      { headers: { authorization: `Bearer ${owner.apiKey}` } },
    )
  ).json();
  const apiKey = textAt(opened, "key");
  const openai = new OpenAI({ apiKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  const { id } = await submit(openai, 4);
  const ended = await until(openai, id, ({ status }) => status === "completed");
  expect(ended.request_counts).toEqual({ total: 4, completed: 2, failed: 2 });
}, 60_000);

test("after its key is deleted, the remaining lines of a batch fail with 401", async () => {
  const { hash, openai } = await newKey({});
  const { openai: other } = await newKey({});
  const { id } = await submit(openai, 60);
  await until(openai, id, ({ request_counts: counts }) => (counts?.completed ?? 0) > 3);
  const deleted = await fetch(`${gateway.baseUrl}/keys/${hash}`, { method: "DELETE", ...asOwner });
  expect(deleted.status).toBe(200);
  const ended = await until(other, id, ({ status }) => status === "completed");
  const { completed = 0, failed = 0 } = ended.request_counts ?? {};
  expect([completed + failed, failed > 0]).toEqual([60, true]);
  const errors = await (await other.files.content(ended.error_file_id ?? "")).text();
  expect(errors.trimEnd().split("\n").length).toBe(failed);
  expect(JSON.parse(errors.split("\n")[0] ?? "")).toMatchObject({
    response: { status_code: 401, body: { error: { code: "invalid_api_key" } } },
  });
  expect((ended as Batch & { cost: number }).cost).toBeCloseTo(completed * 0.002);
}, 240_000);
