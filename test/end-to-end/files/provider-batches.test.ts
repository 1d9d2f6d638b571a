import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { testManagementKey } from "../../support/gateway.ts";
import { textAt } from "../api/at.ts";
import { hasEnded, lineOf, NightGateway, nightModels, nightVendors } from "./night-batches.ts";

let night: NightGateway;
beforeAll(async () => {
  night = await NightGateway.start();
});
afterAll(() => night.stop());
afterEach(() => night.reset());

describe.each(nightVendors)("a batch of %s", (id) => {
  test("runs in the provider's own batch, at half the price, once", async () => {
    const before = await night.usedUsd();
    const sent = night.vendors.batches.length;
    const made = await night.submit([
      lineOf("a", nightModels[id]),
      lineOf("b", nightModels[id], "this fails"),
      lineOf("c", nightModels[id]),
    ]);
    const running = await night.shownWhen(made.id, ({ provider: by }) => by === id);
    expect(running.status).toBe("in_progress");
    expect(running.reserved).toBeGreaterThan(0.0075);
    night.vendors.isDone = true;
    const batch = await night.shownWhen(made.id, hasEnded);
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 3, completed: 2, failed: 1 },
      provider: id,
      // 1,000 tokens at 1 USD and 100 at 5 USD per million, twice.
      cost: 0.003,
      reserved: 0,
    });
    expect(night.vendors.refusals).toEqual([]);
    expect(night.vendors.batches.length).toBe(sent + 1);
    const output = await night.linesOf(batch.output_file_id);
    expect(output.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "c"]);
    const [first] = output;
    expect(first?.response.body.choices[0]?.message.content).toBe("night");
    expect(
      (await night.linesOf(batch.error_file_id)).map(({ response }) => response.status_code),
    ).toEqual([400]);
    const record = await night.gateway.get(`/generation?id=gen_${first?.response.request_id}`);
    expect(await record.json()).toMatchObject({
      data: {
        total_cost: 0.0015,
        service_tier: "batch",
        batch_id: made.id,
        provider_name: expect.any(String),
      },
    });
    expect(await night.usedUsd()).toBeCloseTo(before + 0.003, 9);
  });
});

test("a cancelled batch is cancelled at the provider, and what ran is charged", async () => {
  const made = await night.submit(
    ["a", "b", "c", "d"].map((each) => lineOf(each, nightModels.openai)),
  );
  await night.shownWhen(made.id, ({ provider: by }) => by === "openai");
  night.vendors.ranBeforeCancel = 0.5;
  await night.openai.batches.cancel(made.id);
  const batch = await night.shownWhen(made.id, hasEnded);
  expect(batch).toMatchObject({
    status: "cancelled",
    request_counts: { total: 4, completed: 2, failed: 0 },
    cost: 0.003,
  });
});

/** Calls the API with the rights of a management key. */
async function manage(method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await fetch(night.gateway.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

test.each([
  ["a revoked key", "/keys", (hash: string) => manage("DELETE", `/keys/${hash}`)],
  [
    "the key of a customer that is suspended",
    "/customers/shop/keys",
    () => manage("PATCH", "/customers/shop", { suspended: true }),
  ],
])("%s pays for what the provider has answered", async (_, path, refuse) => {
  await manage("POST", "/customers", { external_id: "shop" });
  const created = await manage("POST", path, { name: "night" });
  const client = new OpenAI({
    apiKey: textAt(created, "key"),
    baseURL: night.gateway.baseUrl,
    maxRetries: 0,
  });
  const made = await night.submit([lineOf("a", nightModels.anthropic)], client);
  await night.shownWhen(made.id, ({ provider: by }) => by === "anthropic");
  await refuse(textAt(created, "data.hash"));
  night.vendors.isDone = true;
  expect(await night.shownWhen(made.id, hasEnded)).toMatchObject({
    request_counts: { completed: 1, failed: 0 },
    cost: 0.0015,
  });
  await manage("DELETE", "/customers/shop");
});

const ownKey = { provider_id: "openai", api_key: "own-secret-of-the-workspace" };

test("lines with an own provider key run in a batch of its account, which pays for them", async () => {
  const key = textAt(await manage("POST", "/auth/byok", ownKey), "id");
  const before = await night.usedUsd();
  const made = await night.submit([
    lineOf("a", nightModels.openai),
    lineOf("b", nightModels.openai),
  ]);
  await night.shownWhen(made.id, ({ provider: by }) => by === "openai");
  night.vendors.isDone = true;
  const batch = await night.shownWhen(made.id, hasEnded);
  expect(night.vendors.batches.at(-1)?.credential).toBe(ownKey.api_key);
  expect(batch).toMatchObject({ provider: "openai", request_counts: { completed: 2 }, cost: 0 });
  const [line] = await night.linesOf(batch.output_file_id);
  const record = await night.gateway.get(`/generation?id=gen_${line?.response.request_id}`);
  expect(await record.json()).toMatchObject({
    data: { total_cost: 0, is_byok: true, service_tier: "batch" },
  });
  expect(await night.usedUsd()).toBe(before);
  await manage("DELETE", `/auth/byok/keys/${key}`);
});

test("where its own provider key is deleted meanwhile, the lines of a batch run here", async () => {
  const key = textAt(await manage("POST", "/auth/byok", ownKey), "id");
  const made = await night.submit([lineOf("a", nightModels.openai)]);
  await night.shownWhen(made.id, ({ provider: by }) => by === "openai");
  await manage("DELETE", `/auth/byok/keys/${key}`);
  expect(await night.shownWhen(made.id, hasEnded)).toMatchObject({
    provider: null,
    provider_note: "The own provider key of the batch is gone.",
    request_counts: { completed: 1, failed: 0 },
    cost: 0.003,
  });
});

test("an address that has no batch API runs none of its own", async () => {
  night.vendors.isPlain = true;
  const made = await night.submit([lineOf("a", nightModels.openai)]);
  const batch = await night.shownWhen(made.id, hasEnded);
  night.vendors.isPlain = false;
  expect(batch).toMatchObject({
    request_counts: { completed: 1, failed: 0 },
    provider: null,
    provider_note: "The provider refused the batch.",
    cost: 0.003,
  });
});

test.each([
  [
    "several providers",
    [lineOf("a", nightModels.openai), lineOf("b", nightModels.google)],
    "several providers",
  ],
  [
    "another tier",
    [
      lineOf("a", nightModels.openai, "hi", { service_tier: "default" }),
      lineOf("b", "sandbox/none"),
    ],
    undefined,
  ],
])("lines with %s", async (_, lines, note) => {
  const made = await night.submit(lines);
  if (note === undefined) {
    night.vendors.isDone = true;
    expect(await night.shownWhen(made.id, hasEnded)).toMatchObject({
      request_counts: { completed: 1, failed: 1 },
    });
  } else {
    const batch = await night.shownWhen(made.id, ({ provider_note: why }) => why !== null);
    expect(batch.provider_note).toContain(note);
  }
});
