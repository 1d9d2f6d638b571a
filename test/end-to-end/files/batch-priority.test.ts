import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { acme, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";

/** Requests that the provider has, until a test has it answer them. */
const waiting = { lines: [] as (() => void)[], clients: [] as (() => void)[] };

/** The most lines that the provider has had at once. */
let peak = 0;

const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const kind = (await request.text()).includes("a client") ? "clients" : "lines";
    await new Promise<void>((resolve) => {
      waiting[kind].push(resolve);
      peak = Math.max(peak, waiting.lines.length);
    });
    return Response.json({
      id: "up_1",
      object: "chat.completion",
      created: 1,
      model: "large-v2",
      choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
    });
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [acme(`http://127.0.0.1:${upstream.port}/v1`)],
    batch: { concurrency: 4, native: "auto", pollSeconds: 60 },
  });
});
afterAll(async () => {
  for (const answer of [...waiting.lines.splice(0), ...waiting.clients.splice(0)]) answer();
  await gateway.stop();
  await upstream.stop(true);
});

const bodyOf = (text: string) => ({
  model: "acme/large",
  max_tokens: 10,
  messages: [{ role: "user", content: text }],
});

test("while clients wait for answers one line runs at a time, and all of them do afterwards", async () => {
  const openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  const clients = Array.from({ length: 3 }, () =>
    gateway.post("/chat/completions", bodyOf("a client")),
  );
  await pollUntil(() => waiting.clients.length === 3);
  const lines = Array.from({ length: 12 }, (_, index) =>
    JSON.stringify({
      custom_id: `l${index}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: bodyOf("a line"),
    }),
  );
  const file = await openai.files.create({
    file: await toFile(Buffer.from(lines.join("\n")), "in.jsonl"),
    purpose: "batch",
  });
  const { id } = await openai.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  for (let answered = 0; answered < 4; answered += 1) {
    await pollUntil(() => waiting.lines.length > 0);
    waiting.lines.shift()?.();
  }
  await pollUntil(() => waiting.lines.length > 0);
  expect(peak).toBe(1);
  for (const answer of waiting.clients.splice(0)) answer();
  for (const client of clients) expect((await client).status).toBe(200);
  // The next line that ends makes room for four.
  waiting.lines.shift()?.();
  await pollUntil(() => waiting.lines.length === 4);
  expect(peak).toBe(4);
  for (;;) {
    for (const answer of waiting.lines.splice(0)) answer();
    const { status, request_counts: counts } = await openai.batches.retrieve(id);
    if (status === "completed") {
      expect(counts).toEqual({ total: 12, completed: 12, failed: 0 });
      return;
    }
    await Bun.sleep(10);
  }
});
