import type { HttpRequest } from "../http/served-request.ts";
import {
  type AddressRange,
  isWithin,
  parseRange,
} from "../platform/kernel/network/address-range.ts";

/** The key of a door, for callers who cannot send any, and where they have to be. */
interface DoorKey {
  /** An LLM key's secret. */
  key: string;
  /** Ranges (CIDR) beside loopback addresses. */
  networks: readonly string[];
}

/** Keys by the name of a door, such as `ollama`. */
export type DoorKeys = Readonly<Record<string, DoorKey>>;

const loopbackRanges = rangesOf(["127.0.0.0/8", "::1/128"]);

function rangesOf(networks: readonly string[]): AddressRange[] {
  return networks.flatMap((network) => parseRange(network) ?? []);
}

/** Matches the host names that a program on the same machine uses, or an address. */
const localHost = /^(?:localhost|\[[\da-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i;

/** Headers by which proxies name the client for whom they ask; their sender is not the caller itself. */
const proxyHeaders = [
  ...["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-server"],
  ...["forwarded", "x-real-ip", "via", "cf-connecting-ip", "cf-ray", "true-client-ip"],
  ...["x-client-ip", "x-cluster-client-ip", "fastly-client-ip", "x-envoy-external-address"],
] as const;

/**
 * Returns the key of a door for a request without a credential; undefined where it has none. Only
 * requests from loopback or the listed networks have it, that no proxy forwarded unless the gateway
 * trusts it, and that no web page caused: those name the page as their origin, or a host of their
 * own.
 */
export function doorKeyFor(
  doors: DoorKeys,
  {
    door,
    address,
    request,
    isProxyTrusted,
  }: {
    door: string;
    address: string;
    request: Pick<HttpRequest, "headers">;
    isProxyTrusted: boolean;
  },
): string | undefined {
  const known = doors[door];
  if (known === undefined) return undefined;
  const { headers } = request;
  const isProxied = proxyHeaders.some((name) => headers.has(name));
  // Behind a trusted proxy loopback is the proxy itself: its header named no client, or another proxy.
  if (isProxied && (!isProxyTrusted || isWithin(address, loopbackRanges))) return undefined;
  if (headers.has("origin") || headers.has("sec-fetch-site")) return undefined;
  if (!localHost.test(headers.get("host") ?? "")) return undefined;
  const ranges = [...loopbackRanges, ...rangesOf(known.networks)];
  return isWithin(address, ranges) ? known.key : undefined;
}
