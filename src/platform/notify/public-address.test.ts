import { expect, test } from "bun:test";
import { parseRange } from "../kernel/network/address-range.ts";
import { isPublicAddress, resolveTarget } from "./public-address.ts";

test.each([
  ["93.184.215.14", true],
  ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", true],
  ["127.0.0.1", false],
  ["127.1.2.3", false],
  ["10.0.0.1", false],
  ["172.16.0.1", false],
  ["192.168.1.1", false],
  ["169.254.169.254", false],
  ["100.64.0.1", false],
  ["0.0.0.0", false],
  ["224.0.0.1", false],
  ["255.255.255.255", false],
  ["198.18.0.1", false],
  ["192.0.2.1", false],
  ["::1", false],
  ["::", false],
  ["fc00::1", false],
  ["fd12::1", false],
  ["fe80::1", false],
  ["ff02::1", false],
  ["2001:db8::1", false],
  ["::ffff:127.0.0.1", false],
  ["::ffff:10.0.0.1", false],
  ["::ffff:93.184.215.14", true],
  ["64:ff9b::7f00:1", false],
  // IPv4-compatible, NAT64 (well-known and local), IPv4-translated, 6to4, ISATAP, site-local,
  // segment routing, documentation, discard-only.
  ["::127.0.0.1", false],
  ["::7f00:1", false],
  ["::10.0.0.1", false],
  ["::a9fe:a9fe", false],
  ["::93.184.215.14", false],
  ["64:ff9b::127.0.0.1", false],
  ["64:ff9b::5db8:d70e", false],
  ["64:ff9b:1::7f00:1", false],
  ["64:ff9b:1:ffff::10.0.0.1", false],
  ["::ffff:0:127.0.0.1", false],
  ["::ffff:0:7f00:1", false],
  ["::ffff:7f00:1", false],
  ["::ffff:a9fe:a9fe", false],
  ["2002:a9fe:a9fe::1", false],
  ["2002:5db8:d70e::1", false],
  ["2001:0:7f00:1::1", false],
  ["2606:2800::5efe:7f00:1", false],
  ["2606:2800::200:5efe:10.0.0.1", false],
  ["fec0::1", false],
  ["5f00::1", false],
  ["3fff::1", false],
  ["100::1", false],
  ["4000::1", false],
  ["2001:2::1", false],
  ["2001:20::1", false],
  ["2606:4700::1111", true],
  ["2a00:1450:4001:82a::200e", true],
  ["2002:7f00:1::1", false],
  ["2001::1", false],
  ["nonsense", false],
])("isPublicAddress %s returns %p", (address, is) => {
  expect(isPublicAddress(address)).toBe(is);
});

const guard = (addresses: string[], allowed: string[] = []) => ({
  allowed: allowed.flatMap((range) => parseRange(range) ?? []),
  resolve: async () => addresses,
});

test.each([
  ["https://hooks.example.com/x", ["93.184.215.14"]],
  ["https://hooks.example.com:8443/", ["93.184.215.14", "2606:4700::1"]],
  ["https://93.184.215.14/", []],
])("resolveTarget accepts %s", async (url, addresses) => {
  expect(await resolveTarget(url, guard(addresses))).toMatchObject({
    address: addresses[0] ?? "93.184.215.14",
  });
});

test.each([
  ["http://hooks.example.com/", ["93.184.215.14"], "https"],
  ["ftp://hooks.example.com/", ["93.184.215.14"], "https"],
  ["https://user:word@hooks.example.com/", ["93.184.215.14"], "credentials"],
  ["https://hooks.example.com/", [], "not known"],
  ["https://hooks.example.com/", ["127.0.0.1"], "private"],
  ["https://hooks.example.com/", ["93.184.215.14", "10.0.0.1"], "private"],
  ["https://127.0.0.1/", [], "private"],
  ["https://2130706433/", [], "private"],
  ["https://0x7f.1/", [], "private"],
  ["https://[::127.0.0.1]/", [], "private"],
  ["https://[::7f00:1]/", [], "private"],
  ["https://[64:ff9b::169.254.169.254]/", [], "private"],
  ["https://[0:0:0:0:0:ffff:7f00:0001]/", [], "private"],
  ["https://hooks.example.com/", ["::10.0.0.1"], "private"],
  ["https://[::1]/", [], "private"],
  ["https://[::ffff:7f00:1]/", [], "private"],
  ["https://169.254.169.254/latest/meta-data", [], "private"],
  ["not a url", [], "https"],
])("resolveTarget refuses %s at %j", async (url, addresses, why) => {
  expect(
    await resolveTarget(url, guard(addresses)).catch((error: unknown) => String(error)),
  ).toContain(why);
});

test("resolveTarget accepts only the configured private networks, also without TLS", async () => {
  const own = guard(["10.1.2.3"], ["10.0.0.0/8"]);
  expect(await resolveTarget("http://relay.internal/", own)).toMatchObject({ address: "10.1.2.3" });
  const mixed = guard(["10.1.2.3", "192.168.0.1"], ["10.0.0.0/8"]);
  expect(await resolveTarget("https://relay.internal/", mixed).catch(String)).toContain("private");
});
