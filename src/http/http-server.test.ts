import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { RawClient } from "../../test/support/raw-client.ts";
import type { FrameSource } from "../platform/kernel/frame-source.ts";
import { answerHeadersAt, HttpServer } from "./http-server.ts";
import type { CompiledRoutes } from "./routes-by-method.ts";
import { readBodyText } from "./bodies/read-body.ts";
import { type Answer, bytesAnswer, Reply } from "./reply.ts";
import { ServedRequest } from "./served-request.ts";

const plain = { "content-type": "text/plain" };
const clock = new FakeClock();
let server: HttpServer;
const errors: unknown[] = [];
afterEach(async () => {
  await server.stop(true);
  errors.length = 0;
});

function serve(routes: CompiledRoutes, bodyMemoryBytes = 1024 ** 2): void {
  const fallback = () => new Reply("nothing here", { status: 404, headers: plain });
  server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    routes: { "/page": () => new Reply("a page", { headers: plain }), ...routes },
    fallback,
    clock,
    bodyMemoryBytes,
    onError: (error) => void errors.push(error),
  });
}

const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;
const client = (): RawClient => new RawClient(server.port);

/** Frames that come one by one, and whether the client left. */
function frames(texts: readonly string[], more: Partial<FrameSource> = {}) {
  const left = [...texts];
  const cancelled = Promise.withResolvers<void>();
  const next = (): Promise<string | undefined> =>
    new Promise((resolve) => void setImmediate(() => resolve(left.shift())));
  const source: FrameSource = { next, cancel: () => cancelled.resolve(), ...more };
  return { source, cancelled: cancelled.promise };
}

const streaming = (source: FrameSource) => () => new Reply(source, { headers: plain });

/** The frames of a source as bytes. */
const bytesOf = (source: FrameSource): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const text = await source.next();
        if (text === undefined) controller.close();
        else controller.enqueue(Buffer.from(text));
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  );

/** Frames without end, and how many were asked for. */
function endless() {
  let pulled = 0;
  const next = (): Promise<string> => {
    pulled += 1;
    return Promise.resolve("x".repeat(65_536));
  };
  const { source, cancelled } = frames([], { next });
  return { source, cancelled, pulled: () => pulled };
}

/** Waits until the server has come so far. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await client().write(get("/page", "connection: close\r\n")).untilOver();
}

/** Waits until a stream has had its turns, and took none. */
async function untilStill(pulled: () => number): Promise<void> {
  for (let before = -1; before !== pulled(); ) {
    before = pulled();
    for (let turn = 0; turn < 20; turn += 1)
      await client().write(get("/page", "connection: close\r\n")).untilOver();
  }
}

describe("a streamed response", () => {
  test("is sent frame by frame, each as UTF-8 in its own chunk", async () => {
    serve({ "/stream": streaming(frames(["one ", "", "zwei é "]).source) });
    const text = await client().write(get("/stream", "connection: close\r\n")).untilOver();
    expect(text).toEndWith("\r\n\r\n4\r\none \r\n8\r\nzwei \xc3\xa9 \r\n0\r\n\r\n");
  });

  test("sends frames that its source passes at once or later", async () => {
    const left = ["one ", "", "two ", undefined];
    const source: FrameSource = {
      next: () => Promise.reject(new Error("asked for a promise")),
      tellNext(give) {
        const frames = left.shift();
        if (frames === "two ") setImmediate(() => give(frames));
        else give(frames);
      },
      cancel: () => undefined,
    };
    serve({ "/told": streaming(source) });
    const text = await client().write(get("/told", "connection: close\r\n")).untilOver();
    expect(text).toEndWith("\r\n\r\n4\r\none \r\n4\r\ntwo \r\n0\r\n\r\n");
    expect([errors, server.pendingRequests]).toEqual([[], 0]);
  });

  test("sends frames in pieces, of which some are bytes, as they come and when they are ready", async () => {
    const bytes = Buffer.alloc(3_000_000, "bytes");
    const left = [["more ", bytes, " and ", "end"], undefined];
    const source: FrameSource = {
      next: () => Promise.reject(new Error("asked for a text")),
      readyFrames: () => ["é ", bytes.subarray(0, 5), ", "],
      tellFrames: (give) => give(left.shift()),
      cancel: () => undefined,
    };
    serve({ "/pieces": streaming(source) });
    const response = await fetch(`http://127.0.0.1:${server.port}/pieces`);
    expect(await response.text()).toBe(`é bytes, more ${bytes} and end`);
    expect(errors).toEqual([]);
  });

  test("starts with the frames that are ready, and ends with them if they are the last", async () => {
    let taken = false;
    const source: FrameSource = {
      next: () => Promise.reject(new Error("asked for more")),
      ready() {
        taken = true;
        return "all there";
      },
      get isOver() {
        return taken;
      },
      cancel: () => undefined,
    };
    serve({ "/ready": streaming(source) });
    expect(await client().write(get("/ready", "connection: close\r\n")).untilOver()).toContain(
      "all there",
    );
    expect(errors).toEqual([]);
  });

  test("is cancelled when its client disconnects while the source is idle", async () => {
    const silent = frames(["one"], {
      ready: () => "one",
      next: () => new Promise(() => undefined),
    });
    serve({ "/silent": streaming(silent.source) });
    const each = client().write(get("/silent"));
    await each.until((text) => text.includes("one"));
    each.socket.destroy();
    await silent.cancelled;
  });

  test("stops reading its source when buffers are full, and is cancelled on disconnect", async () => {
    const { source, cancelled, pulled } = endless();
    serve({ "/endless": streaming(source) });
    const each = client();
    each.socket.pause();
    each.write(get("/endless"));
    await untilStill(pulled);
    expect(pulled()).toBeLessThan(400);
    each.socket.destroy();
    await cancelled;
  });

  test.each<[string, (source: FrameSource) => () => Answer]>([
    ["frames", streaming],
    ["bytes", (source) => () => bytesAnswer(bytesOf(source), { headers: plain })],
  ])(
    "of %s is cancelled after its client has not read for a minute, and its connection closes",
    async (_, answering) => {
      const { source, cancelled, pulled } = endless();
      serve({ "/endless": answering(source) });
      const each = client();
      each.socket.pause();
      each.write(get("/endless"));
      await untilStill(pulled);
      expect(server.pendingRequests).toBe(1);
      clock.advance(59_000);
      server.sweep();
      expect(server.pendingRequests).toBe(1);
      clock.advance(2_000);
      server.sweep();
      await cancelled;
      each.socket.resume();
      expect(await each.untilOver()).not.toEndWith("0\r\n\r\n");
    },
  );

  test("of bytes may be as silent as its source, and ends with it", async () => {
    using idle = spyOn(ServedRequest.prototype, "setIdleSeconds");
    const last = Promise.withResolvers<string>();
    const pieces = [Promise.resolve("one "), last.promise];
    const { source } = frames([], { next: () => pieces.shift() ?? Promise.resolve(undefined) });
    serve({ "/bytes": () => bytesAnswer(bytesOf(source), { headers: plain }) });
    const each = client().write(get("/bytes", "connection: close\r\n"));
    await each.until((text) => text.includes("one "));
    expect(idle).toHaveBeenLastCalledWith(0);
    last.resolve("two");
    expect(await each.untilOver()).toEndWith("\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n");
    expect(idle).toHaveBeenLastCalledWith(75);
  });

  test("of bytes breaks off with its source, which has said why", async () => {
    const left = ["one "];
    const next = async (): Promise<string> => {
      const text = left.shift();
      if (text === undefined) throw new Error("the source broke off");
      return text;
    };
    const { source } = frames([], { next });
    serve({ "/bytes": () => bytesAnswer(bytesOf(source), { headers: plain }) });
    const text = await client().write(get("/bytes")).untilOver();
    expect(text).not.toEndWith("0\r\n\r\n");
    expect([errors, server.pendingRequests]).toEqual([[], 0]);
  });

  test("stays open for hours while its provider is silent", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const texts = [Promise.resolve("one"), promise, Promise.resolve(undefined)];
    serve({
      "/slow": streaming(
        frames([], { next: () => texts.shift() ?? Promise.resolve(undefined) }).source,
      ),
    });
    const each = client().write(get("/slow", "connection: close\r\n"));
    await each.until((text) => text.includes("one"));
    clock.advance(7_200_000);
    server.sweep();
    resolve("two");
    expect(await each.untilOver()).toEndWith("3\r\ntwo\r\n0\r\n\r\n");
  });
});

describe("a response", () => {
  test("to HEAD has the headers of GET without the body", async () => {
    serve({});
    const text = await client()
      .write("HEAD /page HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      .untilOver();
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*content-length: 6\r\n[^]*\r\n$/i);
  });

  test("has one Set-Cookie line for each cookie", async () => {
    serve({
      "/cookies": () =>
        new Reply("", { status: 302, headers: { location: "/" }, cookies: ["a=1", "b=2"] }),
    });
    const text = await client().write(get("/cookies", "connection: close\r\n")).untilOver();
    expect(text.match(/set-cookie: \w=\d\r\n/gi)).toHaveLength(2);
  });

  test.each([
    ["rejects", () => Promise.reject(new Error("a mistake"))],
    [
      "throws",
      (): Reply => {
        throw new Error("a mistake");
      },
    ],
    [
      "sets a header with an invalid value",
      () => new Reply("", { headers: { "x-a": "one\r\nx-b: two" } }),
    ],
  ])("of a handler that %s is a 500 and is reported to the operator", async (_, handler) => {
    serve({ "/mistake": handler });
    const text = await client().write(get("/mistake")).untilOver();
    expect(text).toMatch(/^HTTP\/1\.1 500 [^]*connection: close[^]*internal_server_error/i);
    expect(errors).toHaveLength(1);
  });

  test("with a failing stream ends without the last chunk and is reported to the operator", async () => {
    const texts = frames(["one"]).source;
    let asked = 0;
    const next = (): Promise<string | undefined> =>
      (asked += 1) === 1 ? texts.next() : Promise.reject(new Error("broken"));
    serve({ "/breaks": streaming(frames([], { next }).source) });
    const text = await client().write(get("/breaks")).untilOver();
    expect([text.endsWith("0\r\n\r\n"), String(errors[0])]).toEqual([false, "Error: broken"]);
  });
});

describe("a client that disconnects", () => {
  test("aborts the signal of its request", async () => {
    const reached = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    serve({
      "/hold": async ({ signal }) => {
        signal.addEventListener("abort", () => aborted.resolve());
        reached.resolve();
        await aborted.promise;
        return new Reply("", { headers: plain });
      },
    });
    const each = client().write("POST /hold HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
    await reached.promise;
    each.socket.destroy();
    await aborted.promise;
  });

  test("in the middle of its body is not reported as an error of the gateway", async () => {
    const refused = Promise.withResolvers<unknown>();
    serve({
      "/echo": (request) =>
        readBodyText(request, 1000).then(
          (text) => new Reply(text, { headers: plain }),
          (error: unknown) => {
            refused.resolve(error);
            return new Reply("", { headers: plain });
          },
        ),
    });
    const each = client().write("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc");
    await client().write(get("/page", "connection: close\r\n")).untilOver();
    each.socket.destroy();
    expect(await refused.promise).toMatchObject({ code: "client_closed_request" });
  });
});

describe("request bodies", () => {
  const echo: CompiledRoutes = {
    "/echo": (request) =>
      readBodyText(request, 1024 ** 2).then(
        (text) => new Reply(`<${text.length}>`, { headers: plain }),
        (error: unknown) => new Reply(String(error), { status: 503, headers: plain }),
      ),
  };
  const post = (bytes: number): string =>
    `POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: ${bytes}\r\nconnection: close\r\n\r\n`;

  test.each([
    ["with a content-length above the limit", 4 * 1024 ** 2, 64 * 1024 ** 2],
    ["above the available memory", 900_000, 100_000],
  ])("%s are read to the end, so that the refusal arrives", async (_, bytes, memoryBytes) => {
    serve(echo, memoryBytes);
    const sent = Array.from({ length: 20 }, () => client().write(post(bytes) + "x".repeat(bytes)));
    for (const each of sent) expect(await each.untilOver()).toStartWith("HTTP/1.1 503");
    expect(server.bodyMemory.heldBytes).toBe(0);
  });

  test("that are refused and incomplete keep their connection open only for a moment", async () => {
    serve(echo, 100_000);
    expect(
      await client()
        .write(post(900_000) + "x".repeat(200_000))
        .untilOver(),
    ).toStartWith("HTTP/1.1 503");
    expect(
      await client()
        .write(`${post(9_000_000)}x`)
        .untilOver(),
    ).toStartWith("HTTP/1.1 503");
  });

  test("that stall give way to others after ten seconds where memory is short", async () => {
    serve(echo, 2_400_000);
    const stalled = [client(), client()].map((each) => each.write(`${post(1_000_000)}x`));
    await until(() => server.bodyMemory.heldBytes === 2_000_000);
    const send = (): Promise<string> =>
      client()
        .write(post(1_000_000) + "x".repeat(1_000_000))
        .untilOver();
    clock.advance(9_000);
    expect(await send()).toStartWith("HTTP/1.1 503");
    clock.advance(2_000);
    expect(await send()).toEndWith("<1000000>");
    expect(await Promise.race(stalled.map((each) => each.untilOver()))).toStartWith("HTTP/1.1 503");
    expect(stalled.filter(({ over }) => over)).toHaveLength(1);
  });

  test("that stall keep their connection where memory is left", async () => {
    serve(echo, 2_400_000);
    const stalled = client().write(`${post(1_000_000)}x`);
    await until(() => server.bodyMemory.heldBytes === 1_000_000);
    clock.advance(20_000);
    expect(
      await client()
        .write(post(1_000_000) + "x".repeat(1_000_000))
        .untilOver(),
    ).toEndWith("<1000000>");
    expect(await stalled.write("x".repeat(999_999)).untilOver()).toEndWith("<1000000>");
  });

  test("above the total memory limit are refused, and each response frees its memory", async () => {
    serve(echo, 600_000);
    const first = client().write(post(500_000) + "x".repeat(499_999));
    while (server.bodyMemory.heldBytes < 499_999)
      await client().write(get("/page", "connection: close\r\n")).untilOver();
    expect(
      await client()
        .write(post(120_000) + "x".repeat(120_000))
        .untilOver(),
    ).toStartWith("HTTP/1.1 503 ");
    expect(await first.write("x").untilOver()).toEndWith("<500000>");
    expect(server.bodyMemory.heldBytes).toBe(0);
    expect(
      await client()
        .write(post(500_000) + "x".repeat(500_000))
        .untilOver(),
    ).toEndWith("<500000>");
  });

  test("that no handler reads do not delay the response", async () => {
    serve({ "/unread": () => new Reply("not read", { headers: plain }) });
    const body = "x".repeat(3_000_000);
    const text = await client()
      .write(
        `POST /unread HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}` +
          get("/page", "connection: close\r\n"),
      )
      .untilOver();
    expect([text.includes("not read"), text.endsWith("a page")]).toEqual([true, true]);
  });
});

describe("a server that stops", () => {
  test("closes each connection with its next response after announcing it, also for streams", async () => {
    serve({ "/stream": streaming(frames(["one "]).source) });
    const [whole, streamed] = [client(), client()];
    for (const each of [whole, streamed])
      await each.write(get("/page")).until((text) => text.endsWith("a page"));
    server.announceClosing();
    expect(await whole.write(get("/page")).untilOver()).toMatch(/connection: close/i);
    expect(await streamed.write(get("/stream")).untilOver()).toMatch(/connection: close[^]*one /i);
  });

  test("finishes requests in progress and closes idle connections", async () => {
    const held = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    serve({
      "/hold": async () => {
        reached.resolve();
        await held.promise;
        return new Reply("held", { headers: plain });
      },
    });
    const idle = client().write(get("/page"));
    await idle.until((text) => text.endsWith("a page"));
    const busy = client().write(get("/hold"));
    await reached.promise;
    const stopped = server.stop();
    await idle.untilOver();
    held.resolve();
    expect(await busy.untilOver()).toEndWith("held");
    await stopped;
  });
});

test.each([
  ["https://gateway.example", "max-age=31536000"],
  ["http://gateway.example", undefined],
])("answers of a service at %s have HSTS %p, and no type to guess", (publicUrl, hsts) => {
  expect(answerHeadersAt(publicUrl)).toEqual({
    "x-content-type-options": "nosniff",
    ...(hsts !== undefined && { "strict-transport-security": hsts }),
  });
});

test.each(["/page", "/platform", "/nowhere"])(
  "%s has the headers of every answer",
  async (path) => {
    serve({ "/platform": () => new Response("a page", { headers: plain }) });
    const { headers } = await fetch(`http://127.0.0.1:${server.port}${path}`);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  },
);
