import { afterEach, describe, expect, test } from "bun:test";
import { costsIn, type ChatReply } from "./support/chat-reply.ts";
import { createKey } from "./support/create-key.ts";
import { askFor, free, paid, paidPrice, startFailingFirst } from "./support/failing-first.ts";
import type { Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const send = (changes: Record<string, unknown>, secret?: string): Promise<ChatReply> =>
  askFor(scene, changes, secret);

/** The status, and how often the backup was asked. */
const outcome = (reply: ChatReply): unknown[] => [reply.status, scene.backup.requests.length];

describe("a free model that fails", () => {
  for (const stream of [false, true]) {
    const kind = stream ? "stream" : "whole";
    test(`with credits, falls back to a paid model that the request names, reports it and charges (${kind})`, async () => {
      scene = await startFailingFirst({});
      const reply = await send({ model: free, models: [paid], stream });
      expect(outcome(reply)).toEqual([200, 1]);
      expect(reply.headers.get("x-service-fallback-reason")).toBe("upstream_error");
      expect([
        reply.headers.get("x-service-requested-model"),
        reply.headers.get("x-service-model"),
      ]).toEqual([free, paid]);
      expect(costsIn(reply)).toEqual([0.000032]);
      expect(reply.raw).toContain(`"requested_model":"${free}"`);
    });
  }

  test("with credits, does not fall back to a model that the request does not name", async () => {
    scene = await startFailingFirst({
      backupModels: [
        { id: "acme/tiny", pricing: paidPrice },
        { id: paid, pricing: paidPrice },
      ],
    });
    expect(outcome(await send({ model: free }))).toEqual([502, 0]);
  });

  test("without credits, does not fall back to the paid model that the request names", async () => {
    scene = await startFailingFirst({ creditsUsd: 0 });
    expect(outcome(await send({ model: free, models: [paid] }))).toEqual([502, 0]);
    expect(await settledRows(scene.gateway)).toEqual([]);
  });

  test("on a key at its limit, does not fall back to the paid model that the request names", async () => {
    scene = await startFailingFirst({});
    const secret = await createKey(scene.gateway, { limit: 0 });
    expect(outcome(await send({ model: free, models: [paid] }, secret))).toEqual([502, 0]);
  });

  test("without credits, does not fall back to a provider where the same model is paid", async () => {
    scene = await startFailingFirst({
      creditsUsd: 0,
      acmeModels: [{ id: "acme/shared", pricing: { prompt: "0", completion: "0" } }],
      backupModels: [{ id: "acme/shared", pricing: paidPrice }],
    });
    expect(outcome(await send({ model: "acme/shared" }))).toEqual([502, 0]);
  });
});
