import { afterEach, describe, expect, test } from "bun:test";
import { provider, testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { faults } from "../../support/upstream/faults.ts";
import { at } from "./support/at.ts";
import { costsIn, readReply, type ChatReply } from "./support/chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const free = "acme/tiny:free";
const paid = "backup/large";
const paidPrice = { prompt: "1.00", completion: "3.00" };

interface World {
  creditsUsd?: number;
  /** Models of acme, whose upstream always fails, and of the backup, which always serves. */
  acmeModels?: unknown[];
  backupModels?: unknown[];
  acmePolicy?: Record<string, unknown>;
}

/** A failing acme with a free model, and a healthy backup with a paid one. */
async function startWorld({ creditsUsd = 10, acmeModels = [{ id: free }], backupModels = [{ id: paid, pricing: paidPrice }], acmePolicy = {} }: World): Promise<void> {
  scene = await startScene({
    settings: {
      bootstrap: { llmKey: testLlmKey, managementKey: testManagementKey, creditsNanoUsd: BigInt(creditsUsd * 1e9), plan: "enterprise" },
    },
    providers: (first, second) => [
      provider({ id: "acme", base_url: first, dialect: "openai-chat", api_key: "k", models: acmeModels, data_policy: acmePolicy }),
      provider({ id: "backup", base_url: second, dialect: "openai-chat", api_key: "k", models: backupModels }),
    ],
  });
  scene.acme.script(faults["503"].script);
}

const send = async (changes: Record<string, unknown>, secret = testLlmKey): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", chatRequest({ provider: undefined, ...changes }), { headers: { authorization: `Bearer ${secret}` } }));

async function createKey(fields: Record<string, unknown>): Promise<string> {
  const response = await scene.gateway.post("/keys", { name: "narrow", ...fields }, { headers: { authorization: `Bearer ${testManagementKey}` } });
  return String(at(await response.json(), "key"));
}

const outcome = (reply: ChatReply): unknown[] => [reply.status, scene.backup.requests.length];

describe("a free model that fails", () => {
  for (const stream of [false, true]) {
    test(`with money, and a paid model named behind it: the client is told, and pays (stream: ${stream})`, async () => {
      await startWorld({});
      const reply = await send({ model: free, models: [paid], stream });
      expect(outcome(reply)).toEqual([200, 1]);
      expect(reply.headers.get("x-service-fallback-reason")).toBe("upstream_error");
      expect([reply.headers.get("x-service-requested-model"), reply.headers.get("x-service-model")]).toEqual([free, paid]);
      expect(costsIn(reply)).toEqual([0.000032]);
      expect(reply.raw).toContain(`"requested_model":"${free}"`);
    });
  }

  test("with money, and no other model named: nobody else is asked", async () => {
    await startWorld({ backupModels: [{ id: "acme/tiny", pricing: paidPrice }, { id: paid, pricing: paidPrice }] });
    expect(outcome(await send({ model: free }))).toEqual([502, 0]);
  });

  test("without money: the paid model named behind it is not asked", async () => {
    await startWorld({ creditsUsd: 0 });
    expect(outcome(await send({ model: free, models: [paid] }))).toEqual([502, 0]);
    expect(await settledRows(scene.gateway)).toEqual([]);
  });

  test("on a key that has reached its limit: the paid model named behind it is not asked", async () => {
    await startWorld({});
    const secret = await createKey({ limit: 0 });
    expect(outcome(await send({ model: free, models: [paid] }, secret))).toEqual([502, 0]);
  });

  test("without money, and free at one provider only: the other one is not asked", async () => {
    await startWorld({
      creditsUsd: 0, acmeModels: [{ id: "acme/shared", pricing: { prompt: "0", completion: "0" } }], backupModels: [{ id: "acme/shared", pricing: paidPrice }],
    });
    expect(outcome(await send({ model: "acme/shared" }))).toEqual([502, 0]);
  });
});

describe("each attempt is bound by what the request and its key allow", () => {
  const both = { acmeModels: [{ id: "acme/large", pricing: paidPrice }] };

  test("a fallback that the key may not use is refused before anybody is asked", async () => {
    await startWorld(both);
    const secret = await createKey({ allowed_models: ["ACME/Large"] });
    const reply = await send({ model: "acme/large", models: [paid] }, secret);
    expect([outcome(reply), scene.acme.requests.length]).toEqual([[403, 0], 0]);
    expect(at(reply.events[0], "error.metadata.fault")).toBe("client");
  });

  test("a fallback that keeps data is not asked when none may be kept", async () => {
    await startWorld({ ...both, acmePolicy: { zdr: true, data_collection: "deny" } });
    for (const preference of [{ zdr: true }, { data_collection: "deny" }]) {
      expect(outcome(await send({ model: "acme/large", models: [paid], provider: preference }))).toEqual([502, 0]);
    }
  });

  test("a fallback above the highest price is not asked", async () => {
    await startWorld({ acmeModels: [{ id: "acme/large", pricing: { prompt: "0.5", completion: "1" } }] });
    const reply = await send({ model: "acme/large", models: [paid], provider: { max_price: { completion: 2 } } });
    expect(outcome(reply)).toEqual([502, 0]);
  });

  test("the hold covers the dearest candidate, and every choice that was asked for", async () => {
    await startWorld({ acmeModels: [{ id: "acme/large", pricing: { prompt: "0.5", completion: "1" } }] });
    const reply = await send({ model: "acme/large", models: [paid], max_tokens: 100, n: 4 });
    expect(reply.status).toBe(200);
    const [row] = await settledRows(scene.gateway);
    expect(Number(row?.detail.holdNanoUsd)).toBeGreaterThanOrEqual(4 * 100 * 3_000);
    expect(Number(row?.detail.holdNanoUsd)).toBeLessThan(5 * 100 * 3_000);
  });
});
