import { afterAll, beforeAll, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { errorOf } from "./error-envelope-of.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const routes = [
  ["/chat/completions", testLlmKey],
  ["/keys", testManagementKey],
] as const;

const send = (path: string, key: string, init: RequestInit): Promise<Response> =>
  fetch(gateway.baseUrl + path, {
    method: "POST",
    ...init,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...Object(init.headers),
    },
  });

const wrongBodies = [
  ["", "nothing"],
  ["   ", "white space"],
  ["{", "an object that is not closed"],
  ['{"model": }', "a member without a value"],
  ["{'model': 'x'}", "single quotes"],
  ['{"model": "x",}', "a trailing comma"],
  ["[]", "an array"],
  ["null", "null"],
  ["3", "a number"],
  ['"text"', "a string"],
  ['{"model":"x"} {}', "two objects"],
  ["\u0000", "a zero byte"],
  ["[".repeat(200_000), "unclosed brackets"],
] as const;

const compressions: Readonly<Record<string, (bytes: Buffer) => Uint8Array<ArrayBuffer>>> = {
  gzip: (bytes) => new Uint8Array(gzipSync(bytes)),
  GZIP: (bytes) => new Uint8Array(gzipSync(bytes)),
  deflate: (bytes) => new Uint8Array(deflateSync(bytes)),
  br: (bytes) => new Uint8Array(brotliCompressSync(bytes)),
  zstd: (bytes) => new Uint8Array(zstdCompressSync(bytes)),
};

const folded = new Uint8Array(gzipSync(Buffer.from("{}")));
const unreadableEncodings = [
  ["compress", "not supported", folded],
  ["gzip, gzip", "encoded twice", folded],
  ["gzip", "truncated", folded.subarray(0, 12)],
  ["gzip", "not compressed", new Uint8Array(Buffer.from("{}"))],
  ["br", "another encoding", folded],
] as const;

for (const [path, key] of routes) {
  test.each(wrongBodies)(`POST ${path} with %p returns 400: %s`, async (body) => {
    const error = await errorOf(await send(path, key, { body }));
    expect(error).toMatchObject({
      status: 400,
      code: "bad_request",
      type: "invalid_request_error",
      param: null,
    });
    expect(error.message).toMatch(/JSON/);
    expect(error.headers.get("x-should-retry")).toBe("false");
  });

  test.each(unreadableEncodings)(
    `POST ${path} with a body in %s returns 400: %s`,
    async (encoding, _, body) => {
      const error = await errorOf(
        await send(path, key, { body, headers: { "content-encoding": encoding } }),
      );
      expect(error).toMatchObject({
        status: 400,
        code: "bad_request",
        type: "invalid_request_error",
      });
      expect(error.message).toContain("content-encoding");
    },
  );
}

test.each(Object.entries(compressions))("decompresses %s bodies", async (encoding, compress) => {
  const message = { role: "user", content: "ö" };
  const body = compress(Buffer.from(JSON.stringify({ model: "nobody/none", messages: [message] })));
  const error = await errorOf(
    await send("/chat/completions", testLlmKey, {
      body,
      headers: { "content-encoding": encoding },
    }),
  );
  expect(error).toMatchObject({ status: 404, code: "model_unavailable" });
});

test.each(["identity", "Identity", "GZIP"])(
  "a content encoding is recognised in any spelling: %s",
  async (encoding) => {
    const text = Buffer.from(
      JSON.stringify({ model: "nobody/none", messages: [{ role: "user", content: "ö" }] }),
    );
    const body = encoding === "GZIP" ? new Uint8Array(gzipSync(text)) : new Uint8Array(text);
    const error = await errorOf(
      await send("/chat/completions", testLlmKey, {
        body,
        headers: { "content-encoding": encoding },
      }),
    );
    expect(error).toMatchObject({ status: 404, code: "model_unavailable" });
  },
);

test.each([
  ["/chat/completions", testLlmKey, 32 * 1024 * 1024],
  ["/keys", testManagementKey, 256 * 1024],
] as const)(
  "POST %s accepts a body up to its limit and returns 413 for a larger one",
  async (path, key, limit) => {
    const filling = (size: number): string => `{"x":"${"a".repeat(size - 8)}"}`;
    expect(await errorOf(await send(path, key, { body: filling(limit) }))).toMatchObject({
      status: 400,
    });
    const tooLarge = await errorOf(await send(path, key, { body: filling(limit + 1) }));
    expect(tooLarge).toMatchObject({
      status: 413,
      code: "content_too_large",
      type: "request_too_large",
    });
    expect(tooLarge.metadata).toMatchObject({ limit_bytes: limit });
  },
);

test("a body without a declared length is cut off at the limit", async () => {
  const chunk = new Uint8Array(64 * 1024).fill(0x20);
  let sentChunks = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      sentChunks += 1;
      if (sentChunks > 64) controller.close();
      else controller.enqueue(chunk);
    },
  });
  expect(await errorOf(await send("/keys", testManagementKey, { body }))).toMatchObject({
    status: 413,
    code: "content_too_large",
  });
});

test("a JSON body is accepted with any content type", async () => {
  const error = await errorOf(
    await send("/chat/completions", testLlmKey, {
      body: "{}",
      headers: { "content-type": "text/plain" },
    }),
  );
  expect(error).toMatchObject({ status: 400, param: "model" });
});
