import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { json } from "../../support/upstream/steps.ts";
import {
  answering,
  cohereVectors,
  inOrder,
  openaiVectors,
  startSurfaceScene,
  vectorOf,
} from "./support/surface-scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startSurfaceScene({
    more: [
      { id: "acme/embed:free", surface: "embeddings", pricing: { prompt: "0", completion: "0" } },
    ],
  });
});
beforeEach(() => {
  scene.acme.script(openaiVectors);
  scene.backup.script(cohereVectors);
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const fresh = { "gw-skip-cache": "true" };

async function embed(changes: Record<string, unknown>, headers: Record<string, string> = fresh) {
  const response = await scene.gateway.post(
    "/embeddings",
    { model: "acme/embed", input: "text", ...changes },
    {
      headers: { ...inOrder.headers, ...headers },
    },
  );
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

const rowOf = ({ headers }: { headers: Headers }) =>
  settledRow(scene.gateway, headers.get("x-service-trace-id"));
const vectorsIn = (body: unknown): unknown =>
  (at(body, "data") as { embedding: unknown }[]).map(({ embedding }) => embedding);

describe("an embeddings response", () => {
  test("has the vectors in the order of the inputs, the usage and the charge", async () => {
    const reply = await embed({ input: ["three", "four"] });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      id: `embd-${reply.headers.get("x-service-trace-id")}`,
      object: "list",
      model: "acme/embed",
      data: [
        { object: "embedding", index: 0, embedding: vectorOf("three") },
        { object: "embedding", index: 1, embedding: vectorOf("four") },
      ],
      usage: { prompt_tokens: 2, total_tokens: 2, cost: 0.000002 },
    });
    expect(reply.headers.get("x-service-provider-chain")).toBe("acme");
    expect(await rowOf(reply)).toMatchObject({
      model: "acme/embed",
      promptTokens: 2,
      completionTokens: 0,
      costNano: 2_000n,
      status: "completed",
    });
  });

  test("has no cost for a free model", async () => {
    const reply = await embed(
      { model: "acme/embed:free" },
      { ...fresh, "x-service-provider": "acme" },
    );
    expect(reply.body["usage"]).toEqual({ prompt_tokens: 1, total_tokens: 1 });
  });

  test("has the requested encoding format, whichever the provider supports", async () => {
    const reply = await embed({ encoding_format: "base64" });
    const [base64] = vectorsIn(reply.body) as [string];
    expect([...new Float32Array(Uint8Array.from(Buffer.from(base64, "base64")).buffer)]).toEqual(
      vectorOf("text"),
    );
    scene.acme.script(
      answering(() => ({ data: [{ index: 0, embedding: base64 }], usage: { prompt_tokens: 1 } })),
    );
    expect(vectorsIn((await embed({})).body)).toEqual([vectorOf("text")]);
  });

  test("reports text and image tokens separately when the provider does", async () => {
    scene.acme.script(
      answering(() => ({
        data: [{ index: 0, embedding: [1] }],
        usage: { prompt_tokens: 9, prompt_tokens_details: { text_tokens: 4, image_tokens: 5 } },
      })),
    );
    expect((await embed({ input: [{ text: "a" }] })).body["usage"]).toMatchObject({
      prompt_tokens: 9,
      prompt_tokens_details: { text_tokens: 4, image_tokens: 5 },
    });
  });

  test("has estimated usage when the provider reports none", async () => {
    scene.acme.script(answering(() => ({ data: [{ index: 0, embedding: [1] }] })));
    const reply = await embed({ input: "12345678" });
    expect(reply.body["usage"]).toMatchObject({ prompt_tokens: 2 });
    expect((await rowOf(reply))?.detail).toMatchObject({ usageEstimated: true });
  });
});

describe("more inputs than a provider accepts in one request", () => {
  const texts = Array.from({ length: 200 }, (_, index) => "x".repeat(index + 1));
  const toBackup = { ...fresh, "x-service-provider": "backup" };

  test("are sent in batches and returned in order as one response and one charge", async () => {
    const before = scene.backup.requests.length;
    const reply = await embed({ input: texts }, toBackup);
    const batches = scene.backup.requests
      .slice(before)
      .map((request) => (at(request.json(), "texts") as string[]).length);
    expect(batches.sort((left, right) => right - left)).toEqual([96, 96, 8]);
    expect(vectorsIn(reply.body)).toEqual(texts.map(vectorOf));
    expect(reply.body["usage"]).toEqual({ prompt_tokens: 200, total_tokens: 200, cost: 0.0004 });
    expect(await rowOf(reply)).toMatchObject({
      provider: "backup",
      promptTokens: 200,
      costNano: 400_000n,
    });
  });

  test("fail as a whole when one batch fails, and the other batches are aborted", async () => {
    const gate = scene.backup.gate();
    scene.backup.script((request) =>
      (at(request.json(), "texts") as string[]).length === 8
        ? json({ message: "no room" }, { status: 429 })
        : [gate],
    );
    const before = scene.backup.requests.length;
    const reply = await embed({ input: texts }, toBackup);
    expect([
      reply.status,
      at(reply.body, "error.code"),
      at(reply.body, "error.metadata.upstream_message"),
    ]).toEqual([429, "rate_limit_exceeded", "no room"]);
    const abandoned = scene.backup.requests
      .slice(before)
      .filter((request) => (at(request.json(), "texts") as string[]).length === 96);
    await Promise.all(abandoned.map(({ aborted }) => aborted));
    expect(abandoned).toHaveLength(2);
  });

  test("are retried at the next provider when one batch fails", async () => {
    const many = Array.from({ length: 2_050 }, (_, index) => `text ${index}`);
    scene.acme.script((request) =>
      (at(request.json(), "input") as string[]).length === 2
        ? json({}, { status: 500 })
        : openaiVectors(request),
    );
    const reply = await embed({ input: many });
    expect(reply.headers.get("x-service-provider-chain")).toBe("acme->backup");
    expect(vectorsIn(reply.body)).toEqual(many.map(vectorOf));
    expect(await rowOf(reply)).toMatchObject({ provider: "backup", promptTokens: 2_050 });
  });
});

test("usage above the model's context window is accepted for many texts and capped for one", async () => {
  const counted = (count: number) =>
    answering(({ input }) => ({
      data: [input].flat().map((_, index) => ({ index, embedding: [1] })),
      usage: { prompt_tokens: count },
    }));
  scene.acme.script(counted(100_000));
  const many = Array.from({ length: 20 }, (_, index) => `text ${index}`);
  expect((await embed({ input: many })).body["usage"]).toMatchObject({ prompt_tokens: 100_000 });
  expect((await embed({})).body["usage"]).toMatchObject({ prompt_tokens: 8_192 });
});

describe("X-Routing-Strategy", () => {
  test("cheapest always picks the cheaper provider", async () => {
    for (let time = 0; time < 5; time += 1) {
      const reply = await embed(
        {},
        { ...fresh, "x-service-provider": "", "x-routing-strategy": "cheapest" },
      );
      expect(reply.headers.get("x-service-provider-chain")).toBe("acme");
    }
  });

  test("most-available prefers other providers over one that failed", async () => {
    const shaky = await startSurfaceScene();
    shaky.acme.script(json({}, { status: 503 }));
    shaky.backup.script(cohereVectors);
    const chainOf = async (): Promise<string | null> =>
      (
        await shaky.gateway.post(
          "/embeddings",
          { model: "acme/embed", input: "x" },
          {
            headers: { ...fresh, "x-routing-strategy": "most-available" },
          },
        )
      ).headers.get("x-service-provider-chain");
    expect([await chainOf(), await chainOf()]).toEqual(["acme->backup", "backup"]);
    await shaky.end();
  });

  test("an unknown value returns 400", async () => {
    const reply = await embed({}, { ...fresh, "x-routing-strategy": "luckiest" });
    expect([reply.status, at(reply.body, "error.code"), at(reply.body, "error.param")]).toEqual([
      400,
      "invalid_request_error",
      "X-Routing-Strategy",
    ]);
  });
});

describe("an invalid embeddings request", () => {
  test.each<[string, Record<string, unknown> | string, number, string]>([
    ["no model", { input: "a" }, 400, "missing_required_fields"],
    ["no input", { model: "acme/embed" }, 400, "missing_required_fields"],
    [
      "an invalid encoding format",
      { model: "acme/embed", input: "a", encoding_format: "int8" },
      400,
      "invalid_request_error",
    ],
    ["invalid JSON", "{", 400, "invalid_request_error"],
    ["an unknown model", { model: "acme/none", input: "a" }, 404, "model_unavailable"],
    ["a chat model", { model: "acme/large", input: "a" }, 404, "model_unavailable"],
  ])("%s", async (_, body, status, code) => {
    const response = await scene.gateway.post("/embeddings", body);
    expect([response.status, at(await response.json(), "error.code")]).toEqual([status, code]);
  });

  test("returns 401 for an invalid key and 402 without credits", async () => {
    const broke = await startSurfaceScene({
      settings: {
        bootstrap: {
          llmKey: "sk-svc-v1-broke0broke0broke0broke0broke0broke0",
          managementKey: undefined,
          creditsNanoUsd: 0n,
          plan: "enterprise",
        },
      },
    });
    const ask = async (secret: string) => {
      const response = await broke.gateway.post(
        "/embeddings",
        { model: "acme/embed", input: "a" },
        { headers: { authorization: `Bearer ${secret}` } },
      );
      const body: unknown = await response.json();
      return [response.status, at(body, "error.code"), at(body, "error.metadata.type")];
    };
    expect(await ask("sk-svc-v1-nobody")).toEqual([401, "invalid_api_key", "authentication_error"]);
    expect(await ask("sk-svc-v1-broke0broke0broke0broke0broke0broke0")).toEqual([
      402,
      "insufficient_balance",
      "insufficient_credits",
    ]);
    await broke.end();
  });

  test("returns 400 for token ids that no provider of the model supports", async () => {
    const reply = await embed({ input: [[1, 2]] }, { ...fresh, "x-service-provider": "backup" });
    expect([reply.status, at(reply.body, "error.code"), at(reply.body, "error.param")]).toEqual([
      400,
      "invalid_request_error",
      "input",
    ]);
  });
});

test("chat returns 404 for an embedding model", async () => {
  const response = await scene.gateway.post("/chat/completions", {
    model: "acme/embed",
    messages: [{ role: "user", content: "x" }],
  });
  expect([response.status, at(await response.json(), "error.code")]).toEqual([
    404,
    "model_unavailable",
  ]);
});
