import { expect, test } from "bun:test";
import type { NetworkInterfaceInfo } from "node:os";
import { networkAddresses } from "./announcement.ts";

const info = (address: string, more: Partial<NetworkInterfaceInfo> = {}): NetworkInterfaceInfo =>
  ({
    address,
    family: "IPv4",
    internal: false,
    mac: "00:00:00:00:00:00",
    netmask: "255.255.255.0",
    cidr: null,
    ...more,
  }) as NetworkInterfaceInfo;

test("the addresses for other machines are the external ones of IPv4", () => {
  const interfaces = {
    lo: [info("127.0.0.1", { internal: true })],
    eth0: [info("10.0.0.5"), info("fd00::5", { family: "IPv6", scopeid: 0 })],
  };
  expect(networkAddresses(() => interfaces)).toEqual(["10.0.0.5"]);
});

test("a system that does not list its addresses does not stop the start", () => {
  const refuse = (): never => {
    throw new Error("A system error occurred: getifaddrs returned an error");
  };
  expect(networkAddresses(refuse)).toEqual([]);
});
