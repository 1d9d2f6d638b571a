import { BlockList, isIP } from "node:net";
import type { HttpRequest } from "./http-request.ts";

/** Which proxies may name the client: none, whoever connects, or those in the given ranges (CIDR). */
export type TrustedProxies = boolean | readonly string[];

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(
      address,
      bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits),
      family,
    );
  }
  return list;
}

/** Tells which peers are proxies that may name the client. */
function trustReader(trusted: TrustedProxies): (address: string) => boolean {
  if (typeof trusted === "boolean") return () => trusted;
  const list = blockListOf(trusted);
  return (address) =>
    isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/**
 * Builds the function that says whether a request was encrypted on its way: by this server, or by a trusted proxy that says so in
 * `X-Forwarded-Proto`, whose last entry is that of the nearest proxy.
 */
export function encryptionReader(
  trusted: TrustedProxies,
): (request: Pick<HttpRequest, "headers" | "url">, peer: string) => boolean {
  const isTrusted = trustReader(trusted);
  return ({ headers, url }, peer) =>
    url.startsWith("https:") ||
    (isTrusted(peer) &&
      headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim().toLowerCase() === "https");
}

/**
 * Builds the function that finds a request's client. `X-Forwarded-For` is read from its right end, past
 * the proxies that are trusted: everything left of them may be made up.
 */
export function clientAddressReader(
  trusted: TrustedProxies,
): (request: Pick<HttpRequest, "headers">, peer: string) => string {
  if (trusted === false) return (_, peer) => peer;
  const isTrusted = trustReader(trusted);
  return (request, peer) => {
    if (!isTrusted(peer)) return peer;
    const hops = (request.headers.get("x-forwarded-for") ?? "")
      .split(",")
      .map((hop) => hop.trim())
      .filter((hop) => isIP(hop) !== 0);
    if (trusted === true) return hops.at(-1) ?? peer;
    return hops.reverse().find((hop) => !isTrusted(hop)) ?? peer;
  };
}
