import { expect, test } from "bun:test";
import { countedAddress } from "./named-windows.ts";

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["::ffff:203.0.113.7", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["2001:db8:1:3::9", "2001:db8:1:3::/64"],
  ["::1", "0:0:0:0::/64"],
  ["", ""],
])("address %p is counted as %p", (address, counted) => {
  expect(countedAddress(address)).toBe(counted);
});
