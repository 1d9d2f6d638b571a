import { expect, test } from "bun:test";
import { clientAddressReader, type TrustedProxies } from "./http-request.ts";

const proxies = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"];

test.each<[trusted: TrustedProxies, peer: string, forwarded: string | undefined, client: string]>([
  [false, "198.51.100.1", "203.0.113.7", "198.51.100.1"],
  [true, "198.51.100.1", undefined, "198.51.100.1"],
  [true, "198.51.100.1", "203.0.113.7", "203.0.113.7"],
  [true, "198.51.100.1", "6.6.6.6, 203.0.113.7", "203.0.113.7"],
  [true, "198.51.100.1", "203.0.113.7, nonsense", "203.0.113.7"],
  [proxies, "198.51.100.1", "203.0.113.7", "198.51.100.1"],
  [proxies, "10.0.0.1", "203.0.113.7", "203.0.113.7"],
  [proxies, "10.0.0.1", "6.6.6.6, 203.0.113.7, 10.9.9.9", "203.0.113.7"],
  [proxies, "192.0.2.1", "203.0.113.7", "203.0.113.7"],
  [proxies, "192.0.2.2", "203.0.113.7", "192.0.2.2"],
  [proxies, "2001:db8::1", "2001:db9::5, 2001:db8::2", "2001:db9::5"],
  [proxies, "10.0.0.1", "10.0.0.2", "10.0.0.1"],
  [proxies, "10.0.0.1", "unknown", "10.0.0.1"],
])(
  "trusting %j, a request of %s that says %p comes from %s",
  (trusted, peer, forwarded, client) => {
    const request = new Request(
      "http://gateway/",
      forwarded === undefined ? {} : { headers: { "x-forwarded-for": forwarded } },
    );
    expect(clientAddressReader(trusted)(request, peer)).toBe(client);
  },
);
