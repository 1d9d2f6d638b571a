import { BlockList, isIP } from "node:net";
import type { HttpRequest } from "./http-request.ts";

/** Which proxies may name the client: none, whoever connects, or those in the given ranges (CIDR). */
export type TrustedProxies = boolean | readonly string[];

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    list.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return list;
}

/**
 * Builds the function that finds a request's client. `X-Forwarded-For` is read from its right end, past
 * the proxies that are trusted: everything left of them may be made up.
 */
export function clientAddressReader(trusted: TrustedProxies): (request: Pick<HttpRequest, "headers">, peer: string) => string {
  if (trusted === false) return (_, peer) => peer;
  const list = trusted === true ? undefined : blockListOf(trusted);
  const isTrusted = (address: string): boolean =>
    list === undefined || (isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4"));
  return (request, peer) => {
    if (list !== undefined && !isTrusted(peer)) return peer;
    const hops = (request.headers.get("x-forwarded-for") ?? "").split(",").map((hop) => hop.trim()).filter((hop) => isIP(hop) !== 0);
    if (list === undefined) return hops.at(-1) ?? peer;
    return hops.reverse().find((hop) => !isTrusted(hop)) ?? peer;
  };
}
