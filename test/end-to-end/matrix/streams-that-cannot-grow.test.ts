import { afterAll, beforeAll, expect, test } from "bun:test";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { head } from "../../support/upstream/steps.ts";
import { createKey } from "../scenarios/support/create-key.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, pairs } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** Bears some 100 tokens of output at 1.50 USD a million, where every request asks for 300. */
const limitUsd = 0.0002;

/** How often an upstream says its text: far beyond the cap that it is given. */
const repetitions = 400;

test.each(pairs.map((pair) => [nameOf(pair), pair] as const))("%s: a stream that its key cannot bear ends with length", async (_, pair) => {
  const { client, upstream } = pair;
  const secret = await createKey(scene.gateway, { limit: limitUsd });
  const { opening, content } = wireOf(upstream);
  const endless = Array.from({ length: repetitions }, () => content).flat();
  scene.upstreams[upstream].script([head(), ...opening, ...endless]);
  const reply = await scene.ask(client, { ...client.ask("Talk"), stream: true }, {
    providers: [providerId(upstream)], headers: { authorization: `Bearer ${secret}` },
  });
  expect([reply.status, reply.errors, reply.endings, reply.breaches, reply.finish]).toEqual([200, [], 1, [], "length"]);
  expect(Number(reply.headers.get("x-service-output-cap"))).toBeGreaterThan(16);
  expect(reply.said.length).toBeGreaterThan(100);

  const row = await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"));
  expect(row).toMatchObject({ status: "completed", finishReason: "length" });
  expect(row?.costNano).toBeGreaterThan(0n);
  expect(row?.costNano).toBeLessThanOrEqual(BigInt(limitUsd * 1e9));
  expect(row?.detail.uncollectedNanoUsd).toBeUndefined();
  // What the client sees is what was charged.
  expect(BigInt(Math.round(Number(reply.costUsd) * 1e9))).toBe(row?.costNano ?? -1n);
});
