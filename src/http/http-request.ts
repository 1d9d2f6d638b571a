import type { BunRequest, Server } from "bun";
import { BodyHold, type BodyRoom } from "./body-room.ts";

/** Request headers, by name in any case; the values of a name that came several times are joined (RFC 9110, 5.3). */
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
 * The platform's own request. Without `clone`: the types of bun-types and @types/node differ in what it returns, and whether the
 * compiler (TypeScript 7.0.2) sees that depends on the order in which it checks files.
 */
type PlatformRequest = Omit<Request, "clone">;

/** What a request needs of the server that it came to. */
export interface RequestServer {
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

  /** A request for another path of this server, as if the same client had sent it over the same connection. */
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
