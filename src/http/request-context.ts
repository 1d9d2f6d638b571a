import { lowerBrandHeader } from "../platform/kernel/brand.ts";
import type { FrameSource } from "../platform/kernel/frame-source.ts";
import { AnswerHeaders } from "./answer-headers.ts";
import type { InnerAnswer, InnerCall } from "./inner-call.ts";
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

/**
 * Header names of the trace id, in lower case: the service's, the one that OpenAI's clients read,
 * and Anthropic's.
 */
const traceHeaders = [lowerBrandHeader("Trace-Id"), "x-request-id", "request-id"] as const;

/** What the router knows of any request. */
export interface RequestSource<Caller> {
  /** Finds the address that a request came from. */
  addressOf(request: ServedRequest): string;
  /** Says whether a request was encrypted on its way. */
  isEncrypted(request: ServedRequest): boolean;
  /** Calls another endpoint for the client of a request. */
  ask(context: RequestContext<unknown, Caller>, call: InnerCall<Caller>): Promise<InnerAnswer>;
}

/** What a handler knows of its request, and of who sent it as the guard found out. */
export class RequestContext<Body = unknown, Caller = unknown> {
  readonly request: ServedRequest;
  /** 32 hexadecimal digits; sorts by time. */
  readonly traceId: string;
  /** Monotonic time at which the request was seen, in milliseconds. */
  readonly startedMs: number;
  /** Headers of the response to come, be it a success or an error. */
  readonly answerHeaders: AnswerHeaders;
  caller: Caller;
  body!: Body;
  /**
   * Whether a settlement counts this request in the metrics, where its handler knows better than
   * its endpoint.
   */
  settled?: boolean;
  /**
   * Id of the record that the handler made or changed, where the path does not say it; for the
   * audit log.
   */
  changed?: string;
  /**
   * Workspace that the change concerns, where it is not the caller's; its audit log has the change
   * as well.
   */
  changedIn?: string;
  /** Whether another endpoint calls, which takes values instead of texts. */
  private readonly isInner: boolean;
  private readonly source: RequestSource<Caller>;

  constructor(options: {
    request: ServedRequest;
    traceId: string;
    startedMs: number;
    caller: Caller;
    source: RequestSource<Caller>;
    isInner?: boolean;
  }) {
    this.isInner = options.isInner ?? false;
    this.source = options.source;
    this.request = options.request;
    this.traceId = options.traceId;
    this.startedMs = options.startedMs;
    this.caller = options.caller;
    const { traceId } = options;
    this.answerHeaders = new AnswerHeaders({
      [traceHeaders[0]]: traceId,
      [traceHeaders[1]]: traceId,
      [traceHeaders[2]]: traceId,
    });
  }

  /** The headers of the response to come as one record, to be read and changed. */
  get headers(): Record<string, string> {
    return this.answerHeaders.all;
  }

  /** The address that the request came from, past the proxies that are trusted. */
  clientAddress(): string {
    return this.source.addressOf(this.request);
  }

  /**
   * Whether the request was encrypted on its way, as far as this server and the proxies that it
   * trusts can tell.
   */
  isEncrypted(): boolean {
    return this.source.isEncrypted(this.request);
  }

  /**
   * Calls another endpoint for the same client, under the same checks. Throws the `GatewayError`
   * that refuses it.
   */
  ask(call: InnerCall<Caller>): Promise<InnerAnswer> {
    return this.source.ask(this, call);
  }

  /** Path parameter, decoded; empty when the route has none of that name. */
  param(name: string): string {
    return this.request.params[name] ?? "";
  }

  get query(): URLSearchParams {
    return queryOf(this.request);
  }

  /** A JSON response with the headers gathered so far. */
  json(body: unknown, options: { status?: number; headers?: Record<string, string> } = {}): Reply {
    return new Reply(this.isInner ? new JsonValue(body) : JSON.stringify(body), {
      status: options.status ?? 200,
      headers: { "content-type": "application/json", ...this.headers, ...options.headers },
    });
  }
}

/**
 * Where the path starts in a request's URL: a broken `Host` header leaves no URL that could be
 * parsed.
 */
const pathStart = (url: string): number => {
  if (url.startsWith("/")) return 0;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? url.length : start;
};

/** Path of a request as it was sent, without the query. */
export function pathOf({ url }: Pick<HttpRequest, "url">): string {
  const query = url.indexOf("?");
  return url.slice(pathStart(url), query < 0 ? undefined : query);
}

/** Query parameters of a request. */
export function queryOf({ url }: Pick<HttpRequest, "url">): URLSearchParams {
  const query = url.indexOf("?");
  return new URLSearchParams(query < 0 ? "" : url.slice(query));
}

interface ReplyOptions {
  status?: number;
  headers: Record<string, string> | AnswerHeaders;
  cookies?: readonly string[];
}

/** A value that is written as JSON once its text is needed; calls between endpoints take it as it is. */
class JsonValue {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/**
 * An answer as this server sends it: a whole text with its length, or frames as they come. A value
 * becomes a text when it is first read as one.
 */
export class Reply {
  readonly status: number;
  private readonly answerHeaders: AnswerHeaders;
  /** Values of `set-cookie`, each a header of its own (RFC 6265, 3). */
  readonly cookies: readonly string[] | undefined;
  private content: string | FrameSource | JsonValue;

  constructor(body: string | FrameSource | JsonValue, options: ReplyOptions) {
    this.content = body;
    this.status = options.status ?? 200;
    const { headers } = options;
    this.answerHeaders = headers instanceof AnswerHeaders ? headers : new AnswerHeaders(headers);
    this.cookies = options.cookies;
  }

  /** By name in lower case; values in ASCII, as headers carry them. */
  get headers(): Record<string, string> {
    return this.answerHeaders.all;
  }

  /** The answer of the platform, whose body is a text or a stream. */
  response(body: string | ReadableStream<string>): Response {
    if (this.cookies === undefined) return this.answerHeaders.response(body, this.status);
    const headers = new Headers(this.headers);
    for (const cookie of this.cookies) headers.append("set-cookie", cookie);
    return new Response(body, { status: this.status, headers });
  }

  get body(): string | FrameSource {
    if (this.content instanceof JsonValue) this.content = JSON.stringify(this.content.value);
    return this.content;
  }

  /** The value of the answer, where it was not written as a text. */
  get unwritten(): JsonValue | undefined {
    return this.content instanceof JsonValue ? this.content : undefined;
  }
}

/**
 * What a handler answers with; a `Response` of the platform where that is at hand, such as for a
 * page.
 */
export type Answer = Reply | Response;

/** Headers that keep every proxy on the way from buffering or changing a stream. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;
