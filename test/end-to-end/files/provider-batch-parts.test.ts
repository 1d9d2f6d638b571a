import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { putMigratedSqlite } from "../../support/migrated-sqlite.ts";
import { StrictBatches } from "../../support/strict-batches/strict-batches.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { hasEnded, lineOf, NightGateway, nightModels, nightVendors } from "./night-batches.ts";

const second = (id: string) => ({
  id: `${id}/night-2`,
  upstream_model: "night-2",
  context_length: 100_000,
  max_completion_tokens: 1_000,
  pricing: { prompt: "4", completion: "20" },
});

let night: NightGateway;
beforeAll(async () => {
  night = await NightGateway.start({
    openai: [second("openai"), { id: "openai/gpt-5.4" }],
    anthropic: [
      second("anthropic"),
      {
        id: "anthropic/night-3",
        upstream_model: "night-3",
        context_length: 100_000,
        max_completion_tokens: 1_000,
        pricing: {
          prompt: "2",
          completion: "10",
          service_tier: { batch: { prompt: "0.8", completion: "4" } },
        },
      },
    ],
    google: [second("google"), { id: "google/gemini-2.5-pro" }],
  });
});
afterAll(() => night.stop());
afterEach(() => {
  night.reset();
  expect(night.vendors.refusals).toEqual([]);
});

describe.each(nightVendors)("batches of %s", (id) => {
  test("with two models are one of the provider for each, where it takes one", async () => {
    const sent = night.vendors.batches.length;
    const made = await night.submit([
      lineOf("a", nightModels[id]),
      lineOf("b", `${id}/night-2`),
      lineOf("c", nightModels[id]),
    ]);
    const parts = id === "anthropic" ? 1 : 2;
    await pollUntil(() => night.vendors.batches.length === sent + parts);
    night.vendors.isDone = true;
    const batch = await night.shownWhen(made.id, hasEnded);
    expect(batch).toMatchObject({
      request_counts: { total: 3, completed: 3, failed: 0 },
      provider: id,
      provider_note: null,
      // 1,000 tokens in and 100 out, at half of 2 and 10 USD twice, and of 4 and 20 USD once.
      cost: 0.006,
      reserved: 0,
    });
    const output = await night.linesOf(batch.output_file_id);
    expect(output.map(({ custom_id }) => custom_id)).toEqual(["a", "b", "c"]);
    expect(night.vendors.batches.length).toBe(sent + parts);
  });

  test("of which it is not known whether they were taken are found again", async () => {
    const sent = night.vendors.batches.length;
    const first = await night.submit([lineOf("a", nightModels[id])]);
    await pollUntil(() => night.vendors.batches.length === sent + 1);
    night.vendors.cutsAfterCreate = true;
    const lost = await night.submit([lineOf("a", nightModels[id])]);
    const isListed = (call: string): boolean => call.startsWith("GET") && /batches$/.test(call);
    await pollUntil(() => night.vendors.calls.some(isListed));
    night.vendors.isDone = true;
    for (const { id: batchId } of [first, lost])
      expect(await night.shownWhen(batchId, hasEnded)).toMatchObject({
        request_counts: { completed: 1 },
        cost: 0.0015,
        provider: id,
      });
    expect(night.vendors.batches.length).toBe(sent + 2);
  });
});

describe.each(["openai", "anthropic"] as const)("results of %s", (id) => {
  const submit = () =>
    night.submit(["a", "b", "c"].map((name) => lineOf(name, nightModels[id], `line ${name}`)));

  test("may come in any order, twice, and with those of others", async () => {
    night.vendors.changesResults = (lines) =>
      [
        ...lines,
        "",
        ...lines,
        (lines[0] ?? "").replaceAll(/"custom_id":"[^"]+"/g, '"custom_id":"x"'),
      ]
        .reverse()
        .join("\r\n");
    night.vendors.isDone = true;
    const before = await night.usedUsd();
    const { id: batchId } = await submit();
    const batch = await night.shownWhen(batchId, hasEnded);
    expect(batch).toMatchObject({
      request_counts: { total: 3, completed: 3, failed: 0 },
      provider: id,
      provider_note: null,
      cost: 0.0045,
    });
    const output = await night.linesOf(batch.output_file_id);
    expect(output.map(({ custom_id }) => custom_id)).toEqual(["a", "b", "c"]);
    expect(await night.usedUsd()).toBeCloseTo(before + 0.0045, 9);
  });

  test("that are cut off, or lack some, are read again, and the rest runs here", async () => {
    let reads = 0;
    night.vendors.changesResults = ([first = "", second = ""]) => {
      reads += 1;
      return `${first}\n${second.slice(0, 60)}`;
    };
    night.vendors.isDone = true;
    const { id: batchId } = await submit();
    expect(await night.shownWhen(batchId, hasEnded)).toMatchObject({
      request_counts: { total: 3, completed: 3, failed: 0 },
      provider: id,
      // One answer of the batch, and two at the ordinary price.
      cost: 0.0015 + 2 * 0.003,
      reserved: 0,
    });
    expect(reads).toBe(id === "openai" ? 8 : 4);
  });

  test("may be compressed", async () => {
    night.vendors.isCompressed = true;
    night.vendors.isDone = true;
    const { id: batchId } = await submit();
    expect(await night.shownWhen(batchId, hasEnded)).toMatchObject({
      request_counts: { completed: 3, failed: 0 },
      cost: 0.0045,
    });
  });
});

test.each([
  ["openai", "openai/gpt-5.4", 0.002, 0.751125],
  ["google", "google/gemini-2.5-pro", 0.001125, 0.37575],
] as const)("a line of %s is priced by its own length", async (_, model, shortUsd, longUsd) => {
  const before = await night.usedUsd();
  const made = await night.submit([
    lineOf("short", model),
    lineOf("long", model, "word ".repeat(300_000)),
  ]);
  night.vendors.isDone = true;
  const batch = await night.shownWhen(made.id, hasEnded);
  expect(batch).toMatchObject({ request_counts: { completed: 2 }, provider_note: null });
  expect(batch.cost).toBeCloseTo(shortUsd + longUsd, 9);
  expect(await night.usedUsd()).toBeCloseTo(before + shortUsd + longUsd, 9);
});

test("plain completions travel as chats, and are answered as completions", async () => {
  const line = {
    custom_id: "a",
    method: "POST",
    url: "/v1/completions",
    body: { model: nightModels.openai, prompt: "good ", echo: true, max_tokens: 500 },
  };
  const made = await night.submit([line], night.openai, "/v1/completions");
  await night.shownWhen(made.id, ({ provider }) => provider === "openai");
  night.vendors.isDone = true;
  const batch = await night.shownWhen(made.id, hasEnded);
  expect(batch).toMatchObject({ provider: "openai", cost: 0.0015 });
  const [output] = await night.linesOf(batch.output_file_id);
  expect(output?.response.body).toMatchObject({
    object: "text_completion",
    choices: [{ text: "good night" }],
  });
});

test("a price of batches that the operator sets takes the place of half the price", async () => {
  const made = await night.submit([lineOf("a", "anthropic/night-3")]);
  night.vendors.isDone = true;
  expect(await night.shownWhen(made.id, hasEnded)).toMatchObject({ cost: 0.0012 });
});

test("lines that a provider has run here where its batches are turned off at a restart", async () => {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-turned-off-"));
  const kept = {
    storageUrl: await putMigratedSqlite(directory),
    files: { place: { directory: join(directory, "files") }, quotaBytesOf: () => 1e9 },
    vendors: new StrictBatches(),
  };
  const first = await NightGateway.start({}, kept);
  const made = await first.submit([lineOf("a", nightModels.openai)]);
  await first.shownWhen(made.id, ({ provider }) => provider === "openai");
  await first.gateway.stop();
  const batch = { concurrency: 8, native: "never" as const, pollSeconds: 60 };
  const second = await NightGateway.start({}, { ...kept, batch });
  try {
    expect(await second.shownWhen(made.id, hasEnded)).toMatchObject({
      request_counts: { completed: 1, failed: 0 },
      provider: null,
      cost: 0.003,
    });
  } finally {
    await second.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});

describe.each([
  ["openai", "token_limit_exceeded"],
  ["google", "RESOURCE_EXHAUSTED"],
] as const)("a batch that %s rejects after it has taken it", (id, code) => {
  const note = `The provider rejected the batch: ${code}.`;

  test("runs here, and shows no provider", async () => {
    night.vendors.rejectsNext = true;
    const made = await night.submit([lineOf("a", nightModels[id])]);
    expect(await night.shownWhen(made.id, hasEnded)).toMatchObject({
      request_counts: { completed: 1, failed: 0 },
      provider: null,
      provider_note: note,
      cost: 0.003,
      reserved: 0,
    });
  });

  test("does not keep its lines from running while the provider works on others", async () => {
    night.vendors.rejectsNext = true;
    const made = await night.submit([lineOf("a", nightModels[id]), lineOf("b", `${id}/night-2`)]);
    const running = await night.shownWhen(
      made.id,
      ({ request_counts: counts }) => counts?.completed === 1,
    );
    expect(running).toMatchObject({ status: "in_progress", provider: id, provider_note: note });
    expect(running.cost).toBe(0.003);
    night.vendors.isDone = true;
    expect(await night.shownWhen(made.id, hasEnded)).toMatchObject({
      request_counts: { completed: 2, failed: 0 },
      provider: id,
      provider_note: note,
      cost: 0.006,
    });
  });
});
