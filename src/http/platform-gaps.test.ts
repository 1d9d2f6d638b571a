import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RawClient } from "../../test/support/raw-client.ts";
import { HttpServer } from "./http-server.ts";
import { readBodyText } from "./bodies/read-body.ts";
import { Reply } from "./reply.ts";

const plain = { "content-type": "text/plain" };
let server: HttpServer;
beforeAll(() => {
  server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    bodyMemoryBytes: 1024 ** 2,
    onError: () => undefined,
    routes: {
      "/echo": async (request) =>
        new Reply(`<${await readBodyText(request, 1000)}>`, { headers: plain }),
      "/length": (request) =>
        new Reply(String(request.headers.get("content-length")), { headers: plain }),
      "/host": (request) => new Reply(String(request.headers.get("host")), { headers: plain }),
    },
    fallback: () => new Reply("none", { status: 404, headers: plain }),
  });
});
afterAll(() => server.stop(true));

/** What a connection is answered once the server has answered the next one. */
const ask = (bytes: string | Buffer): Promise<string> =>
  new RawClient(server.port).write(bytes).untilOver();
const post = (lines: string, path = "/echo"): string =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${lines}\r\n`;
const chunked = "transfer-encoding: chunked\r\n";

describe("Bun refuses ambiguous requests with", () => {
  test.each([
    ["a length and chunks", `${post(`content-length: 3\r\n${chunked}`)}3\r\nabc\r\n0\r\n\r\n`, 400],
    ["two lengths that differ", `${post("content-length: 3\r\ncontent-length: 5\r\n")}abcde`, 400],
    ["a list in content-length", `${post("content-length: 3, 3\r\n")}abc`, 400],
    ["a sign in content-length", `${post("content-length: +3\r\n")}abc`, 400],
    ["two transfer codings", post("transfer-encoding: gzip, chunked\r\n"), 400],
    ["an unknown transfer coding", post("transfer-encoding: xchunked\r\n"), 400],
    [
      "chunked encoding in HTTP/1.0",
      "POST /echo HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
      400,
    ],
    ["a space before the colon", `${post("content-length : 3\r\n")}abc`, 400],
    ["a folded header line", post("x-a: 1\r\n 2\r\n"), 400],
    ["a lone line feed", post("x-a: 1\nx-b: 2\r\n"), 400],
    ["a lone carriage return", post("x-a: 1\rx-b: 2\r\n"), 400],
    ["a NUL", post("x-a: \0\r\n"), 400],
    ["a line without a colon", post("nothing\r\n"), 400],
    ["a space in a header name", post("x a: 1\r\n"), 400],
    ["no Host header", "GET /host HTTP/1.1\r\n\r\n", 400],
    ["an unsupported HTTP version", "GET /host HTTP/2.0\r\nhost: a\r\n\r\n", 505],
    ["TLS", Buffer.from("16030100c8010000c403030d0a0d0a", "hex"), 400],
    ["17 KB of headers", post(`x-a: ${"x".repeat(17_000)}\r\n`), 431],
    ["a negative chunk size", `${post(chunked)}-1\r\nabc\r\n`, 400],
    ["a chunk longer than its size", `${post(chunked)}2\r\nabc\r\n0\r\n\r\n`, 400],
    ["a chunk size line ending with a lone LF", `${post(chunked)}3\nabc\r\n0\r\n\r\n`, 400],
  ])("%s", async (_, bytes, status) => {
    expect(await ask(bytes)).toStartWith(`HTTP/1.1 ${status} `);
  });
});

// Where one of these fails a newer Bun has closed a gap: shorten the list in decision 0056 and in
// docs/operate/security.md.
describe("this release of Bun", () => {
  test("joins two Host headers, which the router refuses", async () => {
    expect(await ask(post("host: b\r\n", "/host"))).toEndWith("\r\n\r\na, b");
  });

  test("joins repeated content-lengths of the same value, which the router refuses", async () => {
    expect(
      await ask(`${post("content-length: 3\r\ncontent-length: 3\r\n", "/length")}abc`),
    ).toEndWith("\r\n\r\n3, 3");
  });

  test("refuses trailer fields once, with 400", async () => {
    const answer = await ask(
      `POST /echo HTTP/1.1\r\nhost: a\r\n${chunked}\r\n3\r\nabc\r\n0\r\nx-trailer: 1\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 400"]);
  });

  test("answers Expect: 100-continue before a handler sees the request", async () => {
    const answer = await ask(
      "POST /length HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: 3\r\n\r\n",
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 100", "HTTP/1.1 200"]);
  });
});
