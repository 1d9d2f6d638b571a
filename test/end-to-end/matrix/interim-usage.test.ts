import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { head, sse, type BodyStep } from "../../support/upstream/steps.ts";
import { eventually } from "../scenarios/support/eventually.ts";
import { settledRows } from "../scenarios/support/settled-rows.ts";
import type { Fields } from "./support/json-value.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, allPairs } from "./support/pairs.ts";

const said = `${"word ".repeat(120)}end`;

/**
 * A chunk with 603 characters, and usage as far as it is known before the end: nearly always the
 * input alone.
 */
const chunkOf: Record<string, (output: number | undefined) => Fields> = {
  "google-generate": (output) => ({
    responseId: "g",
    modelVersion: "m",
    candidates: [{ index: 0, content: { role: "model", parts: [{ text: said }] } }],
    usageMetadata: {
      promptTokenCount: 11,
      ...(output !== undefined && { candidatesTokenCount: output }),
      totalTokenCount: 11,
    },
  }),
  "openai-chat": (output) => ({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta: { content: said }, finish_reason: null }],
    usage: { prompt_tokens: 11, completion_tokens: output ?? 0, total_tokens: 11 + (output ?? 0) },
  }),
};

const nanoOf = (inputTokens: number, outputTokens: number): bigint =>
  BigInt(inputTokens * 500 + outputTokens * 1_500);

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const told = allPairs.filter(({ upstream }) => upstream in chunkOf);

describe("a client that leaves is charged for what was delivered, whatever the interim usage reports", () => {
  test.each(
    told.flatMap(
      (pair) =>
        [
          [nameOf(pair), undefined, 151, pair],
          [nameOf(pair), 200, 200, pair],
        ] as const,
    ),
  )("%s, %p output tokens reported", async (_, reported, charged, { client, upstream }) => {
    const { gateway, upstreams } = scene;
    const before = (await settledRows(gateway)).length;
    const gate = upstreams[upstream].gate();
    const chunk: BodyStep = sse(JSON.stringify(chunkOf[upstream]?.(reported)));
    upstreams[upstream].script([
      head({ headers: { "content-type": "text/event-stream" } }),
      chunk,
      gate,
    ]);
    const body = { ...client.ask("Hello"), stream: true };
    const leaving = startLeavingClient(gateway, {
      client,
      body,
      providers: [providerId(upstream)],
    });
    await leaving.hasSeen("word end");
    leaving.leave();
    await leaving.over;
    await eventually(
      "the request is settled",
      async () => (await settledRows(gateway)).length > before,
    );
    const [row] = (await settledRows(gateway)).slice(before);
    expect([row?.status, row?.costNano]).toEqual(["cancelled", nanoOf(11, charged)]);
  });
});
