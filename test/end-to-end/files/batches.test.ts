import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "kysely";
import OpenAI, { toFile } from "openai";
import type { Batch } from "openai/resources/batches";
import {
  acme,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";

/** How the provider answers: by the text of the last message. */
const answers: Record<string, (count: number) => Response> = {
  bad: () => Response.json({ error: { message: "no such thing", type: "x" } }, { status: 400 }),
  flaky: (count) =>
    count === 1
      ? Response.json({ error: { message: "overloaded" } }, { status: 503 })
      : answerOf("at last"),
};

const answerOf = (content: string): Response =>
  Response.json({
    id: "up_1",
    object: "chat.completion",
    created: 1,
    model: "large-v2",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1_000, completion_tokens: 1_000, total_tokens: 2_000 },
  });

const asked = new Map<string, number>();
/** Holds the answers to slow lines while it is set. */
let held: PromiseWithResolvers<void> | undefined;
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const { messages } = (await request.json()) as { messages: { content: string }[] };
    const text = messages.at(-1)?.content ?? "";
    const count = (asked.get(text) ?? 0) + 1;
    asked.set(text, count);
    if (text.startsWith("slow")) await held?.promise;
    return answers[text.split(" ")[0] ?? ""]?.(count) ?? answerOf(`re: ${text}`);
  },
});

let gateway: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;
beforeAll(async () => {
  let origin = "";
  gateway = await startGateway({
    providers: [acme(`http://127.0.0.1:${upstream.port}/v1`)],
    publicUrl: () => origin,
  });
  origin = gateway.origin;
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: testLlmKey, baseURL: gateway.origin, maxRetries: 0 });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const lineOf = (id: string, text: string, change: Record<string, unknown> = {}) => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model: "acme/large", max_tokens: 1_000, messages: [{ role: "user", content: text }] },
  ...change,
});

async function submit(lines: readonly unknown[] | string): Promise<Batch> {
  const text =
    typeof lines === "string" ? lines : lines.map((line) => JSON.stringify(line)).join("\n");
  const file = await openai.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  return openai.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { night: "1" },
  });
}

async function ended(id: string): Promise<Batch & { cost: number }> {
  for (;;) {
    const batch = await openai.batches.retrieve(id);
    if (["completed", "failed", "expired", "cancelled"].includes(batch.status))
      return batch as Batch & { cost: number };
    await Bun.sleep(50);
  }
}

interface OutputLine {
  custom_id: string;
  response: { status_code: number; request_id: string; body: OpenAI.ChatCompletion } | null;
  error: { code: string } | null;
}

async function linesOf(fileId: string | null | undefined): Promise<OutputLine[]> {
  if (fileId === null || fileId === undefined) return [];
  const text = await (await openai.files.content(fileId)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as OutputLine);
}

/** The records of a batch's lines, as the activity shows them. */
async function recordsOf(batchId: string): Promise<{ status: string; batch_id: string | null }[]> {
  const answer = await gateway.get(`/analytics/generations?batch_id=${batchId}`, {
    authorization: `Bearer ${testManagementKey}`,
  });
  const { data } = (await answer.json()) as { data: { status: string; batch_id: string | null }[] };
  return data;
}

describe("OpenAI's client", () => {
  test("runs a batch, and each line is charged once", async () => {
    const made = await submit([
      lineOf("a", "one"),
      lineOf("b", "bad"),
      lineOf("c", "flaky"),
      lineOf("d", "two"),
      lineOf("e", "x", { body: { model: "acme/none", messages: [] } }),
    ]);
    expect(made).toMatchObject({
      object: "batch",
      status: "validating",
      metadata: { night: "1" },
    });
    const batch = await ended(made.id);
    expect(batch).toMatchObject({
      status: "completed",
      errors: null,
      request_counts: { total: 5, completed: 3, failed: 2 },
      usage: { input_tokens: 3_000, output_tokens: 3_000, total_tokens: 6_000 },
      cost: 0.006,
    });
    const output = await linesOf(batch.output_file_id);
    expect(output.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "c", "d"]);
    const [first] = output;
    expect(first?.response?.status_code).toBe(200);
    expect(first?.response?.body).toMatchObject({
      object: "chat.completion",
      choices: [{ message: { content: "re: one" } }],
      usage: { cost: 0.002 },
    });
    const errors = await linesOf(batch.error_file_id);
    expect(errors.map((line) => [line.custom_id, line.response?.status_code])).toEqual([
      ["b", 400],
      ["e", 400],
    ]);
    const record = await gateway.get(`/generation?id=gen_${first?.response?.request_id}`);
    expect(await record.json()).toMatchObject({ data: { total_cost: 0.002, batch_id: batch.id } });
    expect((await openai.batches.list({ limit: 1 })).data[0]?.id).toBe(batch.id);
    const rows = await recordsOf(batch.id);
    expect(rows.filter(({ status }) => status === "completed")).toHaveLength(3);
    expect(new Set(rows.map(({ batch_id: id }) => id))).toEqual(new Set([batch.id]));
    expect(await recordsOf(`batch_${"0".repeat(32)}`)).toEqual([]);
  });

  test.each([
    ["no JSON", "{", ["invalid_json_line", null, 1]],
    ["an empty file", "\n\n", ["empty_file", null, null]],
    ["no custom_id", [lineOf("", "x")], ["missing_required_parameter", "custom_id", 1]],
    [
      "no method",
      [lineOf("a", "x", { method: undefined })],
      ["missing_required_parameter", "method", 1],
    ],
    ["no url", [lineOf("a", "x", { url: undefined })], ["missing_required_parameter", "url", 1]],
    ["no body", [lineOf("a", "x", { body: undefined })], ["missing_required_parameter", "body", 1]],
    [
      "an id that occurs twice",
      [lineOf("a", "x"), lineOf("a", "y")],
      ["duplicate_custom_id", "custom_id", 2],
    ],
    ["another url", [lineOf("a", "x", { url: "/v1/embeddings" })], ["invalid_url", "url", 1]],
    ["another method", [lineOf("a", "x", { method: "GET" })], ["invalid_method", "method", 1]],
    [
      "a stream",
      [lineOf("a", "x", { body: { model: "m", stream: true } })],
      ["streaming_unsupported", "body.stream", 1],
    ],
    ["no model", [lineOf("a", "x", { body: {} })], ["invalid_request", "body.model", 1]],
    [
      "no messages",
      [lineOf("a", "x", { body: { model: "acme/large" } })],
      ["invalid_request", "body.messages", 1],
    ],
    [
      "no model that is known",
      ["a", "b"].map((id) => lineOf(id, "x", { body: { model: "acme/none", messages: [] } })),
      ["model_not_found", "body.model", 1],
    ],
    ["deep JSON", `${"[".repeat(100_000)}`, ["invalid_json_line", null, 1]],
    ["a million lines of one byte", "x\n".repeat(1_000_000), ["invalid_json_line", null, 1]],
  ])("an input with %s fails the batch", async (_, lines, [code, param, line]) => {
    const made = await submit(lines as unknown[] | string);
    const batch = await ended(made.id);
    expect(batch.status).toBe("failed");
    expect<unknown>(batch.errors?.data?.[0]).toMatchObject({ code, param, line });
    expect<unknown>([batch.output_file_id, batch.error_file_id]).toEqual([null, null]);
  });

  test("cancels: what runs is kept, and the rest was not run", async () => {
    const lines = Array.from({ length: 40 }, (_, index) => lineOf(`l${index}`, `slow ${index}`));
    held = Promise.withResolvers();
    const made = await submit(lines);
    await pollUntil(() => asked.has("slow 0"));
    expect((await openai.batches.cancel(made.id)).status).toBe("cancelling");
    held.resolve();
    const batch = await ended(made.id);
    expect(batch.status).toBe("cancelled");
    const [output, errors] = [
      await linesOf(batch.output_file_id),
      await linesOf(batch.error_file_id),
    ];
    expect(output.length + errors.length).toBe(40);
    expect(output.length).toBeGreaterThan(0);
    expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(["batch_cancelled"]));
    expect(batch.cost).toBeCloseTo(output.length * 0.002);
  });

  test("a batch is created once for an idempotency key", async () => {
    const { input_file_id } = await submit([lineOf("a", "once")]);
    const create = async () => {
      const answer = await gateway.post(
        "/batches",
        { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" },
        { headers: { "idempotency-key": "night-1" } },
      );
      return ((await answer.json()) as Batch).id;
    };
    const first = await create();
    expect(await create()).toBe(first);
    expect((await ended(first)).status).toBe("completed");
  });

  test("an input that is not this workspace's file is refused", async () => {
    const answer = await gateway.post("/batches", {
      input_file_id: "file-none",
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    });
    expect(answer.status).toBe(404);
  });

  test("an input that is deleted meanwhile is read to its end", async () => {
    held = Promise.withResolvers();
    const made = await submit([lineOf("a", "slow 1"), lineOf("b", "slow 2")]);
    await openai.files.delete(made.input_file_id);
    held.resolve();
    expect(await ended(made.id)).toMatchObject({ request_counts: { completed: 2 } });
  });
});

describe("Anthropic's client", () => {
  const requestOf = (index: number) => ({
    custom_id: `r${index}`,
    params: {
      model: "acme/large",
      max_tokens: 100,
      messages: [{ role: "user" as const, content: "one" }],
    },
  });

  test("a batch of thousands of requests is taken, and once for an idempotency key", async () => {
    const requests = Array.from({ length: 10_000 }, (_, index) => requestOf(index));
    const create = async (key: string): Promise<string> => {
      const made = await anthropic.messages.batches.create(
        { requests },
        { headers: { "Idempotency-Key": key } },
      );
      expect(made.request_counts.processing).toBe(10_000);
      return made.id;
    };
    const id = await create("night-2");
    expect((await anthropic.messages.batches.cancel(id)).processing_status).toBe("canceling");
    expect(await create("night-2")).toBe(id);
  });

  test.each([
    ["nested too deeply", { a: JSON.parse(`${"[".repeat(2_000)}${"]".repeat(2_000)}`) as unknown }],
    ["no object", []],
  ])("params that are %s are refused at once, and nothing is kept", async (_, params) => {
    const answer = await fetch(`${gateway.baseUrl}/messages/batches`, {
      method: "POST",
      headers: { "x-api-key": testLlmKey, "anthropic-version": "2023-06-01" },
      body: JSON.stringify({ requests: [requestOf(1), { custom_id: "x", params }] }),
    });
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: { type: string; message: string } };
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain("requests[1]");
  });

  test("runs a batch and reads its results from this gateway", async () => {
    const made = await anthropic.messages.batches.create({
      requests: ["one", "bad"].map((text) => ({
        custom_id: text,
        params: {
          model: "acme/large",
          max_tokens: 100,
          messages: [{ role: "user" as const, content: text }],
        },
      })),
    });
    expect(made).toMatchObject({ type: "message_batch", processing_status: "in_progress" });
    await expect(anthropic.messages.batches.results(made.id)).rejects.toThrow();
    let batch = made;
    while (batch.processing_status !== "ended") {
      await Bun.sleep(50);
      batch = await anthropic.messages.batches.retrieve(made.id);
    }
    expect(made.request_counts).toMatchObject({ processing: 2, succeeded: 0 });
    expect(batch.results_url).toBe(`${gateway.origin}/v1/messages/batches/${made.id}/results`);
    expect(batch.request_counts).toMatchObject({ processing: 0, succeeded: 1, errored: 1 });
    const results = [];
    for await (const result of await anthropic.messages.batches.results(made.id))
      results.push(result);
    expect(results).toMatchObject([
      {
        custom_id: "one",
        result: {
          type: "succeeded",
          message: { type: "message", content: [{ type: "text", text: "re: one" }] },
        },
      },
      { custom_id: "bad", result: { type: "errored", error: { type: "error" } } },
    ]);
    // The dashboard knows the batch without the prefix of Anthropic's form.
    for (const id of [made.id, made.id.slice("msg".length)]) {
      const rows = await recordsOf(id);
      expect(rows.map(({ status }) => status).sort()).toEqual(["completed", "failed"]);
      expect(rows.map(({ batch_id: shown }) => shown)).toEqual([made.id, made.id]);
    }
    const listed = [];
    for await (const { id } of anthropic.messages.batches.list({ limit: 1 })) listed.push(id);
    expect(listed[0]).toBe(made.id);
    expect(new Set(listed).size).toBe(listed.length);
    expect(await anthropic.messages.batches.delete(made.id)).toEqual({
      id: made.id,
      type: "message_batch_deleted",
    });
    expect((await openai.batches.list()).data.length).toBeGreaterThan(0);
  });
});

describe("a database that refuses something in the middle of a batch", () => {
  const run = (text: string) => sql.raw(text).execute(gateway.app.storage.database);
  const usedUsd = async (): Promise<number> => {
    const { data } = (await (await gateway.get("/credits")).json()) as {
      data: { total_usage: number };
    };
    return data.total_usage;
  };

  test.each([
    ["charges", "insert on transfers"],
    ["taken lines", "update of leased_by on batch_lines when new.leased_by is not null"],
    ["lines that are done", "update of done on batch_lines when new.done = 1"],
    ["counts", "update of completed on batches"],
    ["the file of errors", "insert on files when new.filename like '%_error.jsonl'"],
  ])("%s: each line has one result and one charge once it works again", async (name, event) => {
    const before = await usedUsd();
    held = Promise.withResolvers();
    const lines = Array.from({ length: 40 }, (_, index) =>
      lineOf(`l${index}`, `slow ${name} ${index}`),
    );
    const made = await submit([lineOf("wrong", "bad"), ...lines]);
    await pollUntil(() => asked.has(`slow ${name} 0`));
    const logged = gateway.logLines.length;
    await run(
      `create trigger refused before ${event} begin select raise(abort, 'the test refuses it'); end`,
    );
    held.resolve();
    await pollUntil(() =>
      gateway.logLines.slice(logged).some((line) => line.includes("the test refuses it")),
    );
    await run("drop trigger refused");
    const batch = await ended(made.id);
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 41, completed: 40, failed: 1 },
      usage: { total_tokens: 80_000 },
    });
    expect(batch.cost).toBeCloseTo(0.08, 9);
    expect((await usedUsd()) - before).toBeCloseTo(0.08, 9);
    const output = await linesOf(batch.output_file_id);
    expect(new Set(output.map(({ custom_id }) => custom_id)).size).toBe(40);
    expect(new Set(output.map(({ response }) => response?.request_id)).size).toBe(40);
    expect(output.length).toBe(40);
    expect((await linesOf(batch.error_file_id)).map((line) => line.custom_id)).toEqual(["wrong"]);
  });
});

test("no hold is left over", () => {
  expect(gateway.app.ledger.openHoldCount).toBe(0);
});
