import { BlockList, isIP } from "node:net";
import type { BunRequest, Server } from "bun";
import { BodyHold, type BodyRoom } from "./read-body.ts";

/**
 * Request headers, by name in any case; the values of a name that came several times are joined
 * (RFC 9110, 5.3).
 */
export interface RequestHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/** What is read of a request; a `Request` of the platform fits, too. */
export interface HttpRequest {
  readonly method: string;
  /** Target with its query: absolute, or from the path on. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** The body in pieces; null where there is none. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer | Uint8Array<ArrayBuffer>>;
}

const noParams: Readonly<Record<string, string>> = {};

/**
 * The platform's own request. Without `clone`: the types of bun-types and @types/node differ in
 * what it returns, and whether the compiler (TypeScript 7.0.2) sees that depends on the order in
 * which it checks files.
 */
type PlatformRequest = Omit<Request, "clone">;

/** What a request needs of the server that it came to. */
interface RequestServer {
  readonly server: Server<undefined>;
  readonly bodies: BodyRoom;
}

/** A request that came over a connection of this server, with the platform's own request inside. */
export class ServedRequest implements HttpRequest {
  /** Path parameters of the route, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Bytes of its body that are held in memory; released when the answer is complete. */
  readonly hold: BodyHold;
  /** The connection ends with the answer: what still comes of the body is not read. */
  closes = false;
  private readonly request: PlatformRequest;
  private readonly from: RequestServer;
  /** The request that the connection carried: this one, or the one that it follows from. */
  private readonly carried: PlatformRequest;

  constructor(
    request: BunRequest | Request,
    { server, bodies }: RequestServer,
    carried: PlatformRequest = request,
  ) {
    this.request = request;
    this.params = "params" in request ? request.params : noParams;
    this.from = { server, bodies };
    this.carried = carried;
    this.hold = new BodyHold(bodies);
  }

  /**
   * A request for another path of this server, as if the same client had sent it over the same
   * connection.
   */
  follow(
    path: string,
    { params, ...init }: RequestInit & { params: Readonly<Record<string, string>> },
  ): ServedRequest {
    const request = new Request(`http://localhost${path}`, { ...init, signal: this.signal });
    return new ServedRequest(Object.assign(request, { params }), this.from, this.carried);
  }

  get method(): string {
    return this.request.method;
  }

  get url(): string {
    return this.request.url;
  }

  get headers(): RequestHeaders {
    return this.request.headers;
  }

  /** Every header with its name. */
  headerEntries(): [name: string, value: string][] {
    return [...this.request.headers];
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> | null {
    return this.request.body;
  }

  /** The address that the connection comes from. */
  get peerAddress(): string {
    return this.from.server.requestIP(this.carried as Request)?.address ?? "";
  }

  text(): Promise<string> {
    return this.request.text();
  }

  arrayBuffer(): Promise<ArrayBuffer> {
    return this.request.arrayBuffer();
  }

  /** Sets how long the connection may be silent, in seconds; 0 for any time. */
  setIdleSeconds(seconds: number): void {
    this.from.server.timeout(this.carried as Request, seconds);
  }
}

/**
 * Which proxies may name the client: none, every peer, or those in the given ranges (CIDR).
 */
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
 * Builds the function that says whether a request was encrypted on its way: by this server, or by a
 * trusted proxy that says so in
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
 * Builds the function that finds a request's client. `X-Forwarded-For` is read from its right end,
 * past the proxies that are trusted: everything left of them may be made up.
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
