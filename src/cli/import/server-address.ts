import type { SourceNode } from "./source-document.ts";

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

/** Returns the name that a provider gets from its address; undefined where that is none. */
export function hostName(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const { hostname, port } = new URL(address);
  return /^[\d.]+$|^localhost$|^\[/.test(hostname) ? `server-${port || "80"}` : hostname;
}
