import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, type GatewayProcess, startProcess } from "../../support/process.ts";
import { isNightly } from "../../support/nightly.ts";

/** Lines of the batch: more with `--engines=all`, which runs nightly. */
const lines = isNightly ? 10_000 : 240;

/** What one line costs: 1,000 tokens in and out of acme/large. */
const lineNano = 2_000_000;

let answered = 0;
const upstream = Bun.serve({
  port: 0,
  async fetch() {
    await Bun.sleep(2);
    answered += 1;
    return Response.json({
      id: `up_${answered}`,
      object: "chat.completion",
      created: 1,
      model: "large-v2",
      choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 },
    });
  },
});

const directory = mkdtempSync(join(tmpdir(), "switchyard-batch-faults-"));
afterAll(async () => {
  await endProcesses();
  await upstream.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

const start = (credits: string): Promise<GatewayProcess> =>
  startProcess({
    dataDirectory: directory,
    environment: {
      SWITCHYARD_BOOTSTRAP_LLM_KEY: testLlmKey,
      SWITCHYARD_BOOTSTRAP_CREDITS: credits,
    },
    yaml: `
storage: { durability: process }
batch: { concurrency: 16 }
plans: { enterprise: { per_minute: 1000000 } }
providers:
  - id: acme
    name: Acme
    base_url: http://127.0.0.1:${upstream.port}/v1
    dialect: openai-chat
    api_key: secret
    models:
      - { id: acme/large, upstream_model: large-v2, context_length: 131072, pricing: { prompt: "0.50", completion: "1.50" } }
`,
  });

const clientOf = ({ url }: GatewayProcess): OpenAI =>
  new OpenAI({ apiKey: testLlmKey, baseURL: `${url}/v1`, maxRetries: 0 });

async function submit(openai: OpenAI): Promise<Batch> {
  const text = Array.from({ length: lines }, (_, index) =>
    JSON.stringify({
      custom_id: `l${index}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: {
        model: "acme/large",
        max_tokens: 1_000,
        messages: [{ role: "user", content: `line ${index}` }],
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

const doneOf = (batch: Batch): number =>
  (batch.request_counts?.completed ?? 0) + (batch.request_counts?.failed ?? 0);

test(
  "gateways that are killed neither lose nor repeat a line, and each is charged once",
  async () => {
    const credits = (lines * lineNano * 2) / 1e9;
    let gateway = await start(String(credits));
    const { id } = await submit(clientOf(gateway));
    const [killEvery, killsMax] = lines > 1_000 ? [500, 19] : [Math.ceil(lines / 3), 2];
    let batch = await clientOf(gateway).batches.retrieve(id);
    for (let kills = 0; batch.status !== "completed"; ) {
      await Bun.sleep(50);
      batch = await clientOf(gateway).batches.retrieve(id);
      if (
        batch.status !== "in_progress" ||
        doneOf(batch) < (kills + 1) * killEvery ||
        kills === killsMax
      )
        continue;
      kills += 1;
      await gateway.kill9();
      gateway = await start(String(credits));
    }
    const openai = clientOf(gateway);
    expect(batch).toMatchObject({
      request_counts: { total: lines, completed: lines, failed: 0 },
      error_file_id: null,
      cost: (lines * lineNano) / 1e9,
    });
    const text = await (await openai.files.content(batch.output_file_id ?? "")).text();
    const output = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { custom_id: string; response: { request_id: string } });
    expect(new Set(output.map(({ custom_id }) => custom_id)).size).toBe(lines);
    expect(new Set(output.map(({ response }) => response.request_id)).size).toBe(lines);
    expect(output.length).toBe(lines);
    const answer = await fetch(`${gateway.url}/v1/credits`, {
      headers: { authorization: `Bearer ${testLlmKey}` },
    });
    const { data } = (await answer.json()) as { data: { total_usage: number } };
    expect(data.total_usage).toBeCloseTo((lines * lineNano) / 1e9, 9);
    // Of what ran when a gateway was killed, at most one try of each line in flight is lost.
    expect(answered).toBeLessThanOrEqual(lines + killsMax * 16);
    await gateway.terminate();
  },
  60_000 + lines * 40,
);
