import { BlockList, isIP } from "node:net";

/** An HTTP proxy, as a request needs it. */
export interface Proxy {
  host: string;
  port: number;
  /** The value of `Proxy-Authorization`, a secret; absent where the proxy needs none. */
  authorization: string | undefined;
}

/** The origin that a request is for. */
export interface ProxiedOrigin {
  secure: boolean;
  /** A name, or an address without brackets. */
  host: string;
  port: number;
}

/** The variables that name proxies. */
export interface ProxySettings {
  https: string | undefined;
  http: string | undefined;
  none: string | undefined;
}

const withScheme = (text: string): string =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;

/** Returns what is wrong with the address of a proxy; undefined where it is valid. */
export function proxyProblem(text: string): string | undefined {
  const expected =
    "expected the address of a proxy such as http://USER:PASSWORD@proxy.example.com:3128";
  if (!URL.canParse(withScheme(text))) return expected;
  const { protocol, hostname, pathname, search } = new URL(withScheme(text));
  if (protocol !== "http:") {
    return `${expected}; ${protocol} is not supported, and a provider's https goes through an http:// proxy encrypted as it is`;
  }
  return hostname === "" || pathname !== "/" || search !== "" ? expected : undefined;
}

/** Parses a valid address of a proxy. The scheme may be missing, as with curl and Go. */
export function parseProxy(text: string): Proxy {
  const { hostname, port, username, password } = new URL(withScheme(text));
  const credentials = `${decoded(username)}:${decoded(password)}`;
  return {
    host: withoutBrackets(hostname),
    port: port === "" ? 80 : Number(port),
    authorization:
      credentials === ":" ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

/** Decodes percent encoding. A percent sign that begins no encoded byte is kept. */
const decoded = (text: string): string =>
  decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, "%25"));

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, "");

/**
 * Chooses the proxy of a request as curl and Go do: `HTTPS_PROXY` or `HTTP_PROXY` by its scheme,
 * none for what `NO_PROXY` names, and never one for this machine.
 */
export class ProxyRules {
  private readonly https: Proxy | undefined;
  private readonly http: Proxy | undefined;
  private readonly exceptions: readonly Exception[];

  constructor({ https, http, none }: ProxySettings) {
    this.https = https === undefined ? undefined : parseProxy(https);
    this.http = http === undefined ? undefined : parseProxy(http);
    this.exceptions = (none ?? "")
      .split(/[\s,]+/)
      .filter((entry) => entry !== "")
      .map(exceptionOf);
  }

  /** Returns the proxy of a request; undefined where it connects directly. */
  proxyFor(origin: ProxiedOrigin): Proxy | undefined {
    const proxy = origin.secure ? this.https : this.http;
    if (proxy === undefined) return undefined;
    const host = origin.host.toLowerCase().replace(/\.$/, "");
    const isDirect =
      isLoopback(host) || this.exceptions.some((covers) => covers({ ...origin, host }));
    return isDirect ? undefined : proxy;
  }
}

/** Returns whether an entry of `NO_PROXY` covers an origin, whose host is in lower case. */
type Exception = (origin: ProxiedOrigin) => boolean;

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

const isLoopback = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || isListed(loopback, host);

const isListed = (list: BlockList, host: string): boolean =>
  isIP(host) !== 0 && list.check(host, isIP(host) === 4 ? "ipv4" : "ipv6");

/**
 * Parses an entry: `*`, an address, a range, or a name, which matches itself and all names below
 * it. A port restricts it.
 */
function exceptionOf(entry: string): Exception {
  if (entry === "*") return () => true;
  const range = rangeOf(entry);
  if (range !== undefined) return ({ host }) => isListed(range, host);
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|(.*?))(?::(\d+))?$/.exec(entry) ?? [];
  const meant = (bracketed ?? plain ?? "").toLowerCase();
  const matchesPort = (origin: ProxiedOrigin): boolean =>
    port === undefined || origin.port === Number(port);
  const address = rangeOf(meant);
  if (address !== undefined)
    return (origin) => matchesPort(origin) && isListed(address, origin.host);
  const name = meant.replace(/^\*?\./, "");
  return (origin) =>
    matchesPort(origin) && (origin.host === name || origin.host.endsWith(`.${name}`));
}

/** Returns the addresses of a text such as `10.0.0.0/8` or `::1`; undefined where it names none. */
function rangeOf(text: string): BlockList | undefined {
  const [address = "", bits] = text.split("/");
  const family = isIP(address);
  const widest = family === 4 ? 32 : 128;
  if (family === 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= widest)))
    return undefined;
  const list = new BlockList();
  list.addSubnet(
    address,
    bits === undefined ? widest : Number(bits),
    family === 4 ? "ipv4" : "ipv6",
  );
  return list;
}
