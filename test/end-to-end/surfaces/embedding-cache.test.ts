import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { startTwoWorkspaces } from "../api/two-workspaces.ts";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRows } from "../scenarios/support/settled-rows.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { json } from "../../support/upstream/steps.ts";
import { openaiVectors, startSurfaceScene } from "./support/surface-scene.ts";

let scene: Scene;
beforeAll(async () => {
  // The answer to one of a thousand requests comes when the gateway has read all of them.
  scene = await startSurfaceScene({ withBackup: false, timeouts: {} });
});
beforeEach(() => scene.acme.script(openaiVectors));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

/** A text that no other test has asked for. */
let texts = 0;
const newText = (): string => `text ${(texts += 1)}`;

async function embed(
  input: string,
  headers: Record<string, string> = {},
  changes: Record<string, unknown> = {},
) {
  const response = await scene.gateway.post(
    "/embeddings",
    { model: "acme/embed", input, ...changes },
    { headers },
  );
  return {
    status: response.status,
    headers: response.headers,
    cache: response.headers.get("x-service-cache-status"),
    body: (await response.json()) as Record<string, unknown>,
  };
}

/** Requests that reached the provider, and settlements, while something was done. */
async function during(work: () => Promise<unknown>): Promise<{ asked: number; settled: number }> {
  const asked = scene.acme.requests.length;
  const settled = (await settledRows(scene.gateway)).length;
  await work();
  return {
    asked: scene.acme.requests.length - asked,
    settled: (await settledRows(scene.gateway)).length - settled,
  };
}

test("an identical request is answered from the cache, with its own id and no charge", async () => {
  const input = newText();
  const first = await embed(input);
  let second = first;
  expect(await during(async () => void (second = await embed(input)))).toEqual({
    asked: 0,
    settled: 0,
  });
  expect([first.cache, second.cache]).toEqual(["MISS", "HIT"]);
  expect(second.body).toEqual({
    ...first.body,
    id: `embd-${second.headers.get("x-service-trace-id")}`,
    usage: { prompt_tokens: 1, total_tokens: 1, cost: 0 },
  });
  expect(first.body["usage"]).toEqual({ prompt_tokens: 1, total_tokens: 1, cost: 0.000001 });
  expect([
    second.headers.get("x-service-model"),
    second.headers.get("x-service-provider-chain"),
  ]).toEqual(["acme/embed", null]);
});

test("gw-skip-cache neither reads nor writes the cache", async () => {
  const input = newText();
  const skip = { "gw-skip-cache": "true" };
  expect([
    (await embed(input, skip)).cache,
    (await embed(input)).cache,
    (await embed(input, skip)).cache,
  ]).toEqual(["BYPASS", "MISS", "BYPASS"]);
});

test("gw-cache-ttl of 0 bypasses the cache, and an invalid one returns 400", async () => {
  expect((await embed(newText(), { "gw-cache-ttl": "0" })).cache).toBe("BYPASS");
  for (const ttl of ["soon", "-1", "1.5", "1e3", "0x10"]) {
    const refused = await embed(newText(), { "gw-cache-ttl": ttl });
    expect([
      refused.status,
      at(refused.body, "error.code"),
      at(refused.body, "error.param"),
    ]).toEqual([400, "invalid_request_error", "gw-cache-ttl"]);
  }
});

test("gw-cache-key replaces the input in the cache key", async () => {
  const key = { "gw-cache-key": newText() };
  const first = await embed(newText(), key);
  const second = await embed(newText(), key);
  expect([first.cache, second.cache]).toEqual(["MISS", "HIT"]);
  expect(second.body["data"]).toEqual(first.body["data"]);
  expect((await embed(newText(), key, { dimensions: 3 })).cache).toBe("MISS");
});

test("another format, other dimensions or another input type miss the cache", async () => {
  const input = newText();
  await embed(input);
  for (const changes of [
    { encoding_format: "base64" },
    { dimensions: 2 },
    { input_type: "query" },
  ]) {
    expect((await embed(input, {}, changes)).cache).toBe("MISS");
  }
});

test("a failed request is not cached", async () => {
  const input = newText();
  scene.acme.script(json({ error: { message: "down" } }, { status: 503 }));
  expect((await embed(input)).status).toBe(502);
  scene.acme.script(openaiVectors);
  expect([(await embed(input)).cache, (await embed(input)).cache]).toEqual(["MISS", "HIT"]);
});

test("1,000 parallel identical requests make one upstream request and one charge", async () => {
  const input = newText();
  const gate = scene.acme.gate();
  scene.acme.script((request) => [gate, ...openaiVectors(request)]);
  const before = scene.acme.requests.length;
  let replies: Awaited<ReturnType<typeof embed>>[] = [];
  const counts = await during(async () => {
    const all = Promise.all(Array.from({ length: 1_000 }, () => embed(input)));
    await scene.acme.waitForRequest(before + 1);
    gate.open();
    replies = await all;
  });
  expect(counts).toEqual({ asked: 1, settled: 1 });
  const byStatus = Map.groupBy(replies, ({ cache }) => cache);
  expect([byStatus.get("MISS")?.length, byStatus.get("HIT")?.length]).toEqual([1, 999]);
  expect(new Set(replies.map(({ body }) => JSON.stringify(body["data"]))).size).toBe(1);
}, 240_000);

test("when the client of the running request leaves, the next identical one asks upstream", async () => {
  const input = newText();
  const gate = scene.acme.gate();
  scene.acme.enqueue([gate]);
  const before = scene.acme.requests.length;
  const leaving = new AbortController();
  const first = scene.gateway.post(
    "/embeddings",
    { model: "acme/embed", input },
    { signal: leaving.signal },
  );
  const upstream = await scene.acme.waitForRequest(before + 1);
  const second = embed(input);
  leaving.abort();
  await expect(first).rejects.toThrow();
  await upstream.aborted;
  expect((await second).status).toBe(200);
  expect(scene.acme.requests.length).toBe(before + 2);
});

test("a key without access to the model is refused even if the response is cached", async () => {
  const input = newText();
  await embed(input);
  const created = await fetch(`${scene.gateway.baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "narrow", allowed_models: ["acme/large"] }),
  });
  const { key } = (await created.json()) as { key: string };
  const refused = await embed(input, { authorization: `Bearer ${key}` });
  expect([refused.status, at(refused.body, "error.code"), refused.cache]).toEqual([
    403,
    "forbidden",
    null,
  ]);
});

test("the cache of one workspace is not shared with another", async () => {
  const both = await startTwoWorkspaces(async () => undefined, { sandbox: true });
  const ask = async (asOwner: typeof both.own) => {
    const { key } = (await (await asOwner("POST", "/keys", { name: "inference" })).json()) as {
      key: string;
    };
    const response = await both.as(key)("POST", "/embeddings", {
      model: "sandbox/embed:free",
      input: "secret",
    });
    return [response.status, response.headers.get("x-service-cache-status")];
  };
  expect([await ask(both.own), await ask(both.stranger), await ask(both.own)]).toEqual([
    [200, "MISS"],
    [200, "MISS"],
    [200, "HIT"],
  ]);
  await both.stop();
});
