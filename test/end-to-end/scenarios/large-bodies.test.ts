import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { testLlmKey } from "../../support/gateway.ts";
import { RawClient } from "../../support/upstream/raw-client.ts";
import { readRawAnswer } from "../../support/upstream/raw-answer.ts";
import { at } from "./support/at.ts";
import { readReply, saidIn } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import { portOf, rawChatHead } from "./support/raw-chat-head.ts";
import { chatRequest, startScene, type Scene } from "./support/scene.ts";

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
const limitBytes = 32 * mebibyte;

let scene: Scene;
beforeAll(async () => {
  scene = await startScene();
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

/** A request whose JSON has exactly so many bytes. */
function requestOf(bytes: number): string {
  const text = (content: string): string =>
    JSON.stringify(chatRequest({ messages: [{ role: "user", content }] }));
  return text("x".repeat(bytes - text("").length));
}

describe("bodies up to the size limit are forwarded unchanged", () => {
  for (const bytes of [32 * kibibyte, mebibyte, 8 * mebibyte, limitBytes]) {
    test(`${bytes} bytes`, async () => {
      const sent = requestOf(bytes);
      const reply = await readReply(await scene.gateway.post("/chat/completions", sent));
      expect([reply.status, saidIn(reply)]).toEqual([200, "Hello wörld 😀"]);
      const received = scene.acme.requests.at(-1)?.json();
      expect(at(received, "messages") as unknown).toEqual(at(JSON.parse(sent), "messages"));
    });
  }
});

/**
 * The answer to what a client sent so far; the client has not finished its request and never does.
 */
async function answerTo(
  send: (client: RawClient) => void,
): Promise<{ status: number | undefined; body: unknown; ms: number }> {
  const client = await RawClient.connect(portOf(scene.gateway));
  const startedMs = performance.now();
  send(client);
  await client.receivedUpTo("}");
  const { status, body } = readRawAnswer(Buffer.concat(client.segments));
  client.vanish();
  return { status, body: JSON.parse(body), ms: performance.now() - startedMs };
}

/** Requests beyond the limit, of which the gateway does not see the end. */
const tooLarge: readonly (readonly [name: string, send: (client: RawClient) => void])[] = [
  [
    "one byte more, by content-length",
    (client) => client.send(rawChatHead(`content-length: ${limitBytes + 1}`)),
  ],
  [
    "three gigabytes, by content-length",
    (client) => client.send(rawChatHead("content-length: 3000000000")),
  ],
  [
    "one byte more, in chunks",
    (client) => {
      client.send(rawChatHead("transfer-encoding: chunked"));
      client.send(`${(limitBytes + 1).toString(16)}\r\n${"x".repeat(limitBytes + 1)}\r\n`);
    },
  ],
];

describe("a body above the size limit is refused before it is read to its end", () => {
  for (const [name, send] of tooLarge) {
    test(name, async () => {
      const asked = scene.acme.requests.length;
      const { status, body, ms } = await answerTo(send);
      expect([status, at(body, "error.code"), at(body, "error.metadata.type")]).toEqual([
        413,
        "content_too_large",
        "request_too_large",
      ]);
      expect(at(body, "error.metadata")).toMatchObject({
        fault: "client",
        limit_bytes: limitBytes,
      });
      // A body that is waited for has ten seconds.
      expect(ms).toBeLessThan(9_000);
      expect(scene.acme.requests.length).toBe(asked);
    });
  }
});

describe("a compressed body is limited by its decompressed size", () => {
  const bombs = {
    gzip: gzipSync(Buffer.alloc(256 * mebibyte)),
    deflate: deflateSync(Buffer.alloc(256 * mebibyte)),
    br: brotliCompressSync(Buffer.alloc(64 * mebibyte), {
      params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
    }),
    zstd: zstdCompressSync(Buffer.alloc(256 * mebibyte)),
  };
  const post = async (bytes: Buffer, encoding: string) =>
    readReply(
      await fetch(`${scene.gateway.baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${testLlmKey}`, "content-encoding": encoding },
        body: new Uint8Array(bytes),
      }),
    );

  test.each(Object.entries(bombs))("returns 413 for a %s bomb", async (encoding, bomb) => {
    const asked = scene.acme.requests.length;
    const reply = await post(bomb, encoding);
    const [body] = reply.events;
    expect([reply.status, at(body, "error.code")]).toEqual([413, "content_too_large"]);
    expect(at(body, "error.metadata")).toMatchObject({
      fault: "client",
      limit_bytes: limitBytes,
    });
    expect(scene.acme.requests.length).toBe(asked);
  });

  test("is accepted within the limit", async () => {
    const reply = await post(gzipSync(requestOf(8 * mebibyte)), "gzip");
    expect([reply.status, saidIn(reply)]).toEqual([200, "Hello wörld 😀"]);
  });

  test("returns 400 for two encodings without decompressing", async () => {
    const reply = await post(bombs.gzip, "gzip, gzip");
    expect([reply.status, at(reply.events[0], "error.code")]).toEqual([400, "bad_request"]);
  });
});
