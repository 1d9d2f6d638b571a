import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { seeded } from "../../../test/support/seeded.ts";
import { answersIn, closing, get, HttpServerScene, post } from "../../../test/support/http-server-scene.ts";

const clock = new FakeClock();
let scene: HttpServerScene;
beforeAll(() => void (scene = new HttpServerScene({ clock })));
afterAll(() => scene.server.stop(true));

describe("what could be understood in two ways, or not at all, is refused", () => {
  const head = (lines: string) => `POST /echo HTTP/1.1\r\nhost: a\r\n${lines}\r\n`;
  test.each([
    ["a length and chunks", head("content-length: 3\r\ntransfer-encoding: chunked\r\n") + "abc", 400],
    ["two lengths", head("content-length: 3\r\ncontent-length: 3\r\n") + "abc", 400],
    ["a list of lengths", head("content-length: 3, 3\r\n") + "abc", 400],
    ["a length with a sign", head("content-length: +3\r\n") + "abc", 400],
    ["two codings", head("transfer-encoding: gzip, chunked\r\n"), 501],
    ["an unknown coding", head("transfer-encoding: xchunked\r\n"), 501],
    ["a blank before the colon", head("content-length : 3\r\n"), 400],
    ["a folded line", head("x-a: 1\r\n 2\r\n"), 400],
    ["a lone line feed", head("x-a: 1\nx-b: 2\r\n"), 400],
    ["a lone carriage return", head("x-a: 1\rx-b: 2\r\n"), 400],
    ["a NUL", head("x-a: \0\r\n"), 400],
    ["a line without a colon", head("nothing\r\n"), 400],
    ["a name with a blank", head("x a: 1\r\n"), 400],
    ["an empty name", head(": 1\r\n"), 400],
    ["two hosts", head("host: b\r\n"), 400],
    ["no host", "GET /page HTTP/1.1\r\n\r\n", 400],
    ["no version", "GET /page\r\n\r\n", 400],
    ["a second blank", "GET  /page HTTP/1.1\r\nhost: a\r\n\r\n", 400],
    ["another protocol", "GET /page SPDY/1.1\r\nhost: a\r\n\r\n", 400],
    ["a later version", "GET /page HTTP/2.0\r\nhost: a\r\n\r\n", 505],
    ["a target that is no path", "CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n", 400],
    ["TLS", Buffer.from("16030100c8010000c403030d0a0d0a", "hex"), 400],
    ["a head without an end", head(`x-a: ${"x".repeat(70_000)}`), 431],
    ["a chunk without a size", head("transfer-encoding: chunked\r\n") + "\r\nabc\r\n", 400],
    ["a chunk of negative size", head("transfer-encoding: chunked\r\n") + "-1\r\nabc\r\n", 400],
    ["a chunk longer than its size", head("transfer-encoding: chunked\r\n") + "2\r\nabc\r\n0\r\n\r\n", 400],
    ["a chunk's line that ends in a line feed", head("transfer-encoding: chunked\r\n") + "3\nabc\r\n0\r\n\r\n", 400],
  ])("%s", async (_, request, status) => {
    const text = await scene.ask(request);
    const told = [text.slice(0, 13), text.includes("Connection: close"), text.includes("smuggled")];
    expect(told).toEqual([`HTTP/1.1 ${status} `, true, false]);
    expect(text.match(/HTTP\/1\.1 /g)?.length).toBe(1);
  });
});

test("5,000 requests with wrong bytes: each is answered or left, nothing is thrown, and the server goes on", async () => {
  const random = seeded(23);
  const chunked = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  const requests = [get("/page?x=1", "x-a: 1\r\n"), post("/echo", "abc"), chunked].map((text) => Buffer.from(text));
  const before = scene.errors.length;
  const mutated = (): Buffer => {
    const bytes = Buffer.concat([requests[Math.floor(random() * requests.length)] as Buffer, requests[0] as Buffer]);
    for (let times = Math.floor(random() * 3); times >= 0; times -= 1) bytes[Math.floor(random() * bytes.length)] = random() * 256;
    return bytes.subarray(0, random() < 0.2 ? random() * bytes.length : bytes.length);
  };
  for (let round = 0; round < 50; round += 1) {
    const told = await Promise.all(Array.from({ length: 100 }, async () => {
      const each = scene.client();
      each.socket.end(mutated());
      return await each.untilOver();
    }));
    for (const text of told) expect(text).toMatch(/^(?:HTTP\/1\.1 (?:200|400|404|408|417|431|501|505) |$)/);
  }
  expect([scene.errors.length, (await scene.ask(get("/page", closing))).slice(-6)]).toEqual([before, "a page"]);
});

test("20,000 requests sent at once are answered in their order", async () => {
  const asked = Array.from({ length: 20_000 }, (_, index) => get(`/nowhere/${index}`));
  const told = answersIn(await scene.ask(asked.join("") + get("/page", closing)));
  expect([told.length, told[12_345]?.[1], told.at(-1)?.[1]]).toEqual([20_001, "no GET /nowhere/12345", "a page"]);
});

describe("a client that owes something for a minute is left", () => {
  test.each([
    ["the rest of a head", "GET /page HTTP/1.1\r\nhost", "HTTP/1.1 408 Request Timeout"],
    ["the rest of a body", "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc", ""],
  ])("%s", async (_, begun, told) => {
    const each = scene.client().write(begun);
    // An answer on a later connection: what was sent before has been read.
    await scene.ask(get("/page", closing));
    clock.advance(59_000);
    scene.server.sweep();
    expect(await scene.ask(get("/page", closing))).toEndWith("a page");
    expect(each.over).toBe(false);
    clock.advance(2_000);
    scene.server.sweep();
    expect(await each.untilOver()).toStartWith(told);
  });

  test("while one that waits for its answer, or asks nothing, is not", async () => {
    const idle = scene.client().write(get("/page"));
    await idle.until((text) => text.endsWith("a page"));
    const busy = scene.client().write(post("/hold", "", closing));
    await scene.reached.promise;
    clock.advance(3_600_000);
    scene.server.sweep();
    scene.held.resolve();
    expect(answersIn(await busy.untilOver())).toEqual([["200", "held"]]);
    expect(await idle.write(get("/page", closing)).untilOver()).toEndWith("a page");
  });
});

test("a client that does not read is not sent more than fits between", async () => {
  const each = scene.client();
  each.socket.pause();
  each.write(get("/endless"));
  let before = -1;
  while (before !== scene.pulledFrames) {
    before = scene.pulledFrames;
    // Answers on other connections: the stream had its turns, and took none.
    for (let turn = 0; turn < 20; turn += 1) await scene.ask(get("/page", closing));
  }
  expect(scene.pulledFrames).toBeLessThan(400);
  each.socket.destroy();
  await scene.cancelled.promise;
});
