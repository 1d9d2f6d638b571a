import { expect, test } from "bun:test";
import fc from "fast-check";
import { isWithin, parseRange } from "./address-range.ts";

test.each([
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["10.1.2.3/8", "10.0.0.0/8"],
  [" 192.0.2.7 ", "192.0.2.7/32"],
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["2001:db8::1", "2001:db8::1/128"],
  ["2001:DB8:0:0:1::5/64", "2001:db8::/64"],
  ["::/0", "::/0"],
  ["::ffff:192.0.2.7", "192.0.2.7/32"],
  ["::ffff:10.1.0.0/104", "10.0.0.0/8"],
  ["::ffff:10.0.0.0/90", undefined],
  ["10.0.0.0/33", undefined],
  ["2001:db8::/129", undefined],
  ["10.0.0.0/-1", undefined],
  ["10.0.0.0/8/8", undefined],
  ["10.0.0.0/", undefined],
  ["10.1", undefined],
  ["0x7f.0.0.1", undefined],
  ["2130706433", undefined],
  ["256.0.0.1", undefined],
  ["fe80::1%eth0", undefined],
  ["example.com", undefined],
  ["", undefined],
])("parseRange %p returns %p", (text, cidr) => {
  expect(parseRange(text)?.cidr).toBe(cidr as string);
});

test.each([
  ["10.255.0.1", "10.0.0.0/8", true],
  ["11.0.0.1", "10.0.0.0/8", false],
  ["::ffff:10.255.0.1", "10.0.0.0/8", true],
  ["2001:db8::abcd", "2001:db8::/64", true],
  ["2001:db8:0:1::1", "2001:db8::/64", false],
  ["10.0.0.1", "::/0", false],
  ["2001:db8::1", "0.0.0.0/0", false],
  ["", "0.0.0.0/0", false],
  ["nonsense", "::/0", false],
])("%s within %s is %p", (address, range, within) => {
  const parsed = parseRange(range);
  expect(isWithin(address, parsed === undefined ? [] : [parsed])).toBe(within);
});

test("an IPv4 range contains exactly the addresses with its prefix", () => {
  const address = fc.nat({ max: 0xff_ff_ff_ff });
  const dotted = (value: number): string =>
    [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
  fc.assert(
    fc.property(address, address, fc.nat({ max: 32 }), (one, other, bits) => {
      const range = parseRange(`${dotted(one)}/${bits}`);
      const mask = bits === 0 ? 0 : (~0 << (32 - bits)) >>> 0;
      expect(range && isWithin(dotted(other), [range])).toBe(
        (one & mask) >>> 0 === (other & mask) >>> 0,
      );
    }),
  );
});
