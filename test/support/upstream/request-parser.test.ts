import { expect, test } from "bun:test";
import { RequestParser } from "./request-parser.ts";

const wire = [
  'POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nX-Two: a\r\nX-Two: b\r\n\r\n{"a":"ä"}',
  "GET /v1/models HTTP/1.1\r\nhost: h\r\n\r\n",
  "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nwiki\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
  "POST /empty HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
].join("");
const wireBytes = Buffer.from(wire.replace("Length: 9", "Length: 10"));

const read = (portions: Uint8Array[]) => {
  const parser = new RequestParser(() => undefined);
  return portions
    .flatMap((portion) => parser.push(portion))
    .map(({ method, path, body }) => [method, path, Buffer.from(body).toString("utf8")]);
};

const expected = [
  ["POST", "/v1/chat/completions?x=1", '{"a":"ä"}'],
  ["GET", "/v1/models", ""],
  ["POST", "/c", "wiki0123456789"],
  ["POST", "/empty", ""],
];

test("reads pipelined requests of every framing from one portion", () => {
  expect(read([wireBytes])).toEqual(expected);
});

test("reads the same from single bytes and from any two portions", () => {
  expect(read(Array.from(wireBytes, (byte) => Buffer.of(byte)))).toEqual(expected);
  for (let at = 1; at < wireBytes.length; at += 1) {
    expect(read([wireBytes.subarray(0, at), wireBytes.subarray(at)])).toEqual(expected);
  }
});

test("joins repeated headers and ignores their case", () => {
  const [request] = new RequestParser(() => undefined).push(wireBytes);
  expect(request?.headers.get("x-two")).toBe("a, b");
});

test("reports when a client waits before it sends its body", () => {
  let told = 0;
  const parser = new RequestParser(() => {
    told += 1;
  });
  const head = "POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  expect(parser.push(Buffer.from(head))).toEqual([]);
  expect(told).toBe(1);
  expect(parser.push(Buffer.from("ok"))).toHaveLength(1);
});

test("does not keep the caller's buffer", () => {
  const bytes = Buffer.from("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab");
  const parser = new RequestParser(() => undefined);
  parser.push(bytes);
  bytes.fill("x");
  const [request] = parser.push(Buffer.from("cd"));
  expect(Buffer.from(request?.body ?? []).toString()).toBe("abcd");
});

test("throws on bytes that are not HTTP", () => {
  const broken = [
    "hello\r\n\r\n",
    "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
  ];
  for (const text of broken) {
    expect(() => new RequestParser(() => undefined).push(Buffer.from(text))).toThrow();
  }
});
