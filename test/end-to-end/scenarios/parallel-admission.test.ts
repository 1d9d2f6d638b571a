import { afterEach, describe, expect, test } from "bun:test";
import { testManagementKey, type TestGateway } from "../../support/gateway.ts";
import type { RecordedRequest } from "../../support/upstream/recorded-request.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import { at } from "./support/at.ts";
import { errorsIn, readReply, type ChatReply } from "./support/chat-reply.ts";
import { createKey } from "./support/create-key.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const maxTokens = 100;

/**
 * A request whose worst case is what it costs: the answer is as long as it may be, the input as
 * long as is estimated.
 */
const request = (stream: boolean) => ({ ...chatRequest({ stream }), max_tokens: maxTokens });
const inputTokens = (stream: boolean): number =>
  Math.ceil(JSON.stringify(request(stream)).length / 4);

/** 0.50 and 1.50 USD per million tokens. */
const costNano = (stream: boolean): bigint => BigInt(inputTokens(stream) * 500 + maxTokens * 1_500);

/** An answer that uses all that it may. */
const exactAnswer = (stream: boolean) => (asked: RecordedRequest) =>
  chatAnswer(asked, {
    usage: {
      prompt_tokens: inputTokens(stream),
      completion_tokens: maxTokens,
      total_tokens: inputTokens(stream) + maxTokens,
    },
  });

async function sendAll(
  gateway: TestGateway,
  { stream, secret }: { stream: boolean; secret?: string },
): Promise<ChatReply[]> {
  const init = secret === undefined ? {} : { headers: { authorization: `Bearer ${secret}` } };
  return Promise.all(
    Array.from({ length: 200 }, async () =>
      readReply(await gateway.post("/chat/completions", request(stream), init)),
    ),
  );
}

/**
 * Checks that exactly ten were served, and that the others were refused for want of money and of
 * nothing else.
 */
async function expectTenServed(
  replies: readonly ChatReply[],
  { stream }: { stream: boolean },
): Promise<void> {
  const served = replies.filter(({ status }) => status === 200);
  const refused = replies.filter(({ status }) => status !== 200);
  expect([served.length, refused.length]).toEqual([10, 190]);
  expect(served.flatMap(errorsIn)).toEqual([]);
  for (const reply of refused) {
    expect([
      reply.status,
      at(reply.events[0], "error.code"),
      at(reply.events[0], "error.metadata.fault"),
    ]).toEqual([402, "insufficient_balance", "client"]);
  }
  const rows = await settledRows(scene.gateway);
  expect(rows.map((row) => row.costNano)).toEqual(
    Array.from({ length: 10 }, () => costNano(stream)),
  );
  expect(scene.acme.requests.length).toBe(10);
}

const creditsOf = async (gateway: TestGateway): Promise<unknown> =>
  (await gateway.get("/credits")).json();

describe("200 parallel requests against a balance for ten", () => {
  for (const stream of [false, true]) {
    test(stream ? "streamed" : "whole", async () => {
      const balance = costNano(stream) * 10n;
      scene = await startScene({
        settings: {
          bootstrap: {
            llmKey: "sk-svc-v1-testtesttesttesttesttesttesttest",
            managementKey: testManagementKey,
            creditsNanoUsd: balance,
            plan: "enterprise",
          },
        },
      });
      scene.acme.script(exactAnswer(stream));
      await expectTenServed(await sendAll(scene.gateway, { stream }), { stream });
      expect(await creditsOf(scene.gateway)).toMatchObject({
        balance: 0,
        used: Number(balance) / 1e9,
      });
    });
  }
});

describe("200 parallel requests against a key's limit for ten", () => {
  for (const stream of [false, true]) {
    test(stream ? "streamed" : "whole", async () => {
      scene = await startScene();
      scene.acme.script(exactAnswer(stream));
      const limit = Number(costNano(stream) * 10n) / 1e9;
      const secret = await createKey(scene.gateway, { limit });
      const replies = await sendAll(scene.gateway, { stream, secret });
      await expectTenServed(replies, { stream });
      expect(replies.find(({ status }) => status === 402)?.raw).toContain("key_limit_reached");
      const key = await scene.gateway.get("/key", { authorization: `Bearer ${secret}` });
      expect(await key.json()).toMatchObject({ data: { limit, limit_remaining: 0, usage: limit } });
      expect(await creditsOf(scene.gateway)).toMatchObject({
        balance: Number((10 - limit).toFixed(6)),
      });
    });
  }
});
