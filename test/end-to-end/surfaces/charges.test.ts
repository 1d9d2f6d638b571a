import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { startScene, type Scene } from "../scenarios/support/scene.ts";
import { provider, testManagementKey } from "../../support/gateway.ts";
import {
  acmePrice,
  answering,
  openaiVectors,
  said,
  startSurfaceScene,
} from "./support/surface-scene.ts";

/**
 * A request on each surface whose answers have an id, what its provider answers, and what that
 * costs in USD.
 */
const surfaces: Record<
  string,
  { body: object; answer: ReturnType<typeof answering>; cost: number }
> = {
  "/embeddings": {
    body: { model: "acme/embed", input: ["one", "two"] },
    answer: openaiVectors,
    cost: 0.000002,
  },
  "/rerank": {
    body: { model: "acme/rerank", query: "q", documents: ["d"] },
    cost: 0.001,
    answer: answering(() => ({
      results: [{ index: 0, relevance_score: 1 }],
      meta: { billed_units: { search_units: 1 } },
    })),
  },
  "/moderations": {
    body: { model: "acme/llama-guard-4", input: "text" },
    answer: answering(() => said("safe")),
    cost: 0.000014,
  },
};

const freshHeaders = { "gw-skip-cache": "true", "x-service-balance-after-debit": "true" };

describe.each(Object.entries(surfaces))("%s", (path, { body, answer, cost }) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startSurfaceScene({ withBackup: false });
    scene.acme.script(answer);
  });
  afterEach(() => expectSoundBooks(scene.gateway));
  afterAll(() => scene.end());

  test("returns the charge in the body and headers and explains it under the response's own id", async () => {
    const response = await scene.gateway.post(path, body, { headers: freshHeaders });
    const { id, usage } = (await response.json()) as { id: string; usage: { cost: number } };
    expect([usage.cost, Number(response.headers.get("x-service-credits-charged"))]).toEqual([
      cost,
      cost,
    ]);
    expect(Number(response.headers.get("x-service-credits-balance-at-admission"))).toBe(10);
    const generation: unknown = await (await scene.gateway.get(`/generation/${id}`)).json();
    expect(at(generation, "data.total_cost")).toBe(cost);
    expect((await scene.gateway.get(`/generation/${id}/explain`)).status).toBe(200);
  });
});

describe("with the caller's own provider key", () => {
  let scene: Scene;
  beforeAll(async () => {
    const priced = [
      { id: "acme/embed", surface: "embeddings", pricing: acmePrice },
      { id: "acme/rerank", surface: "rerank", pricing: acmePrice },
      { id: "acme/llama-guard-4", surface: "moderations", pricing: acmePrice },
      { id: "acme/unpriced", surface: "embeddings" },
    ];
    const dialect = {
      chat: "openai-chat",
      embeddings: "openai-embeddings",
      rerank: "cohere-rerank",
      moderations: "guard-chat",
    };
    scene = await startScene({
      providers: (first) => [provider({ id: "acme", base_url: first, dialect, models: priced })],
    });
    const saved = await scene.gateway.post(
      "/auth/byok",
      { provider_id: "acme", api_key: "sk-own-key-number-one" },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    );
    expect(saved.ok).toBe(true);
  });
  afterAll(() => scene.end());

  test.each(Object.entries(surfaces))("%s costs 0", async (path, { body, answer }) => {
    scene.acme.script(answer);
    const response = await scene.gateway.post(path, body, { headers: freshHeaders });
    expect([
      response.headers.get("x-service-credential-source"),
      at(await response.json(), "usage.cost"),
    ]).toEqual(["own_byok", 0]);
    expect(response.headers.get("x-service-credits-charged")).toBeNull();
  });

  test("a model without a price shows no cost, and neither does its cached response", async () => {
    scene.acme.script(openaiVectors);
    const usages: unknown[] = [];
    for (const cache of ["MISS", "HIT"]) {
      const response = await scene.gateway.post("/embeddings", {
        model: "acme/unpriced",
        input: "x",
      });
      expect(response.headers.get("x-service-cache-status")).toBe(cache);
      usages.push(at(await response.json(), "usage"));
    }
    expect(usages).toEqual(Array(2).fill({ prompt_tokens: 1, total_tokens: 1 }));
  });

  test("a cached response costs 0, as the first one did", async () => {
    for (let times = 0; times < 2; times += 1) {
      const response = await scene.gateway.post("/embeddings", {
        model: "acme/embed",
        input: "kept",
      });
      expect(at(await response.json(), "usage.cost")).toBe(0);
    }
  });
});

test("Cohere's text and image tokens are reported separately and counted together", async () => {
  const scene = await startSurfaceScene();
  scene.backup.script(
    answering(() => ({
      id: "e1",
      embeddings: { float: [[1, 2]] },
      meta: { billed_units: { input_tokens: 4, image_tokens: 5 } },
    })),
  );
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const response = await scene.gateway.post(
    "/embeddings",
    { model: "acme/embed", input: [{ content: [{ type: "text", text: "a cat" }, picture] }] },
    { headers: { "x-service-provider": "backup" } },
  );
  expect(at(await response.json(), "usage")).toMatchObject({
    prompt_tokens: 9,
    total_tokens: 9,
    prompt_tokens_details: { text_tokens: 4, image_tokens: 5 },
  });
  await scene.end();
});
