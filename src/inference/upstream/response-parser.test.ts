import { describe, expect, test } from "bun:test";
import { ResponseParser } from "./response-parser.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Parses pieces and tells what was seen as one line, so that different splits can be compared. */
function parse(pieces: readonly Buffer[], close = false): string {
  let seen = "";
  const parser = new ResponseParser({
    onHead: ({ status, headers }) => {
      seen += `[${status} ${JSON.stringify(headers)}]`;
    },
    onBody: (bytes, start, end) => {
      seen += bytes.toString("latin1", start, end);
    },
    onEnd: (reusable) => {
      seen += reusable ? "|keep|" : "|close|";
    },
  });
  for (const piece of pieces) parser.push(piece);
  if (close) parser.end();
  return seen;
}

const everySplit = (text: string): Buffer[][] => {
  const bytes = Buffer.from(text, "latin1");
  return Array.from({ length: bytes.length + 1 }, (_, at) => [
    bytes.subarray(0, at),
    bytes.subarray(at),
  ]);
};

const responses: Record<string, { text: string; seen: string; close?: boolean }> = {
  "a body with a length": {
    text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello",
    seen: '[200 {"content-length":"5","x-a":"1, 2"}]hello|keep|',
  },
  "an empty body": { text: "HTTP/1.1 204 No Content\r\n\r\n", seen: "[204 {}]|keep|" },
  "a chunked body with an extension and a trailer": {
    text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n",
    seen: '[200 {"transfer-encoding":"chunked"}]hello0123456789|keep|',
  },
  "a body until the connection closes": {
    text: "HTTP/1.1 200 OK\r\n\r\nhello",
    seen: "[200 {}]hello|close|",
    close: true,
  },
  "a response with connection: close": {
    text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    seen: '[200 {"content-length":"2","connection":"close"}]ok|close|',
  },
  "a response of HTTP/1.0": {
    text: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    seen: '[200 {"content-length":"2"}]ok|close|',
  },
  "a response of HTTP/1.0 that keeps its connection": {
    text: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nok",
    seen: '[200 {"content-length":"2","connection":"Keep-Alive"}]ok|keep|',
  },
  "an interim response, which is skipped": {
    text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    seen: '[200 {"content-length":"1"}]a|keep|',
  },
};

describe("ResponseParser gives the same result at every split of", () => {
  for (const [name, { text, seen, close }] of Object.entries(responses)) {
    test(name, () => {
      for (const pieces of everySplit(text)) expect(parse(pieces, close)).toBe(seen);
    });
  }
});

const first = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
const second = "HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nb";

test("ResponseParser reads consecutive responses on one connection", () => {
  expect(parse([Buffer.from(first), Buffer.from(second)])).toBe(
    '[200 {"content-length":"1"}]a|keep|[500 {"content-length":"1"}]b|keep|',
  );
});

test.each([second, second.slice(0, 9), "\r\n", "x"])(
  "ResponseParser closes the connection if bytes follow the response: %j",
  (rest) => {
    expect(parse([Buffer.from(first + rest)])).toBe('[200 {"content-length":"1"}]a|close|');
  },
);

test.each([
  ["a missing status line", "HELLO\r\n\r\n"],
  ["a header without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"],
  ["a content-length that is not a number", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na"],
  [
    "a chunk size with other characters",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5z\nhello",
  ],
  [
    "a chunk size with too many digits",
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"0".repeat(12)}5\r\nhello`,
  ],
  ["a chunk size without a number", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
  [
    "a chunk longer than its size",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
  ],
  ["headers without an end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`],
])("ResponseParser refuses %s", (_, text) => {
  expect(() => parse([Buffer.from(text, "latin1")])).toThrow(UpstreamFailure);
});
