import { afterEach, describe, expect, test } from "bun:test";
import { at } from "./support/at.ts";
import type { ChatReply } from "./support/chat-reply.ts";
import { createKey } from "./support/create-key.ts";
import { askFor, paid, paidPrice, startFailingFirst } from "./support/failing-first.ts";
import type { Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const send = (changes: Record<string, unknown>, secret?: string): Promise<ChatReply> =>
  askFor(scene, changes, secret);

/** The status, and how often the backup was asked. */
const outcome = (reply: ChatReply): unknown[] => [reply.status, scene.backup.requests.length];

describe("the limits of the request and its key apply to each attempt", () => {
  const both = { acmeModels: [{ id: "acme/large", pricing: paidPrice }] };

  test("a fallback model outside the key's allowed_models returns 403 before any provider is asked", async () => {
    scene = await startFailingFirst(both);
    const secret = await createKey(scene.gateway, { allowed_models: ["ACME/Large"] });
    const reply = await send({ model: "acme/large", models: [paid] }, secret);
    expect([outcome(reply), scene.acme.requests.length]).toEqual([[403, 0], 0]);
    expect(at(reply.events[0], "error.metadata.fault")).toBe("client");
  });

  test("a fallback provider that stores data is not asked when data collection is denied", async () => {
    scene = await startFailingFirst({
      ...both,
      acmePolicy: { zdr: true, data_collection: "deny" },
    });
    for (const preference of [{ zdr: true }, { data_collection: "deny" }]) {
      expect(
        outcome(await send({ model: "acme/large", models: [paid], provider: preference })),
      ).toEqual([502, 0]);
    }
  });

  test("a fallback above max_price is not asked", async () => {
    scene = await startFailingFirst({
      acmeModels: [{ id: "acme/large", pricing: { prompt: "0.5", completion: "1" } }],
    });
    const reply = await send({
      model: "acme/large",
      models: [paid],
      provider: { max_price: { completion: 2 } },
    });
    expect(outcome(reply)).toEqual([502, 0]);
  });

  test("the hold covers the most expensive candidate and every choice of n", async () => {
    scene = await startFailingFirst({
      acmeModels: [{ id: "acme/large", pricing: { prompt: "0.5", completion: "1" } }],
    });
    const reply = await send({ model: "acme/large", models: [paid], max_tokens: 100, n: 4 });
    expect(reply.status).toBe(200);
    const [row] = await settledRows(scene.gateway);
    expect(Number(row?.detail.holdNanoUsd)).toBeGreaterThanOrEqual(4 * 100 * 3_000);
    expect(Number(row?.detail.holdNanoUsd)).toBeLessThan(5 * 100 * 3_000);
  });
});
