import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { forgetFailuresOf } from "../../support/gateway.ts";
import { faults, type FaultName } from "../../support/upstream/faults.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { at } from "./support/at.ts";
import { costsIn, errorsIn, readReply, saidIn, type ChatReply } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { whileRefusing } from "./support/refusing-database.ts";
import { chatRequest, shortTimeouts, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
const start = async (): Promise<void> => {
  scene = await startScene({ acme: { timeouts_ms: shortTimeouts } });
};
const end = (): Promise<void> => scene.end();

const send = async (changes: Record<string, unknown>): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", chatRequest(changes)));

/** Ways in which a request can end, each with its status; the books are checked after each. */
const exits: readonly (readonly [
  exit: string,
  changes: Record<string, unknown>,
  fault: FaultName | undefined,
  status: number,
])[] = [
  ["served whole", {}, "no fault, whole", 200],
  ["served as a stream", { stream: true }, "no fault", 200],
  ["refused for an invalid body", { messages: [] }, undefined, 400],
  ["refused for an unknown model", { model: "acme/none" }, undefined, 404],
  ["refused for an unknown provider", { provider: { only: ["nobody"] } }, undefined, 404],
  ["refused by the provider", {}, "400", 400],
  ["no connection", {}, "closes before answering", 502],
  ["timed out before the head", { stream: true }, "never answers", 504],
  ["timed out before content", { stream: true }, "stall before content", 504],
  ["timed out after content", { stream: true }, "stall mid-stream", 200],
  ["cut after content", { stream: true }, "cut mid-stream", 200],
  ["no content", { stream: true }, "empty stream", 502],
];

describe("no hold stays open, whatever the outcome", () => {
  beforeAll(start);
  afterEach(async () => {
    await expectSoundBooks(scene.gateway);
    forgetFailuresOf(scene.gateway, "acme");
  });
  afterAll(end);

  for (const [exit, changes, fault, status] of exits) {
    test(exit, async () => {
      if (fault !== undefined) scene.acme.script(faults[fault].script);
      expect((await send(changes)).status).toBe(status);
    });
  }
});

describe("a database that rejects the settlement", () => {
  beforeEach(async () => {
    await start();
    scene.acme.script(healthyChat);
  });
  afterEach(end);

  const balance = async (): Promise<unknown> =>
    at(await (await scene.gateway.get("/credits")).json(), "balance");

  test("whole: returns 503 instead of the response and charges nothing", async () => {
    const reply = await whileRefusing(scene.gateway, () => send({}));
    expect(reply.status).toBe(503);
    expect(errorsIn(reply)).toMatchObject([
      { code: "service_unavailable", metadata: { fault: "gateway" } },
    ]);
    expect([await balance(), scene.gateway.app.ledger.openHoldCount]).toEqual([10, 0]);
    expect((await send({})).status).toBe(200);
  });

  test("stream: sends one error event instead of the charge", async () => {
    const reply = await whileRefusing(scene.gateway, () => send({ stream: true }));
    expect([saidIn(reply), costsIn(reply), reply.doneCount]).toEqual([fixtureText, [], 0]);
    expect(errorsIn(reply)).toMatchObject([
      { code: "service_unavailable", metadata: { fault: "gateway" } },
    ]);
    expect([await balance(), scene.gateway.app.ledger.openHoldCount]).toEqual([10, 0]);
  });
});
