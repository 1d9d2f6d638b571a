import { describe, expect, test } from "bun:test";
import { parseProxy, proxyProblem, ProxyRules } from "./proxy-rules.ts";

describe("a proxy address", () => {
  test("may omit its scheme and port, and may contain credentials", () => {
    expect(parseProxy("proxy.example:3128")).toEqual({
      host: "proxy.example",
      port: 3128,
      authorization: undefined,
    });
    expect(parseProxy("http://u%40x:p%3Aw@[::1]")).toEqual({
      host: "::1",
      port: 80,
      authorization: `Basic ${Buffer.from("u@x:p:w").toString("base64")}`,
    });
  });

  test.each([
    "socks5://proxy:1080",
    "https://proxy",
    "http://",
    "http://proxy/path",
    "http://proxy?x",
  ])("%s is refused", (text) => {
    expect(proxyProblem(text)).toStartWith("expected the address of a proxy");
  });

  test.each(["proxy", "proxy:8080", "http://user:pass@10.0.0.1:3128/"])(
    "%s is accepted",
    (text) => {
      expect(proxyProblem(text)).toBeUndefined();
    },
  );
});

/** Whether a request for a URL goes out directly although there is a proxy. */
function isDirect(url: string, none: string): boolean {
  const { protocol, hostname, port } = new URL(url);
  const secure = protocol === "https:";
  const rules = new ProxyRules({ https: "http://secure-proxy", http: "http://plain-proxy", none });
  return (
    rules.proxyFor({
      secure,
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || (secure ? 443 : 80)),
    }) === undefined
  );
}

const direct: readonly [none: string, url: string][] = [
  ["*", "https://api.example"],
  ["example.com", "https://example.com"],
  ["example.com", "https://api.example.com"],
  ["EXAMPLE.com", "https://API.example.com"],
  [".example.com", "https://api.example.com"],
  [".example.com", "https://example.com"],
  ["*.example.com", "https://a.example.com"],
  ["a.test, example.com", "https://example.com"],
  ["a.test example.com", "https://example.com"],
  ["example.com:8443", "https://example.com:8443"],
  ["example.com:443", "https://example.com"],
  ["10.0.0.0/8", "http://10.20.30.40"],
  ["10.1.2.3", "http://10.1.2.3:8000"],
  ["10.1.2.3:8000", "http://10.1.2.3:8000"],
  ["fd00::/8", "http://[fd12::1]"],
  ["[fd12::1]:8000", "http://[fd12::1]:8000"],
  ["fd12::1", "http://[fd12::1]"],
  ["", "http://localhost:11434"],
  ["", "http://127.0.0.1:11434"],
  ["", "http://127.8.9.10"],
  ["", "http://[::1]:11434"],
  ["", "http://model.localhost"],
];

const proxied: readonly [none: string, url: string][] = [
  ["", "https://api.example"],
  ["example.com", "https://badexample.com"],
  ["example.com", "https://example.com.evil.test"],
  ["example.com:8443", "https://example.com"],
  ["10.0.0.0/8", "http://11.0.0.1"],
  ["10.0.0.0/8", "http://ten.example"],
  ["10.1.2.3:8000", "http://10.1.2.3:8001"],
  ["10.0.0.0/99", "http://10.0.0.1"],
  ["fd00::/8", "http://10.0.0.1"],
];

describe("NO_PROXY", () => {
  test.each([...direct])("%p lets requests to %p bypass the proxy", (none, url) =>
    expect(isDirect(url, none)).toBe(true),
  );
  test.each([...proxied])("%p sends requests to %p through the proxy", (none, url) =>
    expect(isDirect(url, none)).toBe(false),
  );
});

test("ProxyRules has a separate proxy for each scheme", () => {
  const rules = new ProxyRules({ https: "http://one", http: undefined, none: undefined });
  expect(rules.proxyFor({ secure: true, host: "api.example", port: 443 })?.host).toBe("one");
  expect(rules.proxyFor({ secure: false, host: "api.example", port: 80 })).toBeUndefined();
});
