import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { refusalOf, SocketClient } from "./support/socket-client.ts";

let gateway: TestGateway;
const model = "sandbox/chat:free";
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

/** Asserts that another client is served. */
async function expectServed(): Promise<void> {
  const client = await SocketClient.open(gateway.origin);
  expect(await client.create({ model, input: "Hi" })).toMatchObject({ status: "completed" });
  client.close();
}

test("a flood of frames that are no requests ends with 1008, and others are served", async () => {
  const client = await SocketClient.open(gateway.origin);
  const frames = ["{", "null", '{"type":1}', "\u0000", '{"type":"response.create","stream_id":[]}'];
  for (let index = 0; index < 10_000; index += 1)
    client.socket.send(frames[index % frames.length] ?? "");
  expect((await client.closed).code).toBe(1008);
  await expectServed();
});

test("a frame of 64 MB closes its socket alone", async () => {
  const client = await SocketClient.open(gateway.origin);
  client.socket.send("x".repeat(64 * 1024 * 1024));
  expect((await client.closed).code).not.toBe(1000);
  await expectServed();
});

test("more frames than may wait are refused, and the others answered in order", async () => {
  const client = await SocketClient.open(gateway.origin);
  for (let index = 0; index < 200; index += 1)
    client.send({
      type: "response.create",
      model,
      input: `n${index}`,
      store: false,
      generate: false,
    });
  let served = 0;
  let refused = 0;
  while (served + refused < 200) {
    const { type } = await client.until("response.completed", "error");
    if (type === "error") refused += 1;
    else served += 1;
  }
  expect(served).toBeGreaterThanOrEqual(128);
  expect(served + refused).toBe(200);
  client.close();
});

test("half a megabyte of nesting is refused in its frame", async () => {
  const client = await SocketClient.open(gateway.origin);
  const nested = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  client.socket.send(`{"type":"response.create","model":"${model}","input":${nested}}`);
  const answer = await Promise.race([client.next().catch(() => undefined), client.closed]);
  expect(answer).toBeDefined();
  client.close();
  await expectServed();
});

test("the sandbox's voice answers text, and a tone where it is to speak", async () => {
  const path = "/v1/realtime?model=sandbox/voice:free";
  const client = await SocketClient.open(gateway.origin, { path });
  const content = [{ type: "input_text", text: "Hello" }];
  client.send({
    type: "conversation.item.create",
    item: { type: "message", role: "user", content },
  });
  client.send({ type: "response.create" });
  const { delta } = await client.until("response.output_audio.delta");
  expect(String(delta).length).toBeGreaterThan(1_000);
  expect(await client.until("response.done")).toMatchObject({ response: { status: "completed" } });
  client.send({ type: "response.create", response: { output_modalities: ["text"] } });
  expect(await client.until("response.output_text.delta")).toMatchObject({
    delta: "[simulated] You sent: 0.0 seconds of sound.",
  });
  await client.until("response.done");
  client.close();
});

test("a handshake of another version is answered 426 with the version that is spoken", async () => {
  const refusal = await refusalOf(gateway.origin, "/v1/responses", {
    authorization: "Bearer sk-svc-v1-testtesttesttesttesttesttesttest",
    "sec-websocket-version": "8",
  });
  expect(refusal).toMatchObject({ status: 426, code: "upgrade_required" });
  expect(refusal.headers.get("sec-websocket-version")).toBe("13");
  expect(refusal.headers.get("upgrade")).toBe("websocket");
});
