import { afterEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { sse, head, end, type Step } from "../../support/upstream/steps.ts";
import type { Gate } from "../../support/upstream/gate.ts";
import { portOf, rawChatHead } from "./support/raw-chat-head.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";
import { eventually } from "./support/eventually.ts";
import { settledRows } from "./support/settled-rows.ts";

let scene: Scene;
afterEach(() => scene.end());

const piece = "x".repeat(64 * 1024);
const pieces = 640;

/**
 * 40 MB of content as events of 64 KB, with an open gate behind each that tells how far the
 * provider has come.
 */
function fastStream(): { steps: Step[]; sent: () => number } {
  let sent = 0;
  const chunk = (delta: Record<string, unknown>, finish: string | null = null) =>
    sse({ id: "c", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] });
  const content = Array.from({ length: pieces }, (): Step[] => {
    const gate: Gate = scene.acme.gate();
    gate.open();
    void gate.reached.then(() => (sent += 1));
    return [chunk({ content: piece }), gate];
  });
  return {
    steps: [head(), ...content.flat(), chunk({}, "stop"), sse("[DONE]"), end()],
    sent: () => sent,
  };
}

async function openStream(): Promise<Socket> {
  const socket = connect(portOf(scene.gateway), "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  const text = JSON.stringify(chatRequest({ stream: true }));
  socket.write(rawChatHead(`content-length: ${text.length}`) + text);
  return socket;
}

/** Resolves when a number has stayed the same for some 100 milliseconds. */
async function stops(value: () => number): Promise<void> {
  let last = -1;
  let same = 0;
  await eventually("the provider is made to wait", () => {
    same = value() === last && last > 0 ? same + 1 : 0;
    last = value();
    return same > 100;
  });
}

test("a client that does not read slows down only its own provider connection", async () => {
  scene = await startScene();
  const { steps, sent } = fastStream();
  scene.acme.enqueue(steps);
  const socket = await openStream();
  socket.pause();
  await stops(sent);
  // Sockets on both sides hold some megabytes; the gateway itself no more than a few hundred
  // kilobytes.
  expect(sent()).toBeLessThan(pieces / 2);
  expect((await scene.gateway.post("/chat/completions", chatRequest())).status).toBe(200);

  let received = 0;
  let tail = "";
  socket.on("data", (bytes: Buffer) => {
    received += bytes.length;
    tail = (tail + bytes.toString("latin1")).slice(-200);
  });
  socket.resume();
  await eventually("the whole answer has come", () => tail.includes("[DONE]"));
  expect(received).toBeGreaterThan(pieces * piece.length);
  socket.destroy();
}, 240_000);

test("a client that stops reading and leaves releases its hold and connection", async () => {
  scene = await startScene();
  const { steps, sent } = fastStream();
  scene.acme.enqueue(steps);
  const socket = await openStream();
  socket.pause();
  await stops(sent);
  socket.resetAndDestroy();
  await eventually("the hold is back", () => scene.gateway.app.ledger.openHoldCount === 0);
  await eventually(
    "the provider's connection is closed",
    () => scene.acme.openConnectionCount === 0,
  );
  expect(await settledRows(scene.gateway)).toMatchObject([{ status: "cancelled" }]);
}, 240_000);
