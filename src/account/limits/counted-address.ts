import ipaddr from "ipaddr.js";

/** Bits of an IPv6 address that name a subscriber's network; the rest is theirs to choose (RFC 6177, RFC 8981). */
const networkParts = 4;

/**
 * What anonymous requests are counted by: an IPv4 address, however it is written, or the /64 network of an
 * IPv6 address, whose owner has as many addresses as it likes.
 */
export function countedAddress(address: string): string {
  if (!address.includes(":") || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, networkParts)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
