import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture } from "../../support/documents/encode-picture.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "../scenarios/support/at.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { said, startSurfaceScene } from "./support/surface-scene.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

/** What is left to each payer: too little for any request of the table. */
const leftUsd = 0.000001;
const leftNano = 1_000n;

const bearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });
const asOwner = bearer(testManagementKey);

/** Two gateways: one whose workspace has credits, one where next to nothing is left of them. */
const scenes: Partial<Record<"rich" | "poor", Scene>> = {};
const sceneOf = (name: keyof typeof scenes): Scene => {
  const scene = scenes[name];
  if (scene === undefined) throw new Error(`the ${name} scene has not started`);
  return scene;
};
beforeAll(async () => {
  const start = (creditsNanoUsd: bigint): Promise<Scene> =>
    startSurfaceScene({
      withBackup: false,
      more: [
        { id: "acme/ocr", context_length: 32_768, pricing: { prompt: "1.00", completion: "2.00" } },
      ],
      settings: {
        ocrModel: "acme/ocr",
        bootstrap: {
          llmKey: testLlmKey,
          managementKey: testManagementKey,
          creditsNanoUsd,
          plan: "enterprise",
        },
      },
    });
  scenes.rich = await start(10_000_000_000n);
  scenes.poor = await start(leftNano);
});
afterAll(async () => {
  for (const scene of Object.values(scenes)) await scene.end();
});

async function post(path: string, body: object, options = asOwner): Promise<unknown> {
  const response = await sceneOf("rich").gateway.post(path, body, options);
  expect([path, response.status]).toEqual([path, 200]);
  return response.json();
}

/** Who cannot pay, the reason that a refusal names, and how the request is paid for. */
const payers: readonly (readonly [
  who: string,
  reason: string,
  scene: keyof typeof scenes,
  secret: () => Promise<string>,
])[] = [
  [
    "a key at its limit",
    "key_limit_reached",
    "rich",
    async () => String(at(await post("/keys", { name: "k", limit: leftUsd }), "key")),
  ],
  [
    "a child of a key at its limit",
    "key_limit_reached",
    "rich",
    async () => {
      const parent = String(
        at(await post("/keys", { name: "parent", limit: leftUsd, allowed_endpoints: null }), "key"),
      );
      return String(at(await post("/key/children", { name: "child" }, bearer(parent)), "key"));
    },
  ],
  [
    "a key with a budget that blocks",
    "budget_reached",
    "rich",
    async () => {
      const key = await post("/keys", { name: "k" });
      await post("/budgets", {
        name: "b",
        action: "block",
        scope: "key",
        subject: at(key, "data.id"),
        limit: leftUsd,
      });
      return String(at(key, "key"));
    },
  ],
  ["a workspace without credits", "balance_too_low", "poor", () => Promise.resolve(testLlmKey)],
];

const text = "word ".repeat(400);
const messages = [{ role: "user", content: text }];
const openaiError = {
  error: {
    code: "insufficient_balance",
    type: "payment",
    param: null,
    metadata: { type: "payment" },
  },
};

/** The requests, with the shape that each surface's errors have. */
const requests: readonly (readonly [path: string, body: () => object, shape: object])[] = [
  [
    "/embeddings",
    () => ({ model: "acme/embed", input: text }),
    {
      error: { code: "insufficient_balance", metadata: { type: "insufficient_credits" } },
    },
  ],
  ["/rerank", () => ({ model: "acme/rerank", query: "q", documents: [text] }), openaiError],
  ["/moderations", () => ({ model: "acme/llama-guard-4", input: text }), openaiError],
  ["/ocr/extract", () => ({ image: picture.toString("base64") }), openaiError],
  ["/chat/completions", () => ({ model: "acme/large", messages }), openaiError],
  ["/chat/completions", () => ({ model: "acme/large", messages, stream: true }), openaiError],
  [
    "/messages",
    () => ({ model: "acme/large", messages, max_tokens: 100 }),
    {
      type: "error",
      error: { type: "billing_error", code: "insufficient_balance", metadata: { type: "payment" } },
    },
  ],
  ["/responses", () => ({ model: "acme/large", input: text }), openaiError],
  ["/responses", () => ({ model: "acme/large", input: text, stream: true }), openaiError],
  ["/responses", () => ({ model: "acme/large", input: text, background: true }), openaiError],
  [
    "/responses",
    () => ({ model: "acme/large", input: text, background: true, stream: true }),
    openaiError,
  ],
  [
    "/responses",
    () => ({
      model: "acme/large",
      input: text,
      background: true,
      store: true,
      max_output_tokens: 16,
    }),
    openaiError,
  ],
  ["/responses/compact", () => ({ model: "acme/large", input: text }), openaiError],
];

let picture: Buffer;
beforeAll(async () => {
  const page = drawPage({
    width: 640,
    height: 160,
    texts: [{ text: "A scanned page", x: 40, y: 90, size: 32 }],
  });
  picture = Buffer.from(await encodePicture.png(page));
});

describe.each(payers)("%s", (_, reason, sceneName, secretOf) => {
  test.each(requests)("%s returns 402 before any provider is asked", async (path, body, shape) => {
    const { gateway, acme } = sceneOf(sceneName);
    const asked = acme.requests.length;
    const response = await gateway.post(path, body(), bearer(await secretOf()));
    const answer: unknown = await response.json();
    expect([response.status, response.headers.get("content-type"), acme.requests.length]).toEqual([
      402,
      "application/json",
      asked,
    ]);
    expect(answer).toMatchObject(shape);
    expect(at(answer, "error.metadata")).toMatchObject({ reason, fault: "client", held_usd: 0 });
    expect(Number(at(answer, "error.metadata.worst_case_usd"))).toBeGreaterThan(leftUsd);
    const hasOutput = path !== "/embeddings" && path !== "/rerank";
    expect(String(at(answer, "error.message")).includes("affords")).toBe(hasOutput);
    // Nothing that is held stands in the way, so that coming again would not help.
    expect([response.headers.get("retry-after"), response.headers.get("x-should-retry")]).toEqual([
      null,
      "false",
    ]);
    expect([gateway.app.ledger.openHoldCount, await storedCount(sceneName)]).toEqual([0, 0]);
  });

  test("decisions are free and never return 402", async () => {
    const { gateway, acme } = sceneOf(sceneName);
    acme.script(json({ answers: [{ id: "q", probability: 0.5 }], usage: { input_tokens: 5 } }));
    const question = {
      model: "acme/decide",
      state: text,
      questions: [{ id: "q", type: "boolean", text: "So?" }],
    };
    const response = await gateway.post("/decisions", question, bearer(await secretOf()));
    expect(response.status).not.toBe(402);
  });
});

async function storedCount(sceneName: keyof typeof scenes): Promise<number> {
  const { database } = sceneOf(sceneName).gateway.app.storage;
  const rows = await withTables<{ stored_responses: { id: string } }>(database)
    .selectFrom("stored_responses")
    .select("id")
    .execute();
  return rows.length;
}

test("with enough credits left the same requests are not refused", async () => {
  const { gateway, acme } = sceneOf("rich");
  acme.script(json(said("So.")));
  for (const [path, body] of requests) {
    const response = await gateway.post(
      path,
      { ...body(), ...("background" in body() && { background: false }) },
      bearer(testLlmKey),
    );
    await response.text();
    expect([path, response.status === 402]).toEqual([path, false]);
  }
});
