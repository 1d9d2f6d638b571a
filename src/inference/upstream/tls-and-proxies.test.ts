import { afterEach, describe, expect, test } from "bun:test";
import { getCACertificates } from "node:tls";
import {
  type Certificate,
  createAuthority,
  selfSigned,
} from "../../../test/support/certificates.ts";
import { startHttpProxy } from "../../../test/support/http-proxy.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import { ProxyRules, type ProxySettings } from "../../platform/kernel/network/proxy-rules.ts";
import { AbortScope } from "./abort-scope.ts";
import { UpstreamClient, upstreamTarget } from "./upstream-client.ts";

const authority = createAuthority();
const ends: (() => unknown)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A provider that answers with the `proxy-authorization` and the path that reached it. */
function startServer(certificate?: Certificate): number {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    ...(certificate === undefined ? {} : { tls: certificate }),
    fetch: ({ url, headers }) =>
      Response.json([new URL(url).pathname, headers.get("proxy-authorization")]),
  });
  ends.push(() => server.stop(true));
  return server.port ?? 0;
}

interface Asking {
  proxies?: Partial<ProxySettings>;
  /** The provider's own. */
  proxy?: string;
  trusted?: readonly string[] | undefined;
  times?: number;
}

const noProxies: ProxySettings = { https: undefined, http: undefined, none: undefined };

/** The answer to a request, or the fault that came in its place. */
async function ask(
  url: string,
  { proxies, proxy, trusted = [authority.cert], times = 1 }: Asking = {},
): Promise<unknown> {
  const network = {
    proxies: new ProxyRules({ ...noProxies, ...proxies }),
    trusted: [...getCACertificates("default"), ...trusted],
  };
  const client = new UpstreamClient({ clock: systemClock, network });
  ends.push(() => client.close());
  const target = upstreamTarget(url, {}, { proxy });
  try {
    let text = "";
    for (let time = 0; time < times; time += 1) {
      const response = await client.send({
        target,
        body: "{}",
        connectTimeoutMs: 2_000,
        timeouts: { firstTokenMs: 5_000, idleMs: 5_000, totalMs: 5_000 },
        abortScope: new AbortScope(undefined, { aborts: false }),
      });
      text = await response.readText(10_000);
      if (response.status !== 200) return response.status;
    }
    return JSON.parse(text);
  } catch (error) {
    return error instanceof Error && "fault" in error ? error.fault : error;
  }
}

describe("a provider's certificate", () => {
  const cases: readonly [name: string, certificate: Certificate, host: string, result: unknown][] =
    [
      ["for its name is accepted", authority.issue("localhost"), "localhost", ["/", null]],
      ["for its address is accepted", authority.issue("127.0.0.1"), "127.0.0.1", ["/", null]],
      ["for another name is refused", authority.issue("other.example"), "localhost", "tls_failed"],
      ["for another address is refused", authority.issue("127.0.0.2"), "127.0.0.1", "tls_failed"],
      [
        "for its name is refused at its address",
        authority.issue("localhost"),
        "127.0.0.1",
        "tls_failed",
      ],
      [
        "that has expired is refused",
        authority.issue("localhost", { ends: new Date(Date.now() - 60_000) }),
        "localhost",
        "tls_failed",
      ],
      ["that is self-signed is refused", selfSigned("localhost"), "localhost", "tls_failed"],
      [
        "of an authority that is not trusted is refused",
        createAuthority().issue("localhost"),
        "localhost",
        "tls_failed",
      ],
    ];
  test.each([...cases])("%s", async (_, certificate, host, result) => {
    const port = startServer(certificate);
    expect(await ask(`https://${host}:${port}/`)).toEqual(result);
  });

  test("of a configured authority is refused without the configuration", async () => {
    const port = startServer(authority.issue("localhost"));
    expect(await ask(`https://localhost:${port}/`, { trusted: [] })).toBe("tls_failed");
  });
});

test("a connection that is reset in its handshake fails at once", async () => {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket) => void socket.terminate() },
  });
  ends.push(() => listener.stop(true));
  expect(await ask(`https://127.0.0.1:${listener.port}/`)).toBe("tls_failed");
});

describe("https through a proxy", () => {
  test("uses a kept tunnel, and sends the proxy's credentials only to the proxy", async () => {
    const proxy = await startHttpProxy({ to: startServer(authority.issue("api.example")) });
    ends.push(() => proxy.stop());
    const proxies = { https: `http://user:p%40ss@127.0.0.1:${proxy.port}` };
    expect(await ask("https://api.example/v1/chat", { proxies, times: 3 })).toEqual([
      "/v1/chat",
      null,
    ]);
    expect(proxy.requests).toEqual([
      {
        line: "CONNECT api.example:443 HTTP/1.1",
        headers: {
          host: "api.example:443",
          "proxy-authorization": `Basic ${Buffer.from("user:p@ss").toString("base64")}`,
        },
      },
    ]);
  });

  test("verifies the provider's certificate", async () => {
    const proxy = await startHttpProxy({ to: startServer(authority.issue("other.example")) });
    ends.push(() => proxy.stop());
    expect(
      await ask("https://api.example/", { proxies: { https: `127.0.0.1:${proxy.port}` } }),
    ).toBe("tls_failed");
  });

  const refusals: Readonly<Record<string, string>> = {
    "credentials that the proxy refuses":
      "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
    "a host that the proxy cannot reach": "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 2\r\n\r\nno",
    "bytes after the proxy's response":
      "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "a response that is not HTTP": "SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "a response without an end": `HTTP/1.1 200 OK\r\nx: ${"x".repeat(32_000)}`,
  };
  test.each(Object.keys(refusals))("fails for %s", async (name) => {
    const proxy = await startHttpProxy({ to: 0, answer: refusals[name] ?? "" });
    ends.push(() => proxy.stop());
    expect(
      await ask("https://api.example/", { proxies: { https: `127.0.0.1:${proxy.port}` } }),
    ).toBe("proxy_refused");
  });

  test("fails if the proxy is unreachable", async () => {
    expect(await ask("https://api.example/", { proxies: { https: "127.0.0.1:1" } })).toBe(
      "connect_failed",
    );
  });
});

describe("http through a proxy", () => {
  test("sends the absolute URL on a kept connection", async () => {
    const proxy = await startHttpProxy({ to: startServer() });
    ends.push(() => proxy.stop());
    const proxies = { http: `http://user:secret@127.0.0.1:${proxy.port}` };
    const proof = `Basic ${Buffer.from("user:secret").toString("base64")}`;
    // The proxy of the test passes on what it should keep, so that the test can see it.
    expect(await ask("http://model.example:8000/v1/chat?a=b", { proxies, times: 2 })).toEqual([
      "/v1/chat",
      proof,
    ]);
    expect(
      proxy.requests.map(({ line, headers }) => [
        line,
        headers["host"],
        headers["proxy-authorization"],
      ]),
    ).toEqual(
      Array.from({ length: 2 }, () => [
        "POST http://model.example:8000/v1/chat?a=b HTTP/1.1",
        "model.example:8000",
        proof,
      ]),
    );
    expect(proxy.connectionCount).toBe(1);
  });
});

describe("a provider's own proxy", () => {
  test("is used for loopback addresses too, unlike the proxy of the environment", async () => {
    const port = startServer();
    const proxy = await startHttpProxy({ to: port });
    ends.push(() => proxy.stop());
    const proxies = { http: `127.0.0.1:${proxy.port}` };
    expect(await ask(`http://127.0.0.1:${port}/`, { proxies })).toEqual(["/", null]);
    expect(proxy.connectionCount).toBe(0);
    expect(await ask(`http://127.0.0.1:${port}/`, { proxy: `127.0.0.1:${proxy.port}` })).toEqual([
      "/",
      null,
    ]);
    expect(proxy.connectionCount).toBe(1);
  });

  test("can be disabled", async () => {
    const proxy = await startHttpProxy({ to: 0 });
    ends.push(() => proxy.stop());
    const proxies = { https: `127.0.0.1:${proxy.port}` };
    // Nothing resolves a name below .invalid (RFC 6761), which only a direct connection asks for.
    expect(await ask("https://api.invalid/", { proxies, proxy: "none" })).toBe("connect_failed");
    expect(proxy.connectionCount).toBe(0);
  });
});
