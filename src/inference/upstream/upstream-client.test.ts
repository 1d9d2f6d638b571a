import { afterEach, expect, test } from "bun:test";
import type { Ending, ServerNews } from "../../../test/support/closing-server.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { startFaultUpstream } from "../../../test/support/upstream/fault-upstream.ts";
import { json, raw } from "../../../test/support/upstream/steps.ts";
import { AbortScope } from "./abort-scope.ts";
import { UpstreamClient, upstreamTarget } from "./upstream-client.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

function startClient() {
  const clock = new FakeClock();
  const client = new UpstreamClient({ clock });
  ends.push(() => client.close());
  const exchange = (url: string, body: string) =>
    client.send({
      target: upstreamTarget(url, { "content-type": "application/json" }),
      body,
      connectTimeoutMs: 2_000,
      timeouts: { firstTokenMs: 10_000, idleMs: 10_000, totalMs: 10_000 },
      abortScope: new AbortScope(undefined, { aborts: false }),
    });
  const post = async (url: string): Promise<number> => {
    const response = await exchange(url, "{}");
    await response.readText(1_000);
    return response.status;
  };
  return { client, clock, exchange, post };
}

/**
 * A provider that closes its connections on its own thread, while this one is blocked and hears
 * nothing of it.
 */
async function startClosingServer() {
  const worker = new Worker(
    new URL("../../../test/support/closing-server.ts", import.meta.url).href,
  );
  ends.push(() => worker.terminate());
  const port = await new Promise<number>((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<ServerNews>) => {
      if ("port" in data) resolve(data.port);
    };
  });
  return {
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    requests: (count: number) =>
      new Promise<void>((resolve) => {
        worker.onmessage = ({ data }: MessageEvent<ServerNews>) => {
          if ("request" in data && data.request === count) resolve();
        };
      }),
    closeUnheard(how: Ending["how"]) {
      const done = new SharedArrayBuffer(4);
      worker.postMessage({ how, done } satisfies Ending);
      Atomics.wait(new Int32Array(done), 0, 0);
    },
  };
}

/**
 * @see RFC 9110, 9.2.2: a request with a method that is not idempotent is not repeated where it may
 * have been executed.
 */
test("a request sent on a kept connection is not repeated if the connection closes without a response", async () => {
  const upstream = await startFaultUpstream();
  ends.push(() => upstream.stop());
  const { post } = startClient();
  const url = `${upstream.baseUrl}/chat/completions`;
  expect(await post(url)).toBe(200);
  const worksThenCloses = upstream.gate();
  upstream.enqueue([worksThenCloses, raw(""), { kind: "cut" }], json({}));
  const asked = post(url);
  await worksThenCloses.reached;
  worksThenCloses.open();
  await expect(asked).rejects.toMatchObject({ fault: "connection_closed", sent: true });
  expect([upstream.requests.length, upstream.connectionCount]).toEqual([2, 1]);
});

test("a request that was not sent at all is repeated on a new connection", async () => {
  const server = await startClosingServer();
  const { post } = startClient();
  expect(await post(server.url)).toBe(200);
  const second = server.requests(2);
  server.closeUnheard("reset");
  expect(await post(server.url)).toBe(200);
  await second;
});

test("a pending close of an idle connection is detected before a request is written to it", async () => {
  const server = await startClosingServer();
  const { clock, post } = startClient();
  expect(await post(server.url)).toBe(200);
  const second = server.requests(2);
  clock.advance(1_500);
  server.closeUnheard("finish");
  const answered = post(server.url);
  // A timer that is due by now fires before sockets are polled again.
  Bun.sleepSync(5);
  expect(await answered).toBe(200);
  await second;
});

test.each([
  ["the same connection after a quiet minute", 60_000, 1],
  ["another one after a minute and a half", 91_000, 2],
])("a request takes %s", async (_, quietMs, connections) => {
  const upstream = await startFaultUpstream();
  ends.push(() => upstream.stop());
  const { clock, post } = startClient();
  const url = `${upstream.baseUrl}/chat/completions`;
  expect(await post(url)).toBe(200);
  clock.advance(quietMs);
  expect(await post(url)).toBe(200);
  expect(upstream.connectionCount).toBe(connections);
});

test("idle connections that are no longer needed are closed", async () => {
  const upstream = await startFaultUpstream();
  ends.push(() => upstream.stop());
  const { client, clock, post } = startClient();
  const url = `${upstream.baseUrl}/chat/completions`;
  await Promise.all([post(url), post(url), post(url)]);
  expect(client.connectionCount).toBe(3);
  for (let minute = 0; minute < 2; minute += 1) {
    clock.advance(60_000);
    await post(url);
  }
  expect([client.connectionCount, upstream.connectionCount]).toEqual([1, 3]);
});

test.each([
  ["ASCII, joined to its head", '{"a":"plain"}'],
  ["other text, joined to its head", '{"a":"über 日本"}'],
  ["ASCII, more than a socket takes at once", `{"a":"${"plain ".repeat(2_000_000)}"}`],
  ["other text, more than a socket takes at once", `{"a":"${"über 日本 ".repeat(700_000)}"}`],
])("a body arrives as it is: %s", async (_, body) => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const bytes = await request.bytes();
      return new Response(Bun.SHA256.hash(bytes, "hex"), {
        headers: { "x-bytes": `${bytes.length}` },
      });
    },
  });
  ends.push(() => server.stop(true));
  const { exchange } = startClient();
  const response = await exchange(`${server.url}`, body);
  expect(await response.readText(1_000)).toBe(Bun.SHA256.hash(body, "hex"));
  expect(response.headers["x-bytes"]).toBe(String(Buffer.byteLength(body)));
  // The connection is kept, and its next request arrives whole, too.
  const next = await exchange(`${server.url}`, "{}");
  expect(await next.readText(1_000)).toBe(Bun.SHA256.hash("{}", "hex"));
});
