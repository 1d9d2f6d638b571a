import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A range of addresses in CIDR notation (RFC 4632, RFC 4291). */
export interface AddressRange {
  /**
   * The range in normal form: its lowest address and the length of the prefix, such as
   * `10.0.0.0/8`.
   */
  cidr: string;
  network: Address;
  prefixBits: number;
}

/**
 * The prefix length of IPv4-mapped IPv6 addresses (`::ffff:0:0/96`, RFC 4291 section 2.5.5.2), as
 * which sockets show IPv4 clients.
 */
const mappedBits = 96;

/**
 * Parses four decimal parts, or IPv6 without a zone. Other spellings, such as `127.1`, mean
 * different things to different parsers.
 */
function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return ipaddr.IPv6.isValid(text) && !text.includes("%") ? ipaddr.IPv6.parse(text) : undefined;
}

/**
 * Parses an address or a range; undefined when it is neither. Bits beyond the prefix are dropped.
 */
export function parseRange(text: string): AddressRange | undefined {
  const [written = "", bits, ...rest] = text.trim().split("/");
  const address = parseAddress(written);
  if (address === undefined || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits)))
    return undefined;
  const widthBits = address.kind() === "ipv4" ? 32 : 128;
  const prefixBits = bits === undefined ? widthBits : Number(bits);
  if (prefixBits > widthBits) return undefined;
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) {
    return prefixBits < mappedBits
      ? undefined
      : rangeOf(address.toIPv4Address(), prefixBits - mappedBits);
  }
  return rangeOf(address, prefixBits);
}

function rangeOf(address: Address, prefixBits: number): AddressRange {
  const cidr = `${address.toString()}/${prefixBits}`;
  const network =
    address.kind() === "ipv4"
      ? ipaddr.IPv4.networkAddressFromCIDR(cidr)
      : ipaddr.IPv6.networkAddressFromCIDR(cidr);
  return { cidr: `${network.toString()}/${prefixBits}`, network, prefixBits };
}

/** Returns whether an address is in one of the ranges. A malformed address is in none. */
export function isWithin(text: string, ranges: readonly AddressRange[]): boolean {
  const parsed = parseAddress(text);
  if (parsed === undefined) return false;
  const address =
    parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address() : parsed;
  return ranges.some(
    ({ network, prefixBits }) =>
      network.kind() === address.kind() && address.match(network, prefixBits),
  );
}
