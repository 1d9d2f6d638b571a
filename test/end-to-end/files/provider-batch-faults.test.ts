import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { testLlmKey } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { endProcesses, type GatewayProcess, startProcess } from "../../support/process.ts";
import { StrictBatches } from "../../support/strict-batches/strict-batches.ts";

const lines = 150;

/** What one line costs: half of 1,000 tokens at 2 USD and 100 at 10 USD per million. */
const lineUsd = 0.0015;

const vendors = new StrictBatches();
const directory = mkdtempSync(join(tmpdir(), "switchyard-provider-batch-"));
afterAll(async () => {
  await endProcesses();
  await vendors.stop();
  rmSync(directory, { recursive: true, force: true });
});

const start = (): Promise<GatewayProcess> =>
  startProcess({
    dataDirectory: directory,
    environment: {
      SWITCHYARD_BOOTSTRAP_LLM_KEY: testLlmKey,
      SWITCHYARD_BOOTSTRAP_CREDITS: "5",
    },
    yaml: `
storage: { durability: process }
batch: { poll_s: 1 }
plans: { enterprise: { per_minute: 1000000 } }
providers:
  - id: openai
    base_url: ${vendors.baseUrl("openai")}
    api_key: upstream-secret
    models:
      - id: openai/night-1
        upstream_model: night-1
        context_length: 100000
        max_completion_tokens: 1000
        pricing: { prompt: "2", completion: "10" }
`,
  });

const clientOf = ({ url }: GatewayProcess): OpenAI =>
  new OpenAI({ apiKey: testLlmKey, baseURL: `${url}/v1`, maxRetries: 0 });

async function until(
  gateway: GatewayProcess,
  id: string,
  isSo: (batch: Batch & { provider: string | null; cost: number }) => boolean,
) {
  for (;;) {
    const batch = (await clientOf(gateway).batches.retrieve(id)) as Batch & {
      provider: string | null;
      cost: number;
    };
    if (isSo(batch)) return batch;
    await Bun.sleep(50);
  }
}

test("a killed gateway's successor charges a provider's batch, each line once", async () => {
  let gateway = await start();
  const text = Array.from({ length: lines }, (_, index) =>
    JSON.stringify({
      custom_id: `l${index}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: {
        model: "openai/night-1",
        max_tokens: 500,
        messages: [{ role: "user", content: `line ${index}` }],
      },
    }),
  ).join("\n");
  const openai = clientOf(gateway);
  const file = await openai.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  const { id } = await openai.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  // The provider works on it; the gateway may not have learned that yet.
  await pollUntil(() => vendors.batches.length === 1);
  await gateway.kill9();
  vendors.stallsAfterLines = 100;
  vendors.isDone = true;
  gateway = await start();
  // While its answers are charged.
  await until(gateway, id, ({ request_counts: counts }) => (counts?.completed ?? 0) > 0);
  await gateway.kill9();
  vendors.stallsAfterLines = undefined;
  gateway = await start();
  const batch = await until(gateway, id, ({ status }) => status === "completed");
  expect(batch).toMatchObject({
    request_counts: { total: lines, completed: lines, failed: 0 },
    error_file_id: null,
    provider: "openai",
  });
  expect(batch.cost).toBeCloseTo(lines * lineUsd, 9);
  const output = (await (await clientOf(gateway).files.content(batch.output_file_id ?? "")).text())
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { custom_id: string });
  expect(new Set(output.map(({ custom_id: name }) => name)).size).toBe(lines);
  expect(output.length).toBe(lines);
  const answer = await fetch(`${gateway.url}/v1/credits`, {
    headers: { authorization: `Bearer ${testLlmKey}` },
  });
  const { data } = (await answer.json()) as { data: { total_usage: number } };
  expect(data.total_usage).toBeCloseTo(lines * lineUsd, 9);
  expect(vendors.batches.length).toBe(1);
  expect(vendors.refusals).toEqual([]);
  await gateway.terminate();
}, 240_000);
