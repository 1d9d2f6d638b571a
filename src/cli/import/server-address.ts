import { isWithin, parseRange } from "../../platform/kernel/network/address-range.ts";
import type { SourceNode } from "./source-node.ts";

/**
 * Returns a server's address as the configuration can have it; reports what changes. A host whose
 * last part is a number, such as `qwen3.6`, counts in URLs as an IPv4 address, which it is not: its
 * dots become dashes.
 */
export function usableAddress(node: SourceNode | undefined, address: string): string {
  const withDefaults = address.replaceAll(/\$\{([A-Za-z_]\w*)\}/g, (_, variable: string) => {
    node?.report("changed", `set ${variable} before the gateway starts`);
    return `\${${variable}:-${variable.toLowerCase().replaceAll("_", "-")}.invalid}`;
  });
  const [, scheme, host = "", rest] = /^(https?:\/\/)([^/:]+)(.*)$/.exec(withDefaults) ?? [];
  const plainHost = host.replaceAll(".", "-");
  const isNumbered = !URL.canParse(withDefaults) && URL.canParse(`${scheme}${plainHost}${rest}`);
  if (!isNumbered || host.includes("$")) return withDefaults;
  node?.report(
    "changed",
    `no URL can have the host ${host}, which ends in a number: let the server also answer as ${plainHost}`,
  );
  return `${scheme}${plainHost}${rest}`;
}

/** Returns an address that a variable holds, with a default that reaches no server until it is set. */
export function addressIn(node: SourceNode | undefined, variable: string): string {
  node?.report("changed", `set ${variable} before the gateway starts, without a slash at its end`);
  return `\${${variable}:-http://${variable.toLowerCase().replaceAll("_", "-")}.invalid}`;
}

/** Networks of a machine or of a house: loopback, private, link-local and shared addresses. */
const ownNetworks = [
  ...["127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"],
  ...["100.64.0.0/10", "0.0.0.0/32", "::1/128", "fc00::/7", "fe80::/10"],
].flatMap((text) => parseRange(text) ?? []);

/** Names that only a private network resolves: of one part, or below these. */
const ownName = /^[^.]+$|\.(?:local|lan|home|internal|intranet|invalid|svc|test)$/;

/** Returns whether an address is that of a server on a private network, which charges nothing. */
export function isOwnServer(address: string | undefined): boolean {
  if (address === undefined || !URL.canParse(address)) return false;
  const host = new URL(address).hostname.replace(/^\[|\]$/g, "");
  return isWithin(host, ownNetworks) || (!host.includes(":") && ownName.test(host));
}

/** Returns the name that a provider gets from its address; undefined where that is none. */
export function hostName(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const { hostname, port } = new URL(address);
  return /^[\d.]+$|^localhost$|^\[/.test(hostname) ? `server-${port || "80"}` : hostname;
}
