import ipaddr from "ipaddr.js";
import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { type AddressRange, isWithin } from "../kernel/network/address-range.ts";

/** Resolves a name to all of its addresses. */
type Resolve = (name: string) => Promise<readonly string[]>;

/** The networks that callers' addresses may reach. */
export interface AddressGuard {
  /**
   * Ranges of the operator's own networks that may be reached although they are private, also
   * without TLS.
   */
  allowed: readonly AddressRange[];
  resolve?: Resolve;
  /** All certificates that are trusted, in PEM, in place of the platform's own list. */
  trusted?: readonly string[];
}

/** An address that may be called, with the IP address that its name currently resolves to. */
export interface SafeTarget {
  url: URL;
  address: string;
}

const resolveByDns: Resolve = async (name) =>
  (await lookup(name, { all: true })).map(({ address }) => address);

/**
 * The range that IANA has allocated for global unicast. Addresses outside of it, such as
 * `::127.0.0.1`, lead nowhere or back into a network.
 */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Identifiers of ISATAP interfaces (RFC 5214, 6.1), in the third quarter of the address. Their last
 * half is an IPv4 address.
 */
const isatapParts: readonly (readonly number[])[] = [
  [0, 0x5efe],
  [0x200, 0x5efe],
];

/**
 * Returns whether an address is on the public internet. Addresses that lead back into a network,
 * also through tunnels and translations, are not.
 */
export function isPublicAddress(text: string): boolean {
  // The package parses the IPv4-compatible `::10.0.0.1` as `::ffff:10.0.0.1`, which is another
  // address.
  if (!ipaddr.isValid(text) || /^::\d+\./.test(text)) return false;
  // An IPv4-mapped address is judged as the IPv4 address.
  const address = ipaddr.process(text);
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv4) return true;
  return (
    address.match(globalUnicast) &&
    !isatapParts.some(([high, low]) => address.parts[4] === high && address.parts[5] === low)
  );
}

/** Thrown with the reason why a URL must not be called. */
export class UnsafeTargetError extends Error {}

/** Parses a URL without resolving its name. Throws `UnsafeTargetError`. */
function parseTarget(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UnsafeTargetError("must be an https URL");
  if (url.username !== "" || url.password !== "")
    throw new UnsafeTargetError("must not hold credentials");
  return url;
}

/**
 * Resolves a URL's name, and refuses addresses in a private network (SSRF). The caller has to
 * connect to the returned address, so that the name cannot resolve to another one meanwhile. Throws
 * `UnsafeTargetError`.
 */
export async function resolveTarget(
  text: string,
  { allowed, resolve = resolveByDns }: AddressGuard,
): Promise<SafeTarget> {
  const url = parseTarget(text);
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = ipaddr.isValid(name) ? [name] : await resolve(name).catch(() => []);
  const [address] = addresses;
  if (address === undefined)
    throw new UnsafeTargetError("leads to no address: the name is not known");
  const own = addresses.every((each) => isWithin(each, allowed));
  if (!own && !addresses.every(isPublicAddress))
    throw new UnsafeTargetError("must not lead into a private network");
  if (!own && url.protocol !== "https:") throw new UnsafeTargetError("must be an https URL");
  return { url, address };
}

/**
 * The options of a guarded request. The caller has to follow redirects itself, and cookies are
 * never kept.
 */
export type GuardedRequest = Omit<RequestInit, "redirect" | "headers" | "signal"> & {
  headers?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /**
   * False leaves a compressed body as it came, so that a small answer cannot become a large one.
   */
  decompress?: false;
};

/**
 * Sends a request to a URL that the gateway does not control. Connects to the address that was
 * checked, even if the name resolves to another one meanwhile. Throws `UnsafeTargetError` for a URL
 * that leads into a private network.
 */
export async function guardedFetch(
  text: string,
  { headers = {}, ...request }: GuardedRequest,
  guard: AddressGuard,
): Promise<Response> {
  const { url, address } = await resolveTarget(text, guard);
  const pinned = new URL(url);
  pinned.hostname = isIPv6(address) ? `[${address}]` : address;
  return fetch(pinned, {
    ...request,
    redirect: "manual",
    headers: { ...headers, host: url.host },
    tls: {
      serverName: url.hostname.replace(/^\[|\]$/g, ""),
      ...(guard.trusted === undefined ? {} : { ca: [...guard.trusted] }),
    },
  });
}
