import { afterEach, describe, expect, test } from "bun:test";
import { provider } from "../../support/gateway.ts";
import { faults, type FaultName } from "../../support/upstream/faults.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { head, stall } from "../../support/upstream/steps.ts";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import { startLeavingClient } from "./support/leaving-client.ts";
import { readReply } from "./support/chat-reply.ts";
import { eventually } from "./support/eventually.ts";
import { chatRequest, shortTimeouts, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

/**
 * Prices so far apart that the draw by the inverse square of price always falls on acme while it is
 * primary.
 */
const entry = (id: string, baseUrl: string, price: string) =>
  provider({
    id,
    base_url: baseUrl,
    dialect: "openai-chat",
    api_key: "k",
    timeouts_ms: shortTimeouts,
    models: [{ id: "acme/large", pricing: { prompt: price, completion: price } }],
  });
const start = async (): Promise<void> => {
  scene = await startScene({
    providers: (first, second) => [entry("acme", first, "0.0001"), entry("backup", second, "1000")],
    settings: {
      bootstrap: {
        llmKey: "sk-svc-v1-testtesttesttesttesttesttesttest",
        managementKey: undefined,
        creditsNanoUsd: 10n ** 15n,
        plan: "enterprise",
      },
    },
  });
};

const ask = async (changes: Record<string, unknown> = {}): Promise<string | null> =>
  (
    await readReply(
      await scene.gateway.post(
        "/chat/completions",
        chatRequest({ provider: undefined, ...changes }),
      ),
    )
  ).headers.get("x-service-provider-chain");

/** What happens twice to acme, and whether it comes second for the next 30 seconds. */
const histories: readonly (readonly [name: FaultName, stream: boolean, outage: boolean])[] = [
  ["500", false, true],
  ["503", false, true],
  ["408", false, true],
  ["429", false, true],
  ["closes before answering", false, true],
  ["never answers", true, true],
  ["bad JSON body", false, true],
  ["empty stream", true, true],
  ["cut mid-stream", true, true],
  ["error mid-stream", true, true],
  ["400", false, false],
  ["401", false, false],
  ["403", false, false],
  ["404", false, false],
  ["no fault", true, false],
  ["no terminator, and a cut", true, false],
];

describe("a provider comes second after two failures of its own, but not after refusing requests", () => {
  for (const [name, stream, outage] of histories) {
    test(`${name}: ${outage ? "second" : "still first"}`, async () => {
      await start();
      scene.acme.enqueue(faults[name].script, faults[name].script);
      await ask({ stream });
      await ask({ stream });
      expect(await ask()).toBe(outage ? "backup" : "acme");
    });
  }

  test("clients that leave do not count as provider failures", async () => {
    await start();
    for (let count = 0; count < 3; count += 1) {
      scene.acme.script([
        head(),
        ...wire.opening,
        ...(count === 0 ? [] : wire.content.slice(0, 1)),
        stall(),
      ]);
      const client = startLeavingClient(
        scene.gateway,
        chatRequest({ provider: undefined, stream: true }),
      );
      await scene.acme.waitForRequest(count + 1);
      if (count > 0) await client.hasSeen("Hel");
      client.leave();
      await client.over;
      await eventually("the request is over", () => scene.gateway.app.ledger.openHoldCount === 0);
    }
    scene.acme.script(healthyChat);
    expect(await ask()).toBe("acme");
  });
});
