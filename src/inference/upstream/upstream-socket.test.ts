import { afterEach, describe, expect, test } from "bun:test";
import { createAuthority } from "../../../test/support/certificates.ts";
import { startHttpProxy } from "../../../test/support/http-proxy.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import { ProxyRules, type ProxySettings } from "../../platform/kernel/network/proxy-rules.ts";
import { UpstreamClient } from "./upstream-client.ts";
import { UpstreamSocket } from "./upstream-socket.ts";

const authority = createAuthority();
const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Starts a provider that answers each frame with it, over TLS where a name is given. */
function startEcho(host?: string): number {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    ...(host !== undefined && { tls: authority.issue(host) }),
    fetch: (request, self) =>
      self.upgrade(request, { data: undefined }) ? undefined : new Response("no", { status: 400 }),
    websocket: { message: (socket, text) => void socket.send(text) },
  });
  ends.push(() => server.stop(true));
  return server.port ?? 0;
}

/** Opens a socket with some settings of the network, and returns what its provider echoes. */
async function echoThrough(
  url: string,
  {
    proxies,
    proxy,
    trusted = [authority.cert],
  }: { proxies?: Partial<ProxySettings>; proxy?: string; trusted?: readonly string[] } = {},
): Promise<string> {
  const client = new UpstreamClient({
    clock: systemClock,
    network: {
      proxies: new ProxyRules({ https: undefined, http: undefined, none: undefined, ...proxies }),
      ...(trusted.length > 0 && { trusted }),
    },
  });
  ends.push(() => client.close());
  const socket = await UpstreamSocket.open({
    url,
    headers: {},
    connectTimeoutMs: 10_000,
    route: client.routeTo(url, proxy),
  });
  const echoed = new Promise<string>((resolve) =>
    socket.listen({ received: resolve, closed: () => resolve("closed") }),
  );
  socket.send("hello");
  const text = await echoed;
  socket.close();
  return text;
}

describe("a provider's socket", () => {
  test("trusts the operator's certificates, and no others", async () => {
    const url = `https://localhost:${startEcho("localhost")}/realtime`;
    expect(await echoThrough(url)).toBe("hello");
    await expect(echoThrough(url, { trusted: [] })).rejects.toThrow();
    const elsewhere = `https://localhost:${startEcho("other.example")}/realtime`;
    await expect(echoThrough(elsewhere)).rejects.toThrow();
  });

  test("goes through the proxy of its scheme, which alone reads the proxy's credentials", async () => {
    const proxy = await startHttpProxy({ to: startEcho("api.example") });
    ends.push(() => proxy.stop());
    const https = `http://user:p%40ss@127.0.0.1:${proxy.port}`;
    expect(await echoThrough("https://api.example/realtime", { proxies: { https } })).toBe("hello");
    expect(proxy.requests[0]?.line).toBe("CONNECT api.example:443 HTTP/1.1");
    expect(proxy.requests[0]?.headers["proxy-authorization"]).toBe(
      `Basic ${Buffer.from("user:p@ss").toString("base64")}`,
    );
  });

  test("goes through its provider's own proxy, and round the gateway's where that is none", async () => {
    const port = startEcho();
    const proxy = await startHttpProxy({ to: port });
    ends.push(() => proxy.stop());
    const url = "http://api.example/realtime";
    const own = `http://127.0.0.1:${proxy.port}`;
    expect(await echoThrough(url, { proxy: own, trusted: [] })).toBe("hello");
    const direct = `http://127.0.0.1:${port}/realtime`;
    const proxies = { http: "http://127.0.0.1:1" };
    expect(await echoThrough(direct, { proxies, proxy: "none", trusted: [] })).toBe("hello");
  });
});

test("a frame that its receiver cannot work on closes the socket, once", async () => {
  const url = `http://127.0.0.1:${startEcho()}`;
  const client = new UpstreamClient({ clock: systemClock });
  ends.push(() => client.close());
  const socket = await UpstreamSocket.open({
    url,
    headers: {},
    connectTimeoutMs: 10_000,
    route: client.routeTo(url, undefined),
  });
  const codes: number[] = [];
  const closed = new Promise<void>((resolve) =>
    socket.listen({
      received: (text) => void JSON.parse(text),
      closed(code) {
        codes.push(code);
        resolve();
      },
    }),
  );
  socket.send("no JSON");
  socket.send("none either");
  await closed;
  expect(codes).toEqual([1011]);
});
