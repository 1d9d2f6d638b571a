import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import { startScene, type Scene } from "../scenarios/support/scene.ts";
import { provider, testManagementKey } from "../../support/gateway.ts";
import {
  acmePrice,
  answering,
  said,
  startSurfaceScene,
  userText,
} from "./support/surface-scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startSurfaceScene({
    more: [
      { id: "google/shieldgemma-9b", upstream_model: "shieldgemma-9b", pricing: acmePrice },
      {
        id: "openai/gpt-oss-safeguard-20b",
        pricing: acmePrice,
        reasoning: { levels: ["low", "medium", "high"] },
      },
      { id: "acme/chatter", pricing: acmePrice },
    ],
  });
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

async function moderate(changes: Record<string, unknown> = {}, name = "acme") {
  const response = await scene.gateway.post(
    "/moderations",
    { model: "acme/llama-guard-4", input: "text", ...changes },
    {
      headers: { "x-service-provider": name },
    },
  );
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

describe("a guard model called through chat", () => {
  test("judges each text separately, charged as one request", async () => {
    scene.acme.script(
      answering((body) =>
        said(
          userText(body) === "kill"
            ? "unsafe\nS1"
            : userText(body) === "slander"
              ? "unsafe\nS5"
              : "safe",
        ),
      ),
    );
    const reply = await moderate({ input: ["kill", { type: "text", text: "hello" }, "slander"] });
    expect(reply.body).toMatchObject({
      id: `modr-${reply.headers.get("x-service-trace-id")}`,
      model: "acme/llama-guard-4",
      results: [
        {
          flagged: true,
          categories: { violence: true, hate: false },
          category_scores: { violence: 1, hate: 0 },
          category_applied_input_types: { violence: ["text"], hate: ["text"] },
          guard_categories: ["S1"],
        },
        { flagged: false, categories: { violence: false }, guard_categories: [] },
        { flagged: true, categories: { violence: false, hate: false }, guard_categories: ["S5"] },
      ],
      usage: { prompt_tokens: 30, completion_tokens: 6, total_tokens: 36, cost: 0.000042 },
    });
    expect(await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"))).toMatchObject({
      promptTokens: 30,
      completionTokens: 6,
      costNano: 42_000n,
    });
    expect(scene.acme.requests.at(-1)?.json()).toMatchObject({
      model: "llama-guard-4",
      temperature: 0,
      max_tokens: 64,
    });
  });

  test("accepts 32 texts and sends at most eight in parallel", async () => {
    let open = 0;
    let most = 0;
    scene.acme.script((request) => {
      open += 1;
      most = Math.max(most, open);
      void request.answered.then(() => (open -= 1));
      return answering(() => said("safe"))(request);
    });
    const { body } = await moderate({
      input: Array.from({ length: 32 }, (_, index) => `text ${index}`),
    });
    expect([(body["results"] as unknown[]).length, most <= 8, most > 1]).toEqual([32, true, true]);
  });

  test("of another family is asked in that family's format, with four policies per text", async () => {
    const before = scene.acme.requests.length;
    scene.acme.script(
      answering((body) =>
        said(
          JSON.stringify(body["chat_template_kwargs"]).includes("No Hate Speech") ? "Yes" : "No",
        ),
      ),
    );
    const { body } = await moderate({ model: "google/shieldgemma-9b", input: ["a", "b"] });
    expect(at(body, "results.1")).toMatchObject({
      flagged: true,
      categories: { hate: true, harassment: false },
      guard_categories: ["Hate Speech"],
    });
    expect(scene.acme.requests.length - before).toBe(8);
  });

  test("that reasons is sent a low reasoning effort in its provider's format", async () => {
    scene.acme.script(
      answering(() => said('{"violation": 1, "policy_category": ["self-harm/intent"]}')),
    );
    const { body } = await moderate({ model: "openai/gpt-oss-safeguard-20b" });
    expect(at(body, "results.0")).toMatchObject({
      categories: { "self-harm/intent": true },
      guard_categories: ["self-harm/intent"],
    });
    expect(scene.acme.requests.at(-1)?.json()).toMatchObject({ reasoning_effort: "low" });
  });

  test("with an unreadable verdict returns 502", async () => {
    scene.acme.script(answering((body) => said(userText(body) === "odd" ? "I am sorry" : "safe")));
    const reply = await moderate({ input: ["even", "odd"] });
    expect(reply).toMatchObject({
      status: 502,
      body: { error: { code: "upstream_invalid_response", metadata: { type: "upstream_error" } } },
    });
  });
});

test("OpenAI's moderations are converted to the documented response", async () => {
  scene.backup.script(
    answering(() => ({
      id: "modr-1",
      results: [
        {
          flagged: true,
          categories: { hate: true, "sexual/minors": false },
          category_scores: { hate: 0.93, "sexual/minors": 0.01 },
        },
      ],
    })),
  );
  const { body } = await moderate({}, "backup");
  expect(body["results"]).toMatchObject([
    {
      flagged: true,
      category_scores: { hate: 1, "sexual/minors": 0, violence: 0 },
      guard_categories: ["hate"],
    },
  ]);
  expect(scene.backup.requests.at(-1)?.json()).toEqual({ model: "llama-guard-4", input: ["text"] });
});

test("a guard model with a custom name can use the response format of a guard family", async () => {
  const plain = await startScene({
    providers: (first) => [
      provider({
        id: "acme",
        base_url: first,
        api_key: "k",
        dialect: { moderations: "guard-chat" },
        models: [{ id: "acme/guard", surface: "moderations", pricing: acmePrice }],
      }),
    ],
  });
  for (const [reply, flagged, labels] of [
    ["safe", false, []],
    ["unsafe\nS1", true, ["S1"]],
    ['{"violation": 1, "policy_category": ["hate"]}', true, ["hate"]],
  ] as const) {
    plain.acme.script(answering(() => said(reply)));
    const response = await plain.gateway.post("/moderations", { input: "text" });
    expect(await response.json()).toMatchObject({
      model: "acme/guard",
      results: [{ flagged, guard_categories: labels }],
    });
  }
  await plain.end();
});

test("a guard model listed as a chat model is called through its provider's chat endpoint", async () => {
  const plain = await startScene({
    providers: (first) => [
      provider({
        id: "acme",
        base_url: first,
        api_key: "k",
        models: [{ id: "meta-llama/llama-guard-3-8b", pricing: acmePrice }],
      }),
    ],
  });
  plain.acme.script(answering(() => said("\n\nunsafe\nS10")));
  const response = await plain.gateway.post("/moderations", { input: "text" });
  expect(await response.json()).toMatchObject({
    model: "meta-llama/llama-guard-3-8b",
    results: [{ categories: { hate: true } }],
  });
  expect(plain.acme.requests.map(({ path }) => path)).toEqual(["/v1/chat/completions"]);
  await plain.end();
});

describe("the default moderation model", () => {
  test.each([undefined, "omni-moderation-latest", "text-moderation-stable"])(
    "is used for model %p",
    async (model) => {
      scene.acme.script(answering(() => said('{"violation": 0}')));
      const reply = await moderate({ model });
      expect([reply.status, reply.headers.get("x-service-model")]).toEqual([
        200,
        "openai/gpt-oss-safeguard-20b",
      ]);
    },
  );

  test("is a guard that the workspace's own provider key reaches, at no charge", async () => {
    const keyless = await startScene({
      providers: (first) => [
        provider({
          id: "acme",
          base_url: first,
          models: [{ id: "meta-llama/llama-guard-3-8b", pricing: acmePrice }],
        }),
      ],
    });
    keyless.acme.script(answering(() => said("safe")));
    const moderateThere = () => keyless.gateway.post("/moderations", { input: ["a", "b"] });
    expect((await moderateThere()).status).toBe(404);
    const added = await keyless.gateway.post(
      "/auth/byok",
      { provider_id: "acme", api_key: "sk-own-key-number-one" },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    );
    expect(added.ok).toBe(true);
    const response = await moderateThere();
    expect([
      response.status,
      response.headers.get("x-service-credential-source"),
      at(await response.json(), "usage.cost"),
    ]).toEqual([200, "own_byok", 0]);
    expect(
      keyless.acme.requests.map(({ headers }) => headers.get("authorization")).slice(-2),
    ).toEqual(["Bearer sk-own-key-number-one", "Bearer sk-own-key-number-one"]);
    await keyless.end();
  });

  test("is one that the key may use", async () => {
    scene.acme.script(answering(() => said("safe")));
    const created = await scene.gateway.post(
      "/keys",
      { name: "narrow", allowed_models: ["acme/llama-guard-4"] },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    );
    const { key } = (await created.json()) as { key: string };
    const response = await scene.gateway.post(
      "/moderations",
      { input: "text" },
      {
        headers: { authorization: `Bearer ${key}`, "x-service-provider": "acme" },
      },
    );
    expect([response.status, response.headers.get("x-service-model")]).toEqual([
      200,
      "acme/llama-guard-4",
    ]);
  });

  test("is unavailable with 404 when no guard model can be served", async () => {
    const bare = await startScene({
      providers: (first) => [
        provider({
          id: "acme",
          base_url: first,
          api_key: "k",
          models: [{ id: "acme/large", pricing: acmePrice }],
        }),
      ],
    });
    const response = await bare.gateway.post("/moderations", { input: "text" });
    expect([response.status, at(await response.json(), "error.code")]).toEqual([
      404,
      "model_unavailable",
    ]);
    await bare.end();
  });
});

test.each<[string, Record<string, unknown>, number, string]>([
  ["33 texts", { input: Array.from({ length: 33 }, () => "t") }, 400, "invalid_request"],
  ["a text that is too long", { input: "x".repeat(32_001) }, 400, "invalid_request"],
  ["no input", { input: undefined }, 400, "invalid_request"],
  [
    "an image",
    { input: [{ type: "image_url", image_url: { url: "data:," } }] },
    400,
    "invalid_request",
  ],
  [
    "a model that is not a guard",
    { model: "acme/chatter" },
    400,
    "model_not_moderation_compatible",
  ],
  ["an embedding model", { model: "acme/embed" }, 400, "model_not_moderation_compatible"],
  ["an unknown model", { model: "acme/none" }, 404, "model_unavailable"],
])("returns an error for %s", async (_, changes, status, code) => {
  expect(await moderate(changes)).toMatchObject({ status, body: { error: { code } } });
});
