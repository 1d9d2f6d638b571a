import { afterEach, describe, expect, test } from "bun:test";
import { chatCompletion, fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { healthyChat } from "../../support/upstream/healthy-chat.ts";
import { openaiChatWire as wire } from "../../support/upstream/openai-chat-wire.ts";
import {
  answer,
  body,
  end,
  head,
  json,
  raw,
  split,
  stall,
  type Script,
} from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { errorsIn, readReply, saidIn, type ChatReply } from "./support/chat-reply.ts";
import { eventually } from "./support/eventually.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

let scene: Scene;
afterEach(() => scene.end());

const ask = async (changes: Record<string, unknown> = {}): Promise<ChatReply> =>
  readReply(await scene.gateway.post("/chat/completions", chatRequest(changes)));

test("sequential requests share a connection", async () => {
  scene = await startScene();
  for (let count = 0; count < 5; count += 1) expect(saidIn(await ask())).toBe(fixtureText);
  expect(scene.acme.connectionCount).toBe(1);
});

test("a pooled connection that the provider has closed is replaced without an error", async () => {
  scene = await startScene();
  for (let count = 0; count < 5; count += 1) {
    const reply = await ask();
    expect([reply.status, reply.headers.get("x-service-provider-chain")]).toEqual([200, "acme"]);
    scene.acme.closeIdleConnections();
  }
  expect(scene.acme.requests.length).toBe(5);
});

test("a request on a pooled connection that closes without an answer is not sent again", async () => {
  scene = await startScene();
  await ask();
  scene.acme.enqueue([raw(""), { kind: "cut" }]);
  const reply = await ask();
  expect(reply.status).toBe(502);
  expect(errorsIn(reply)).toMatchObject([
    { metadata: { fault: "upstream", upstream_backend: "acme" } },
  ]);
  expect(scene.acme.requests.length).toBe(2);
});

describe("bytes after the end of a response never reach another request", () => {
  const injected = JSON.stringify(chatCompletion({ text: "injected" }));
  const second = raw(`HTTP/1.1 200 OK\r\ncontent-length: ${injected.length}\r\n\r\n${injected}`);
  const poisons: Record<string, Script> = {
    "a second answer, in the same segment": [split([], [...json(wire.whole), second])],
    "a second answer, in a segment of its own": [...json(wire.whole), second],
    "half a second answer, in the same segment": [
      split([], [...json(wire.whole), raw("HTTP/1.1 200 OK\r\ncontent-")]),
    ],
    "garbage, in the same segment": [split([], [...json(wire.whole), raw("garbage")])],
    "a line break, in the same segment": [split([], [...json(wire.whole), raw("\r\n")])],
  };
  for (const [name, script] of Object.entries(poisons)) {
    test(name, async () => {
      scene = await startScene();
      scene.acme.enqueue(script);
      expect(saidIn(await ask())).toBe(fixtureText);
      await eventually("the connection is closed", () => scene.acme.openConnectionCount === 0);
      scene.acme.script(healthyChat);
      const replies = await Promise.all(Array.from({ length: 5 }, () => ask()));
      expect(replies.map(saidIn)).toEqual(Array.from({ length: 5 }, () => fixtureText));
      // How many connections the five take depends on how fast they are; none takes the first one.
      const [first, ...later] = scene.acme.requests.map(({ place }) => place.connectionIndex);
      expect(later.length).toBe(5);
      expect(later).not.toContain(first);
    });
  }
});

/** Answers that are too much, or in no form that can be read. */
const unreadable: Readonly<Record<string, readonly [stream: boolean, script: () => Script]>> = {
  "a coding that nobody knows": [
    false,
    () => answer("x", { headers: { "content-encoding": "compress" } }),
  ],
  "a coding that nobody knows, without end": [
    true,
    () => [head({ headers: { "content-encoding": "compress" } }), stall()],
  ],
  "a compressed bomb": [
    false,
    () => json({ choices: [], filling: "x".repeat(100 * 1024 * 1024) }, { gzip: true }),
  ],
  "a compressed bomb of a stream": [
    true,
    () => [
      head({ headers: { "content-encoding": "gzip" } }),
      body(Bun.gzipSync(`data: ${"x".repeat(64 * 1024 * 1024)}`)),
      stall(),
    ],
  ],
  "an endless line": [true, () => [head(), body(`data: ${"x".repeat(17 * 1024 * 1024)}`), stall()]],
  "an endless head": [false, () => [raw(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(100_000)}`), stall()]],
  "a redirect": [
    false,
    () => answer("", { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
  ],
  "endless interim responses": [
    true,
    () => [raw("HTTP/1.1 102 Processing\r\n\r\n".repeat(10_000)), stall()],
  ],
  "a protocol that was not requested": [
    true,
    () => [raw("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"), stall()],
  ],
  "an endless trailer": [
    false,
    () => [head(), raw(`2\r\n{}\r\n0\r\n${"x: y\r\n".repeat(20_000)}`), stall()],
  ],
  "a compressed event stream that expands a thousandfold": [
    true,
    () => [
      head({ headers: { "content-encoding": "gzip" } }),
      body(Bun.gzipSync(": nothing to see here yet\n\n".repeat(1024 * 1024))),
      stall(),
    ],
  ],
  "two content lengths": [
    false,
    () => [raw("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}"), stall()],
  ],
};

describe("an unreadable response is aborted, and its connection closed", () => {
  for (const [name, [stream, script]] of Object.entries(unreadable)) {
    test(name, async () => {
      scene = await startScene();
      scene.acme.script(script());
      const reply = await ask({ stream });
      expect([reply.status, at(reply.events[0], "error.code")]).toEqual([502, "bad_gateway"]);
      expect(errorsIn(reply)).toMatchObject([
        { metadata: { fault: "upstream", upstream_backend: "acme" } },
      ]);
      // Where the answer was read to its end, its connection may be kept.
      if (!/redirect|nobody knows$|bomb$/.test(name))
        await eventually("the connection is closed", () => scene.acme.openConnectionCount === 0);
    });
  }
});

test("the end of a stream releases its connection for the next request", async () => {
  scene = await startScene();
  scene.acme.script([
    head(),
    ...wire.opening,
    ...wire.content,
    ...wire.finish,
    ...wire.terminator,
    end(),
  ]);
  await ask({ stream: true });
  await eventually(
    "the answer was sent to its end",
    () => scene.acme.requests[0]?.completed === true,
  );
  await ask({ stream: true });
  expect(scene.acme.connectionCount).toBe(1);
});
