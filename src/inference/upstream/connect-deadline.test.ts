import { afterEach, expect, test } from "bun:test";
import { createServer } from "node:net";
import { createAuthority } from "../../../test/support/certificates.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { type Clock, systemClock } from "../../platform/kernel/clock.ts";
import { ProxyRules } from "../../platform/kernel/network/proxy-rules.ts";
import { AbortScope } from "./abort-scope.ts";
import { UpstreamClient, upstreamTarget } from "./upstream-client.ts";
import type { UpstreamResponse } from "./response-parser.ts";

const authority = createAuthority();
const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

function startServer(scheme: string): number {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    ...(scheme === "https" ? { tls: authority.issue("127.0.0.1") } : {}),
    fetch: () => new Response("served"),
  });
  ends.push(() => server.stop(true));
  return server.port ?? 0;
}

/** A server that accepts connections and never says a word, so that no TLS handshake ends. */
async function startSilentServer(): Promise<number> {
  const server = createServer((socket) => ends.push(() => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function startClient(clock: Clock): UpstreamClient {
  const rules = new ProxyRules({ https: undefined, http: undefined, none: undefined });
  const client = new UpstreamClient({
    clock,
    network: { proxies: rules, trusted: [authority.cert] },
  });
  ends.push(() => client.close());
  return client;
}

const sendTo = (client: UpstreamClient, url: string): Promise<UpstreamResponse> =>
  client.send({
    target: upstreamTarget(url, {}),
    body: "{}",
    connectTimeoutMs: 50,
    timeouts: { firstTokenMs: 10_000, idleMs: 10_000, totalMs: 10_000 },
    abortScope: new AbortScope(undefined, { aborts: false }),
  });

/** Blocks this thread, as a garbage collection or a suspended machine does. */
function standStill(clock: FakeClock, milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
  clock.standStill(milliseconds);
}

test.each(["http", "https"])(
  "a connect over %s is not blamed for time in which the gateway stood still",
  async (scheme) => {
    const clock = new FakeClock();
    const client = startClient(clock);
    const asked = sendTo(client, `${scheme}://127.0.0.1:${startServer(scheme)}/`);
    standStill(clock, 300);
    const response = await asked;
    expect(await response.readText(1_000)).toBe("served");
  },
);

test("a connect that hangs ends at its timeout", async () => {
  const url = `https://127.0.0.1:${await startSilentServer()}/`;
  const asked = sendTo(startClient(systemClock), url);
  await expect(asked).rejects.toMatchObject({ fault: "connect_timeout", sent: false });
});

test("a connect that hangs ends although the gateway stood still", async () => {
  const clock = new FakeClock();
  const asked = sendTo(startClient(clock), `https://127.0.0.1:${await startSilentServer()}/`);
  standStill(clock, 300);
  // The sweeps of the deadlines read this clock, each some milliseconds after the last one.
  const timer = setInterval(() => clock.advance(10), 5);
  ends.push(() => clearInterval(timer));
  await expect(asked).rejects.toMatchObject({ fault: "connect_timeout", sent: false });
});

test("a connect ends at once where the gateway is about to end", async () => {
  const client = startClient(new FakeClock());
  const asked = sendTo(client, `https://127.0.0.1:${await startSilentServer()}/`);
  client.breakOff();
  await expect(asked).rejects.toMatchObject({ fault: "shutting_down", sent: false });
});
