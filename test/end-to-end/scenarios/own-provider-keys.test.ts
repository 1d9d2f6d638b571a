import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { FakeClock } from "../../support/fake-clock.ts";
import { forgetFailuresOf, testManagementKey } from "../../support/gateway.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "../api/at.ts";
import { chatRequest } from "../api/chat-request.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { strangersKey } from "../api/two-workspaces.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import {
  limitedLlmKey,
  startProviderKeys,
  strangersLlmKey,
  type ProviderKeyScene,
} from "./support/provider-keys.ts";

const own = "sk-own-key-number-one";
const second = "sk-own-key-number-two";
const solo = { model: "solo/large" };
const onlyAcme = { provider: { only: ["acme"] } };

const clock = new FakeClock();
/** The scene of most tests, each of which begins without keys, and an hour after the one before. */
let scene: ProviderKeyScene;
beforeAll(async () => {
  scene = await startProviderKeys({ tools: { clock } });
});
beforeEach(async () => {
  clock.advance(3_600_000);
  for (const id of ["acme", "backup", "solo"]) forgetFailuresOf(scene.gateway, id);
  scene.upstream.script(healthyChat);
  for (const secret of [testManagementKey, strangersKey]) await scene.removeKeys(secret);
  scene.keysSent();
});
afterAll(() => scene.stop());

const refused = (status: number, message: string, fields = {}) =>
  json(chatError(message, fields), { status });

async function balanceOf({ gateway }: ProviderKeyScene): Promise<number> {
  return Number(at(await (await gateway.get("/credits")).json(), "balance"));
}

test("a model's routing preview includes the caller's own provider keys", async () => {
  const { add, gateway } = scene;
  const chain = async (id: string): Promise<unknown[]> => {
    const { data } = (await (await gateway.get(`/models/${id}/routing-preview`)).json()) as {
      data: Record<string, unknown>[];
    };
    return data.map(({ provider, reason }) => [provider, String(reason).startsWith("own key")]);
  };
  expect(await chain("solo/large")).toEqual([]);
  await add(own, { provider_id: "solo" });
  await add(own, { provider_id: "backup" });
  expect(await chain("solo/large")).toEqual([["solo", true]]);
  expect(await chain("acme/large")).toEqual([
    ["backup", true],
    ["acme", false],
  ]);
});

for (const stream of [false, true]) {
  const kind = stream ? "streamed" : "whole";

  test(`${kind}: an own provider key is tried first, costs 0 and is recorded`, async () => {
    const { add, chat, keysSent, gateway, show } = scene;
    const balance = await balanceOf(scene);
    const id = await add(own);
    const response = await chat({ stream });
    const text = await response.text();
    expect(response.headers.get("x-service-credential-source")).toBe("own_byok");
    expect(response.headers.get("x-service-provider-chain")).toBe("acme");
    expect(text).toContain('"cost":0');
    expect(keysSent()).toEqual([own]);
    const trace = response.headers.get("x-service-trace-id") ?? "";
    const generation: unknown = await (await gateway.get(`/generation/gen_${trace}`)).json();
    expect(at(generation, "data")).toMatchObject({
      is_byok: true,
      credential_source: "own_byok",
      provider_key_id: id,
      total_cost: 0,
      tokens_prompt: 11,
      tokens_completion: 7,
    });
    expect(await balanceOf(scene)).toBe(balance);
    expect(at(await show(id), "last_used_at")).not.toBeNull();
    await expectSoundBooks(gateway);
  });

  test(`${kind}: another workspace without an own key is served by the platform or refused`, async () => {
    const { add, chat, keysSent } = scene;
    await add(own);
    await add(own, { provider_id: "solo" });
    expect(await errorOf(await chat({ stream }, strangersLlmKey))).toMatchObject({
      status: 402,
      code: "insufficient_balance",
    });
    const keyless = await errorOf(await chat({ stream, ...solo }, strangersLlmKey));
    expect(keyless).toMatchObject({ status: 404, code: "no_upstream" });
    expect(keyless.message).toContain("the gateway has no key of solo. The operator starts it");
    expect(keysSent()).toEqual([]);
    await add(second, {}, strangersKey);
    const response = await chat({ stream }, strangersLlmKey);
    await response.text();
    expect(response.status).toBe(200);
    expect(keysSent()).toEqual([second]);
  });

  test.each([
    [401, "Incorrect API key provided"],
    [402, "Payment needed"],
    [429, "Slow down"],
    [400, "API key not valid. Please pass a valid API key."],
  ])(
    `${kind}: the next own key is tried after %p %s, then the platform's`,
    async (status, message) => {
      const { add, chat, keysSent, upstream } = scene;
      await add(own);
      await add(second);
      upstream.enqueue(refused(status, message));
      const response = await chat({ stream, ...onlyAcme });
      await response.text();
      expect(response.status).toBe(200);
      expect(response.headers.get("x-service-credential-source")).toBe("own_byok");
      expect(response.headers.get("x-service-provider-chain")).toBe("acme->acme");
      expect(keysSent()).toEqual([own, second]);
      // What was just refused goes last: the next request begins with the other one, and the
      // platform comes before it.
      upstream.enqueue(refused(status, message));
      const next = await chat({ stream, ...onlyAcme });
      await next.text();
      expect(next.headers.get("x-service-credential-source")).toBe("platform");
      expect(keysSent()).toEqual([second, "platform-key-of-acme"]);
      await expectSoundBooks(scene.gateway);
    },
  );
}

test("after an outage another credential is tried, but not another key of the same account", async () => {
  const { add, chat, keysSent, upstream } = scene;
  await add(own);
  await add(second);
  upstream.enqueue(refused(500, "down"));
  expect((await chat(onlyAcme)).headers.get("x-service-credential-source")).toBe("platform");
  expect(keysSent()).toEqual([own, "platform-key-of-acme"]);
});

test("a refused key is tried again after a minute, or as soon as it is rotated", async () => {
  const { add, chat, keysSent, upstream, manage, show } = scene;
  const id = await add(own);
  upstream.enqueue(refused(401, "no"));
  await chat(onlyAcme);
  await chat(onlyAcme);
  expect(keysSent()).toEqual([own, "platform-key-of-acme", "platform-key-of-acme"]);
  expect(await show(id)).toMatchObject({ status: "refused" });
  clock.advance(60_001);
  await chat(onlyAcme);
  expect(keysSent()).toEqual([own]);
  expect(await show(id)).toMatchObject({ status: "active" });
  upstream.enqueue(refused(401, "no"));
  await chat(onlyAcme);
  await manage("PATCH", `/auth/byok/keys/${id}`, { api_key: second });
  await chat(onlyAcme);
  expect(keysSent()).toEqual([own, "platform-key-of-acme", second]);
});

test("with allow_fallbacks: false only the own key is tried", async () => {
  const { add, chat, keysSent, upstream } = scene;
  await add(own);
  upstream.enqueue(refused(401, "bad key"));
  const error = await errorOf(await chat({ provider: { allow_fallbacks: false } }));
  expect(error).toMatchObject({ status: 502, code: "upstream_401", type: "upstream_error" });
  expect(keysSent()).toEqual([own]);
});

test("the provider order is kept, and each provider is tried with the own key first", async () => {
  const { add, chat, keysSent, upstream } = scene;
  await add(own, { provider_id: "backup" });
  upstream.script(refused(500, "down"));
  await chat({ provider: { order: ["acme", "backup"] } });
  expect(keysSent()).toEqual(["platform-key-of-acme", own, "platform-key-of-backup"]);
});

test("a refused own key returns upstream_401 with the provider's message and the key redacted", async () => {
  const { add, chat, upstream, gateway } = scene;
  await add(own, { provider_id: "solo" });
  upstream.enqueue(refused(401, `Incorrect API key provided: ${own}. See your account.`));
  const error = await errorOf(await chat(solo));
  expect(error).toMatchObject({
    status: 502,
    code: "upstream_401",
    type: "upstream_error",
    metadata: {
      upstream_backend: "solo",
      upstream_status: 401,
      upstream_message: "Incorrect API key provided: [credential]. See your account.",
    },
  });
  expect(error.message).toStartWith("The provider did not accept your own key");
  expect(gateway.logLines.join("\n")).not.toContain(own);
});

test.each([
  [402, "Insufficient Balance", {}],
  [429, "You exceeded your current quota", { code: "insufficient_quota" }],
  [400, "Your credit balance is too low to access the Anthropic API.", {}],
  [403, "Your account has insufficient funds.", {}],
])(
  "a billing failure of an own key returns 402 with the provider's message: %p %s",
  async (status, message, fields) => {
    const { add, chat, upstream } = scene;
    await add(own, { provider_id: "solo" });
    upstream.enqueue(refused(status, message, fields));
    expect(await errorOf(await chat(solo))).toMatchObject({
      status: 402,
      code: "upstream_402",
      type: "upstream_error",
      metadata: {
        type: "upstream_error",
        upstream_backend: "solo",
        upstream_status: status,
        upstream_message: message,
      },
    });
  },
);

test("Google's rate limit message is not treated as a billing failure", async () => {
  const { add, chat, upstream } = scene;
  await add(own, { provider_id: "solo" });
  upstream.enqueue(
    refused(429, "You exceeded your current quota, please check your plan and billing details."),
  );
  expect(await errorOf(await chat(solo))).toMatchObject({
    status: 429,
    code: "rate_limit_exceeded",
  });
});

test("billing failures of the platform's credential return 502 upstream_error", async () => {
  const { chat, upstream } = scene;
  upstream.enqueue(refused(402, "Insufficient Balance"));
  expect(await errorOf(await chat({ provider: { only: ["acme"] } }))).toMatchObject({
    status: 502,
    code: "upstream_error",
  });
});

test("a disabled or deleted key is no longer used", async () => {
  const { add, chat, keysSent, manage } = scene;
  const id = await add(own, { provider_id: "solo" });
  expect((await chat(solo)).status).toBe(200);
  await manage("PATCH", `/auth/byok/keys/${id}`, { enabled: false });
  const error = await errorOf(await chat(solo));
  expect(error).toMatchObject({ status: 404, code: "no_upstream" });
  expect(error.message).toContain("disabled or its quota is used up");
  await manage("PATCH", `/auth/byok/keys/${id}`, { enabled: true });
  expect((await chat(solo)).status).toBe(200);
  await manage("DELETE", `/auth/byok/keys/${id}`);
  expect((await chat(solo)).status).toBe(404);
  expect(keysSent()).toEqual([own, own]);
});

test("models without a platform credential are listed for workspaces with an own key", async () => {
  const { add, manage, gateway, chat } = scene;
  const listed = async (secret: string): Promise<unknown[]> => {
    const headers: Record<string, string> =
      secret === "" ? {} : { authorization: `Bearer ${secret}` };
    const response = await fetch(`${gateway.baseUrl}/models`, { headers });
    return (at(await response.json(), "data") as unknown[]).map((model) => at(model, "id"));
  };
  const id = await add(own, { provider_id: "solo" });
  expect(await listed(limitedLlmKey)).toEqual(
    expect.arrayContaining(["acme/large", "solo/large", "solo/bare"]),
  );
  for (const other of ["", strangersLlmKey])
    expect(await listed(other)).not.toContain("solo/large");
  const object: unknown = await (await gateway.get("/models/solo/large")).json();
  expect(at(object, "pricing")).toMatchObject({
    billing: "byok",
    input_per_1m: 0,
    list_pricing: { input_per_1m: 1000, output_per_1m: 1000 },
  });
  // What has no known price costs the caller nothing here and counts nothing.
  expect((await chat({ model: "solo/bare" })).status).toBe(200);
  await manage("PATCH", `/auth/byok/keys/${id}`, { enabled: false });
  expect(await listed(limitedLlmKey)).not.toContain("solo/large");
});

test("without credits an own key serves, and the platform does not replace it", async () => {
  const { add, chat, keysSent, upstream, gateway, stop } = await startProviderKeys({
    creditsNanoUsd: 0n,
  });
  try {
    await add(own);
    expect((await chat()).status).toBe(200);
    upstream.enqueue(refused(401, "no"));
    expect(await errorOf(await chat())).toMatchObject({ status: 502, code: "upstream_401" });
    expect(keysSent()).toEqual([own, own]);
    await expectSoundBooks(gateway);
  } finally {
    await stop();
  }
});

test("Responses usage has is_byok for an own key, whole and streamed", async () => {
  const { add, gateway } = scene;
  const ask = async (stream: boolean): Promise<string> =>
    (await gateway.post("/responses", { model: "acme/large", input: "Hello", stream })).text();
  expect(await ask(false)).toContain('"is_byok":false');
  await add(own);
  for (const stream of [false, true]) {
    const text = await ask(stream);
    expect(text).toContain('"is_byok":true');
    expect(text).not.toContain('"is_byok":false');
  }
});

test("the routing explanation has the credential of each candidate", async () => {
  const { add, gateway, keysSent } = scene;
  await add(own);
  const explained: unknown = await (await gateway.post("/routing/explain", chatRequest())).json();
  const candidates = at(explained, "candidates") as Record<string, unknown>[];
  expect(candidates[0]).toMatchObject({
    provider: "acme",
    credential_source: "own_byok",
    estimated_cost_usd: 0,
  });
  expect(
    candidates
      .map(({ provider, credential_source: source }) => `${String(provider)} ${String(source)}`)
      .sort(),
  ).toEqual(["acme own_byok", "acme platform", "backup platform"]);
  expect(keysSent()).toEqual([]);
});

test("embeddings use own provider keys too, at no cost", async () => {
  const { add, gateway, keysSent, upstream } = scene;
  await add(own, { provider_id: "solo" });
  const data = [{ object: "embedding", index: 0, embedding: [0.25, 0.5] }];
  upstream.enqueue(
    json({ object: "list", data, model: "vectors", usage: { prompt_tokens: 3, total_tokens: 3 } }),
  );
  const response = await gateway.post("/embeddings", { model: "solo/vectors", input: "Hello" });
  expect(response.headers.get("x-service-credential-source")).toBe("own_byok");
  expect(await response.json()).toMatchObject({ data, usage: { prompt_tokens: 3, cost: 0 } });
  expect(keysSent()).toEqual([own]);
  await expectSoundBooks(gateway);
});
