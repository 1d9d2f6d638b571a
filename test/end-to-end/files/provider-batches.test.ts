import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import type { BatchVendor } from "../../support/strict-batches/batch-rules.ts";
import { StrictBatches } from "../../support/strict-batches/strict-batches.ts";

const vendors = new StrictBatches();

const models: Record<BatchVendor, string> = {
  openai: "openai/night-1",
  anthropic: "anthropic/night-1",
  google: "google/night-1",
};

const vendor = (id: BatchVendor) =>
  provider({
    id,
    base_url: vendors.baseUrl(id),
    api_key: "upstream-secret",
    models: [
      {
        id: models[id],
        upstream_model: "night-1",
        context_length: 100_000,
        max_completion_tokens: 1_000,
        pricing: { prompt: "2", completion: "10" },
      },
    ],
  });

let gateway: TestGateway;
let openai: OpenAI;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [vendor("openai"), vendor("anthropic"), vendor("google")],
    batch: { concurrency: 8, native: "auto", pollSeconds: 0.05 },
  });
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
});
afterAll(async () => {
  if (process.env["DBG"])
    console.log(
      gateway.logLines
        .filter((l) => l.includes("batch"))
        .slice(-8)
        .join("\n"),
      vendors.refusals,
      vendors.calls.slice(-20),
    );
  await gateway.stop();
  await vendors.stop();
});
afterEach(() => {
  vendors.isDone = false;
  vendors.ranBeforeCancel = 0;
  vendors.calls.length = 0;
});

const lineOf = (
  id: string,
  model: string,
  text = "hello",
  change: Record<string, unknown> = {},
) => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model, max_tokens: 500, messages: [{ role: "user", content: text }], ...change },
});

async function submit(lines: readonly unknown[]): Promise<Batch> {
  const file = await openai.files.create({
    file: await toFile(
      Buffer.from(lines.map((line) => JSON.stringify(line)).join("\n")),
      "in.jsonl",
    ),
    purpose: "batch",
  });
  return openai.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
}

type Shown = Batch & {
  cost: number;
  reserved: number;
  provider: string | null;
  provider_note: string | null;
};

async function shownWhen(id: string, isSo: (batch: Shown) => boolean): Promise<Shown> {
  let batch: Shown | undefined;
  await pollUntil(async () => {
    await Bun.sleep(40);
    batch = (await openai.batches.retrieve(id)) as Shown;
    return isSo(batch);
  });
  return batch as Shown;
}

const hasEnded = ({ status }: Batch): boolean =>
  ["completed", "cancelled", "expired"].includes(status);

async function linesOf(fileId: string | null | undefined) {
  if (fileId == null) return [];
  const text = await (await openai.files.content(fileId)).text();
  return text
    .trimEnd()
    .split("\n")
    .map(
      (line) =>
        JSON.parse(line) as {
          custom_id: string;
          response: { status_code: number; request_id: string; body: OpenAI.ChatCompletion };
        },
    );
}

const usedUsd = async (): Promise<number> => {
  const { data } = (await (await gateway.get("/credits")).json()) as {
    data: { total_usage: number };
  };
  return data.total_usage;
};

describe.each(["openai", "anthropic", "google"] as const)("a batch of %s", (id) => {
  test("runs in the provider's own batch, at half the price, once", async () => {
    const before = await usedUsd();
    const sent = vendors.batches.length;
    const made = await submit([
      lineOf("a", models[id]),
      lineOf("b", models[id], "this fails"),
      lineOf("c", models[id]),
    ]);
    const running = await shownWhen(made.id, ({ provider: by }) => by === id);
    expect(running.status).toBe("in_progress");
    expect(running.reserved).toBeGreaterThan(0.0075);
    vendors.isDone = true;
    const batch = await shownWhen(made.id, hasEnded);
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 3, completed: 2, failed: 1 },
      provider: id,
      // 1,000 tokens at 1 USD and 100 at 5 USD per million, twice.
      cost: 0.003,
      reserved: 0,
    });
    expect(vendors.refusals).toEqual([]);
    expect(vendors.batches.length).toBe(sent + 1);
    const output = await linesOf(batch.output_file_id);
    expect(output.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "c"]);
    const [first] = output;
    expect(first?.response.body.choices[0]?.message.content).toBe("night");
    expect(
      (await linesOf(batch.error_file_id)).map(({ response }) => response.status_code),
    ).toEqual([400]);
    const record = await gateway.get(`/generation?id=gen_${first?.response.request_id}`);
    expect(await record.json()).toMatchObject({
      data: { total_cost: 0.0015, service_tier: "batch", provider_name: expect.any(String) },
    });
    expect(await usedUsd()).toBeCloseTo(before + 0.003, 9);
  });
});

test("a cancelled batch is cancelled at the provider, and what ran is charged", async () => {
  const made = await submit(["a", "b", "c", "d"].map((each) => lineOf(each, models.openai)));
  await shownWhen(made.id, ({ provider: by }) => by === "openai");
  vendors.ranBeforeCancel = 0.5;
  await openai.batches.cancel(made.id);
  const batch = await shownWhen(made.id, hasEnded);
  expect(batch).toMatchObject({
    status: "cancelled",
    request_counts: { total: 4, completed: 2, failed: 0 },
    cost: 0.003,
  });
});

test("a revoked key pays for what the provider has answered", async () => {
  const created = (await (
    await gateway.post(
      "/keys",
      { name: "night" },
      { headers: { authorization: `Bearer ak_test_management_key_with_all_scopes` } },
    )
  ).json()) as { key: string; data: { hash: string } };
  const client = new OpenAI({ apiKey: created.key, baseURL: gateway.baseUrl, maxRetries: 0 });
  const file = await client.files.create({
    file: await toFile(Buffer.from(JSON.stringify(lineOf("a", models.anthropic))), "in.jsonl"),
    purpose: "batch",
  });
  const made = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  await shownWhen(made.id, ({ provider: by }) => by === "anthropic");
  await fetch(`${gateway.baseUrl}/keys/${created.data.hash}`, {
    method: "DELETE",
    headers: { authorization: "Bearer ak_test_management_key_with_all_scopes" },
  });
  vendors.isDone = true;
  expect(await shownWhen(made.id, hasEnded)).toMatchObject({
    request_counts: { completed: 1, failed: 0 },
    cost: 0.0015,
  });
});

test("an address that has no batch API runs none of its own", async () => {
  vendors.isPlain = true;
  const made = await submit([lineOf("a", models.openai)]);
  const batch = await shownWhen(made.id, hasEnded);
  vendors.isPlain = false;
  expect(batch).toMatchObject({
    request_counts: { completed: 1, failed: 0 },
    provider: null,
    provider_note: "The provider refused the batch.",
    cost: 0.003,
  });
});

test("a batch of which it is not known whether it was taken is found again", async () => {
  vendors.cutsAfterCreate = true;
  const sent = vendors.batches.length;
  const made = await submit([lineOf("a", models.openai)]);
  await pollUntil(() => vendors.calls.includes("GET /batches"));
  vendors.isDone = true;
  expect(await shownWhen(made.id, hasEnded)).toMatchObject({ cost: 0.0015, provider: "openai" });
  expect(vendors.batches.length).toBe(sent + 1);
});

test.each([
  [
    "several providers",
    [lineOf("a", models.openai), lineOf("b", models.google)],
    "several providers",
  ],
  [
    "another tier",
    [lineOf("a", models.openai, "hi", { service_tier: "default" }), lineOf("b", "sandbox/none")],
    undefined,
  ],
])("lines with %s", async (_, lines, note) => {
  const made = await submit(lines);
  if (note === undefined) {
    vendors.isDone = true;
    expect(await shownWhen(made.id, hasEnded)).toMatchObject({
      request_counts: { completed: 1, failed: 1 },
    });
  } else {
    const batch = await shownWhen(made.id, ({ provider_note: why }) => why !== null);
    expect(batch.provider_note).toContain(note);
  }
});
