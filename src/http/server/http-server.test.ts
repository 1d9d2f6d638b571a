import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { answersIn, closing, get, HttpServerScene, post } from "../../../test/support/http-server-scene.ts";
import { seeded } from "../../../test/support/seeded.ts";

let scene: HttpServerScene;
beforeAll(() => void (scene = new HttpServerScene()));
afterAll(() => scene.server.stop(true));

const streamedChunks = "4\r\none \r\n8\r\nzwei \xc3\xa9 \r\n0\r\n\r\n";

describe("an answer", () => {
  test("says its type, length and time, and nothing of a connection that goes on", async () => {
    const text = await scene.client().write(get("/page")).until((all) => all.endsWith("a page"));
    expect(text.replace(/Date: .*? GMT\r\n/, "Date: now\r\n")).toBe(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: now\r\nContent-Length: 6\r\n\r\na page",
    );
  });

  test.each([["/stream", streamedChunks], ["/ready", "\r\n\r\n9\r\nall there\r\n0\r\n\r\n"]])("%s comes in chunks", async (path, end) => {
    const text = await scene.ask(get(path, closing));
    expect(text).toContain("Transfer-Encoding: chunked\r\n");
    expect(text).toEndWith(end);
  });

  test("of a platform's Response has its status, headers and cookies", async () => {
    const text = await scene.ask(get("/response", closing));
    expect(text).toStartWith("HTTP/1.1 201 Created\r\n");
    expect(text).toContain("x-a: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n");
    expect(text).toEndWith("\r\n\r\nbytes");
  });

  test("has a line for each cookie", async () => {
    expect(await scene.ask(get("/cookies", closing))).toContain("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n");
  });

  test("to HEAD is that to GET without its body", async () => {
    const text = await scene.ask(`HEAD /page HTTP/1.1\r\nhost: a\r\n${closing}\r\n`);
    expect([text.includes("Content-Length: 6"), text.endsWith("\r\n\r\n")]).toEqual([true, true]);
  });

  test("that is large arrives whole, however slowly it is read", async () => {
    const slow = scene.client().write(get("/large", closing));
    slow.socket.pause();
    setImmediate(() => slow.socket.resume());
    const text = await slow.untilOver();
    expect(text.slice(text.indexOf("\r\n\r\n") + 4) === scene.large).toBe(true);
  });

  const mistakes = ["/throws", "/throws-at-once", "/bad-header"];
  test.each(mistakes)("that cannot be made (%s) is a 500, of which the operator hears", async (path) => {
    const before = scene.errors.length;
    const text = await scene.ask(get(path));
    expect([text.slice(9, 12), text.includes("Connection: close"), scene.errors.length - before]).toEqual(["500", true, 1]);
  });

  test("that breaks once it has begun ends as it stands", async () => {
    const text = await scene.ask(get("/breaks"));
    expect([text.startsWith("HTTP/1.1 200 OK"), text.endsWith("\r\n\r\n")]).toEqual([true, true]);
  });

  test("arrives although its client still sends, on a connection that ends with it", async () => {
    const body = "x".repeat(3_000_000);
    for (let round = 0; round < 20; round += 1) expect(await scene.ask(post("/unread", body, closing))).toEndWith("not read");
  });
});

describe("paths", () => {
  test.each([
    ["/things/a%2Fb%20c", '{"id":"a/b c"}'], ["/things/%zz", '{"id":"%zz"}'], ["/things/1/parts", "parts"], ["/page?x=1", "a page"],
    ["http://other/page", "a page"], ["/things/", "no GET /things/"], ["/page/", "no GET /page/"], ["/", "no GET /"],
  ])("%s", async (path, body) => {
    expect(answersIn(await scene.ask(get(path, closing)))[0]?.[1]).toBe(body);
  });

  test.each(["PUT", "constructor"])("%s, which a path does not have, is nobody's", async (method) => {
    expect(answersIn(await scene.ask(`${method} /page HTTP/1.1\r\nhost: a\r\n${closing}\r\n`))).toEqual([["404", `no ${method} /page`]]);
  });
});

describe("requests one after the other", () => {
  test("however their bytes are cut", async () => {
    const chunked = "POST /echo HTTP/1.1\r\nHOST: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
      + "3\r\nabc\r\n4;ext=\"1\"\r\nd\u00e9f\r\n0\r\nx-trailer: 1\r\n\r\n";
    const first = `${post("/echo", "one é")}\r\n${chunked}${post("/unread", "dropped")}`;
    const bytes = Buffer.from(`${first}${get("/stream")}${get("/page", closing)}`);
    const random = seeded(11);
    for (let round = 0; round < 40; round += 1) {
      const each = scene.client();
      const cuts = Array.from({ length: 6 }, () => Math.floor(random() * bytes.length)).sort((one, other) => one - other);
      for (const [index, cut] of [0, ...cuts].entries()) {
        each.write(bytes.subarray(cut, cuts[index] ?? bytes.length));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const told = answersIn(await each.untilOver()).map(([, body]) => body);
      expect(told).toEqual(["<one \xc3\xa9>", "<abcd\xc3\xa9f>", "not read", streamedChunks, "a page"]);
    }
  });

  test("the next one is looked at once the one before was answered", async () => {
    const each = scene.client().write(post("/hold", "") + get("/page", closing));
    await scene.reached.promise;
    expect(each.text).toBe("");
    scene.held.resolve();
    expect(answersIn(await each.untilOver()).map(([, body]) => body)).toEqual(["held", "a page"]);
  });

  test("a body that nobody reads, however large, does not keep the answer or the next request", async () => {
    const body = "x".repeat(3_000_000);
    const text = await scene.ask(post("/unread", body) + post("/narrow", body) + get("/page", closing));
    expect(answersIn(text).map(([, told]) => told)).toEqual(["not read", "refused", "a page"]);
  });

  test("a client of HTTP/1.0 is left, unless it wants to stay", async () => {
    const left = await scene.ask("GET /page HTTP/1.0\r\n\r\n");
    expect([left.includes("Connection: close"), left.endsWith("a page")]).toEqual([true, true]);
    const kept = await scene.ask("GET /page HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\nGET /stream HTTP/1.0\r\n\r\n");
    expect(kept).toContain("Connection: keep-alive");
    expect(kept).toEndWith("\r\n\r\none zwei \xc3\xa9 ");
  });
});

describe("a client that asks whether it may send its body", () => {
  test("is told so once somebody reads it", async () => {
    const each = scene.client().write(`POST /echo HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n${closing}\r\n`);
    expect(await each.until((text) => text.includes("\r\n\r\n"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(await each.write("abc").untilOver()).toEndWith("<abc>");
  });

  test("is answered without it where nobody does, and the connection ends", async () => {
    const text = await scene.ask("POST /unread HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n");
    expect([text.startsWith("HTTP/1.1 200 OK"), text.includes("Connection: close")]).toEqual([true, true]);
  });

  test("of something else is refused", async () => {
    expect(await scene.ask(post("/echo", "abc", "expect: a-miracle\r\n"))).toStartWith("HTTP/1.1 417 ");
  });
});
