import { afterEach, describe, expect, test } from "bun:test";
import { at, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { engines } from "../api/two-workspaces.ts";
import { chatRequest } from "../api/chat-request.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { body, head } from "../../support/upstream/steps.ts";
import { eventually } from "./support/eventually.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import {
  limitedLlmKey,
  startProviderKeys,
  type ProviderKeyScene,
} from "./support/provider-keys.ts";
import { whileRefusing } from "./support/refusing-database.ts";

const own = "sk-own-key-number-one";
const costUsd = 0.018;
const solo = { model: "solo/large" };
/** A request that may cost 0.028: its input is estimated at 21 tokens. */
const short = { ...solo, max_tokens: 7 };
const onlyAcme = { provider: { only: ["acme"] } };

let scene: ProviderKeyScene | undefined;
afterEach(async () => {
  await scene?.stop();
  scene = undefined;
});
const start = async (
  options?: Parameters<typeof startProviderKeys>[0],
): Promise<ProviderKeyScene> => (scene = await startProviderKeys(options));

describe.each(engines)("usage of own provider keys, on %s", (_, freshUrl) => {
  const begin = async (limitedKey = {}): Promise<ProviderKeyScene> =>
    start({ limitedKey, storageUrl: await freshUrl() });

  test("a quota counts list prices, refuses requests above it and survives a restart", async () => {
    const { add, chat, keysSent, show, gateway, restart, manage } = await begin();
    const id = await add(own, {
      provider_id: "solo",
      quota: { limit: 2.5 * costUsd, reset: "daily" },
    });
    for (const used of [costUsd, 2 * costUsd]) {
      expect((await chat(solo)).status).toBe(200);
      expect(await show(id)).toMatchObject({ quota: { used, limit: 0.045 }, status: "active" });
    }
    await gateway.app.storage.commits.flush();
    await restart();
    expect(await show(id)).toMatchObject({ quota: { used: 2 * costUsd } });
    // A quota never cuts a request short: the last one may go beyond it by what it uses.
    expect((await chat(solo)).status).toBe(200);
    expect(await show(id)).toMatchObject({ quota: { used: 0.054 }, status: "exhausted" });
    expect((await chat(solo)).status).toBe(404);
    expect(keysSent().length).toBe(3);
    await manage("PATCH", `/auth/byok/keys/${id}`, { quota: { limit: 1 } });
    expect((await chat(solo)).status).toBe(200);
    await expectSoundBooks((scene as ProviderKeyScene).gateway);
  }, 240_000);

  test("of many parallel requests against a quota for one, one is served", async () => {
    const { add, chat, keysSent, show } = await begin();
    const id = await add(own, { provider_id: "solo", quota: { limit: costUsd / 2 } });
    const answers = await Promise.all(Array.from({ length: 20 }, () => chat(solo)));
    expect(answers.map(({ status }) => status).sort()).toEqual([
      200,
      ...Array.from({ length: 19 }, () => 404),
    ]);
    expect(keysSent()).toEqual([own]);
    expect(await show(id)).toMatchObject({ quota: { used: costUsd } });
  }, 240_000);

  test("with an exhausted quota the platform serves at its usual charge", async () => {
    const { add, chat, keysSent } = await begin();
    await add(own, { quota: { limit: 0 } });
    const response = await chat(onlyAcme);
    expect(response.headers.get("x-service-credential-source")).toBe("platform");
    expect(at(await response.json(), "usage.cost")).toBe(costUsd);
    expect(keysSent()).toEqual(["platform-key-of-acme"]);
  }, 240_000);

  test("a key's limit counts own provider keys at list price when it includes them", async () => {
    const { add, chat, keysSent, gateway, restart, manage } = await begin({
      limitNanoUsd: 50_000_000n,
      includeByokInLimit: true,
    });
    await add(own, { provider_id: "solo" });
    const hash = async (): Promise<unknown> => {
      const keys = at(await (await manage("GET", "/keys")).json(), "data") as unknown[];
      return keys.find((key) => at(key, "include_byok_in_limit") === true);
    };
    expect((await chat(short, limitedLlmKey)).status).toBe(200);
    expect(await hash()).toMatchObject({ limit_remaining: 0.032, real_usage: 0 });
    await gateway.app.storage.commits.flush();
    await restart();
    expect(await hash()).toMatchObject({ limit_remaining: 0.032, real_usage: 0 });
    expect((await chat(short, limitedLlmKey)).status).toBe(200);
    expect(await errorOf(await chat(short, limitedLlmKey))).toMatchObject({
      status: 402,
      metadata: { reason: "key_limit_reached" },
    });
    expect(keysSent().length).toBe(2);
    await manage("PATCH", `/keys/${textAt(await hash(), "hash")}`, {
      include_byok_in_limit: false,
    });
    expect((await chat(short, limitedLlmKey)).status).toBe(200);
    await expectSoundBooks((scene as ProviderKeyScene).gateway);
  }, 240_000);

  test("of many parallel requests against a limit for one that includes own keys, one is served", async () => {
    const { add, chat, keysSent, gateway } = await begin({
      limitNanoUsd: 30_000_000n,
      includeByokInLimit: true,
    });
    await add(own, { provider_id: "solo" });
    const answers = await Promise.all(Array.from({ length: 20 }, () => chat(short, limitedLlmKey)));
    expect(answers.map(({ status }) => status).sort()).toEqual([
      200,
      ...Array.from({ length: 19 }, () => 402),
    ]);
    expect(keysSent()).toEqual([own]);
    await expectSoundBooks(gateway);
  }, 240_000);

  test("a limit that excludes own provider keys neither counts nor blocks them", async () => {
    const { add, chat, keysSent } = await begin({ limitNanoUsd: 1n });
    await add(own);
    for (let request = 0; request < 3; request += 1)
      expect((await chat({}, limitedLlmKey)).status).toBe(200);
    expect(keysSent()).toEqual([own, own, own]);
  }, 240_000);
});

test("usage that the database failed to write is not counted, and the next request can use it", async () => {
  const { add, chat, show, gateway } = await start();
  const id = await add(own, { provider_id: "solo", quota: { limit: costUsd / 2 } });
  await whileRefusing(gateway, async () => {
    expect(await errorOf(await chat(solo))).toMatchObject({
      status: 503,
      code: "service_unavailable",
    });
  });
  expect(await show(id)).toMatchObject({ quota: { used: 0 }, status: "active" });
  expect((await chat(solo)).status).toBe(200);
  expect(await show(id)).toMatchObject({ quota: { used: costUsd } });
  await expectSoundBooks(gateway);
});

test("a client that leaves releases its hold, and the quota is charged for what was delivered", async () => {
  const { add, chat, show, gateway, upstream } = await start();
  const id = await add(own, { provider_id: "solo", quota: { limit: 5 } });
  const [opening, ...rest] = chatChunks().map((chunk) =>
    body(`data: ${JSON.stringify(chunk)}\n\n`),
  );
  if (opening === undefined || rest[0] === undefined) throw new Error("the fixture has no chunks");
  upstream.enqueue([head(), opening, rest[0], upstream.gate()]);
  const client = startLeavingClient(
    gateway,
    chatRequest({ ...solo, stream: true, max_tokens: 4_000 }),
  );
  await client.hasSeen("Hel");
  // The first has taken its worst case, 4 USD, and the second what was left; the third finds
  // nothing.
  upstream.enqueue([head(), upstream.gate()]);
  const waiting = startLeavingClient(
    gateway,
    chatRequest({ ...solo, stream: true, max_tokens: 4_000 }),
  );
  await upstream.waitForRequest(2);
  expect((await chat(solo)).status).toBe(404);
  client.leave();
  waiting.leave();
  await Promise.all([client.over, waiting.over]);
  await eventually("both are settled", () => gateway.app.ledger.openHoldCount === 0);
  const used = Number(at(await show(id), "quota.used"));
  expect(used).toBeGreaterThan(0);
  expect(used).toBeLessThan(0.1);
  expect((await chat(solo)).status).toBe(200);
  await expectSoundBooks(gateway);
});
