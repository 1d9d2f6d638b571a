import { expect, test } from "bun:test";
import { pathOf, queryOf, clientAddressReader, type TrustedProxies } from "./request-context.ts";

test.each([
  ["http://127.0.0.1:8787/api/v1/models", "/api/v1/models"],
  ["http://127.0.0.1:8787/api/v1/models?provider=a/b", "/api/v1/models"],
  ["http://[::1]:8787/v1/keys", "/v1/keys"],
  ["http://[::zz/api/v1/keys", "/api/v1/keys"],
  ["/api/v1/credits?x=//y", "/api/v1/credits"],
  ["http://host", ""],
])("pathOf %p returns %p", (url, path) => {
  expect(pathOf({ url })).toBe(path);
});

test("queryOf reads parameters from any URL, even one with an invalid host", () => {
  expect(queryOf({ url: "/generation?id=gen_1&x=a%20b" }).get("id")).toBe("gen_1");
  expect(queryOf({ url: "http://bad host/generation?id=gen_1&x=a%20b" }).get("x")).toBe("a b");
  expect([...queryOf({ url: "http://host/generation" })]).toEqual([]);
});

const proxies = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"];

test.each<[trusted: TrustedProxies, peer: string, forwarded: string | undefined, client: string]>([
  [false, "198.51.100.1", "203.0.113.7", "198.51.100.1"],
  [true, "198.51.100.1", undefined, "198.51.100.1"],
  [true, "198.51.100.1", "203.0.113.7", "203.0.113.7"],
  [true, "198.51.100.1", "6.6.6.6, 203.0.113.7", "203.0.113.7"],
  [true, "198.51.100.1", "203.0.113.7, nonsense", "203.0.113.7"],
  [true, "198.51.100.1", "203.0.113.7:51234", "203.0.113.7"],
  [true, "198.51.100.1", "[2001:db9::5]", "2001:db9::5"],
  [true, "198.51.100.1", "[2001:db9::5]:443", "2001:db9::5"],
  [true, "198.51.100.1", '6.6.6.6, "[2001:db9::5]:443"', "2001:db9::5"],
  [proxies, "10.0.0.1", "6.6.6.6, 203.0.113.7:80, 10.9.9.9:443", "203.0.113.7"],
  [proxies, "10.0.0.1", "2001:db9::5, [2001:db8::2]:8080", "2001:db9::5"],
  [true, "198.51.100.1", "203.0.113.7:port", "198.51.100.1"],
  [proxies, "198.51.100.1", "203.0.113.7", "198.51.100.1"],
  [proxies, "10.0.0.1", "203.0.113.7", "203.0.113.7"],
  [proxies, "10.0.0.1", "6.6.6.6, 203.0.113.7, 10.9.9.9", "203.0.113.7"],
  [proxies, "192.0.2.1", "203.0.113.7", "203.0.113.7"],
  [proxies, "192.0.2.2", "203.0.113.7", "192.0.2.2"],
  [proxies, "2001:db8::1", "2001:db9::5, 2001:db8::2", "2001:db9::5"],
  [proxies, "10.0.0.1", "10.0.0.2", "10.0.0.1"],
  [proxies, "10.0.0.1", "unknown", "10.0.0.1"],
])(
  "with trusted proxies %j, a request of %s with X-Forwarded-For %p comes from %s",
  (trusted, peer, forwarded, client) => {
    const request = new Request(
      "http://gateway/",
      forwarded === undefined ? {} : { headers: { "x-forwarded-for": forwarded } },
    );
    expect(clientAddressReader(trusted)(request, peer)).toBe(client);
  },
);
