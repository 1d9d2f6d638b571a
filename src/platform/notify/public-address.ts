import ipaddr from "ipaddr.js";
import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { type AddressRange, isWithin } from "../kernel/network/address-range.ts";

/** Finds every address of a name. */
type Resolve = (name: string) => Promise<readonly string[]>;

/** Where callers' addresses may lead. */
export interface AddressGuard {
  /** Ranges of the operator's own networks that may be reached all the same, also without TLS. */
  allowed: readonly AddressRange[];
  resolve?: Resolve;
  /** All certificates that are trusted, in PEM, in place of the platform's own list. */
  trusted?: readonly string[];
}

/** An address that may be called, and the address that its name has at this moment. */
export interface SafeTarget {
  url: URL;
  address: string;
}

const resolveByDns: Resolve = async (name) =>
  (await lookup(name, { all: true })).map(({ address }) => address);

/**
 * All that IANA has given out for global unicast. What is outside of it, such as `::127.0.0.1`,
 * leads nowhere or back into a network.
 */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Identifiers of ISATAP interfaces (RFC 5214, 6.1), whose last half is an IPv4 address: the third
 * quarter of the address.
 */
const isatapParts: readonly (readonly number[])[] = [
  [0, 0x5efe],
  [0x200, 0x5efe],
];

/**
 * Whether an address is one of the public internet; addresses that lead back into a network, also
 * through tunnels and translations, are not.
 */
export function isPublicAddress(text: string): boolean {
  // The package reads the IPv4-compatible `::10.0.0.1` as if it were `::ffff:10.0.0.1`, which is
  // another address.
  if (!ipaddr.isValid(text) || /^::\d+\./.test(text)) return false;
  // IPv4 in IPv6's clothes is judged as what it is.
  const address = ipaddr.process(text);
  if (address.range() !== "unicast") return false;
  if (address instanceof ipaddr.IPv4) return true;
  return (
    address.match(globalUnicast) &&
    !isatapParts.some(([high, low]) => address.parts[4] === high && address.parts[5] === low)
  );
}

/** Why a URL must not be called. */
export class UnsafeTargetError extends Error {}

/** The URL as it is written, without a look at where its name leads. Throws `UnsafeTargetError`. */
function parseTarget(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UnsafeTargetError("must be an https URL");
  if (url.username !== "" || url.password !== "")
    throw new UnsafeTargetError("must not hold credentials");
  return url;
}

/**
 * Looks a URL's name up, and refuses what leads into a private network (SSRF). The caller has to
 * connect to the address that this gives, so that the name cannot mean another one a moment later.
 * Throws `UnsafeTargetError`.
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
 * What a guarded request is made of; redirects are the caller's to judge, and cookies are never
 * kept.
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
 * judged, also when the name resolves to another one a moment later. Throws `UnsafeTargetError` for
 * a URL that leads into a private network.
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
