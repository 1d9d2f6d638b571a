import type { BunRequest, Server } from "bun";
import type { BodyMemoryShare, BodyMemory } from "./bodies/body-memory.ts";

/**
 * Request headers by name, in any case. The values of a repeated name are joined (RFC 9110, 5.3).
 */
export interface RequestHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/** The part of a request that is read here. The platform's `Request` fits, too. */
export interface HttpRequest {
  readonly method: string;
  /** The target with its query: absolute, or from the path on. */
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
 * The platform's own request, without `clone`: bun-types and @types/node declare different results
 * for it, and whether the compiler (TypeScript 7.0.2) notices depends on the order in which it
 * checks files.
 */
type PlatformRequest = Omit<Request, "clone">;

/** The parts of the receiving server that a request needs. */
export interface RequestServer {
  readonly server: Pick<Server<unknown>, "requestIP" | "timeout">;
  readonly bodyMemory: BodyMemory;
}

/** Matches headers of a handshake and of one body, which frames do not have. */
const handshakeHeaders =
  /^(?:connection|upgrade|sec-websocket-.*|content-.*|transfer-encoding|idempotency-key|expect)$/i;

/** A request that arrived over a connection of this server; it wraps the platform's own request. */
export class ServedRequest implements HttpRequest {
  /** The path parameters of the route, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The memory that its body takes; released when the answer is complete. */
  readonly memory: BodyMemoryShare;
  /** Whether the connection ends with the answer, because the rest of the body is not read. */
  closes = false;
  private readonly request: PlatformRequest;
  private readonly from: RequestServer;

  constructor(
    request: BunRequest | Request,
    {
      server,
      bodyMemory,
    }: RequestServer /** The request that the connection carried: this one, or the one that it was derived from. */,
    private readonly carried: PlatformRequest = request,
  ) {
    this.request = request;
    this.params = "params" in request ? request.params : noParams;
    this.from = { server, bodyMemory };
    this.memory = bodyMemory.share();
  }

  /**
   * Returns a request for another path of this server, as if the same client had sent it over the
   * same connection.
   */
  follow(
    path: string,
    { params, ...init }: RequestInit & { params: Readonly<Record<string, string>> },
  ): ServedRequest {
    const request = new Request(`http://localhost${path}`, { ...init, signal: this.signal });
    return new ServedRequest(Object.assign(request, { params }), this.from, this.carried);
  }

  /**
   * Returns a function that creates the requests that come as frames, once the connection of this
   * one is a socket: with the same headers and address, which are read now, and a body each.
   */
  framing(): (path: string, frame: { text: string; signal: AbortSignal }) => ServedRequest {
    const { peerAddress: address } = this;
    const headers = this.headerEntries().filter(([name]) => !handshakeHeaders.test(name));
    const origin = `${this.url.startsWith("https:") ? "https" : "http"}://localhost`;
    const from: RequestServer = {
      bodyMemory: this.from.bodyMemory,
      server: {
        requestIP: () => ({ address, family: "IPv4", port: 0 }),
        timeout: () => undefined,
      },
    };
    return (path, { text, signal }) => {
      const body = { method: "POST", headers: new Headers(headers), body: text, signal };
      return new ServedRequest(
        Object.assign(new Request(origin + path, body), { params: noParams }),
        from,
      );
    };
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

  /** Returns every header with its name. */
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

  /** Sets how many seconds the connection may be silent; 0 for no limit. */
  setIdleSeconds(seconds: number): void {
    this.from.server.timeout(this.carried as Request, seconds);
  }
}
