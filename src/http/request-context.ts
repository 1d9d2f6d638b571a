import { lowerBrandHeader } from "../platform/kernel/brand.ts";
import type { BatchLeg } from "../platform/kernel/models/batch-leg.ts";
import type { CommitUnit } from "../platform/storage/commit-queue.ts";
import { AnswerHeaders } from "./answer-headers.ts";
import { BlockList, isIP } from "node:net";
import type { HttpRequest, ServedRequest } from "./served-request.ts";
import { Reply, type Answer } from "./reply.ts";

/** The proxies that may name the client: none, every peer, or those in the given ranges (CIDR). */
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

/** Returns a function that says which peers are proxies that may name the client. */
function trustReader(trusted: TrustedProxies): (address: string) => boolean {
  if (typeof trusted === "boolean") return () => trusted;
  const list = blockListOf(trusted);
  return (address) =>
    isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/**
 * Returns a function that says whether a request was encrypted in transit: by this server, or
 * according to a trusted proxy's `X-Forwarded-Proto`, whose last entry is from the nearest proxy.
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

/** Matches an address that a port follows, or an IPv6 address in brackets with or without one. */
const hopPattern = /^(?:\[(?<bracketed>[^\]]+)\]|(?<dotted>[\d.]+))(?::\d{1,5})?$/;

/**
 * Returns the address of an entry of `X-Forwarded-For`. Some proxies add the client's port, such as
 * Azure Application Gateway and IIS, and put IPv6 addresses in brackets (RFC 7239, section 6).
 */
function hopAddress(entry: string): string {
  const hop = entry.trim().replace(/^"(.*)"$/, "$1");
  const { bracketed, dotted } = hopPattern.exec(hop)?.groups ?? {};
  return bracketed ?? dotted ?? hop;
}

/**
 * Returns a function that finds a request's client. `X-Forwarded-For` is read from its right end,
 * past the trusted proxies, since everything left of them may be forged.
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
      .map(hopAddress)
      .filter((hop) => isIP(hop) !== 0);
    if (trusted === true) return hops.at(-1) ?? peer;
    return hops.reverse().find((hop) => !isTrusted(hop)) ?? peer;
  };
}

/**
 * Header names of the trace id, in lower case: the service's own, the one that OpenAI's clients
 * read, and Anthropic's.
 */
const traceHeaders = [lowerBrandHeader("Trace-Id"), "x-request-id", "request-id"] as const;

/** The functions that the router provides for every request. */
export interface RequestSource<Caller> {
  /** Returns the address that a request came from. */
  addressOf(request: ServedRequest): string;
  /** Returns whether a request was encrypted in transit. */
  isEncrypted(request: ServedRequest): boolean;
  /** Serves a request that came as a frame, as if it had come over HTTP. */
  serve(endpoint: string, request: ServedRequest): Answer | Promise<Answer>;
  /** Calls another endpoint for the client of a request. */
  ask(context: RequestContext<unknown, Caller>, call: InnerCall<Caller>): Promise<InnerAnswer>;
}

/** A request that no client waits for, such as a line of a batch. */
export interface BackgroundWork {
  /** The name of the rate windows that count it, apart from those of clients' requests. */
  pool: string;
  /** Set where it travels in a provider's own batch, which no rate windows count. */
  leg?: BatchLeg | undefined;
  /** The batch whose line it is, as its client knows it; absent for other work. */
  batchId?: string | undefined;
  /** Receives the trace id before the request is served. */
  began?(traceId: string): void;
  /**
   * Returns the row that is committed with the charge of an answer; undefined for a charge without
   * one. `costNano` is in nano-USD.
   */
  rowOf(
    answer: { text: string; traceId: string; costNano: bigint } | undefined,
  ): CommitUnit["inserts"][number];
}

/** A request, and its caller as the guard found it, as a handler receives them. */
export class RequestContext<Body = unknown, Caller = unknown> {
  readonly request: ServedRequest;
  /** 32 hexadecimal digits; sorts by time. */
  readonly traceId: string;
  /** When the request was received, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  /** Headers of the response to come, whether a success or an error. */
  readonly answerHeaders: AnswerHeaders;
  caller: Caller;
  body!: Body;
  /**
   * Whether a settlement counts this request in the metrics, where its handler knows better than
   * its endpoint.
   */
  settled?: boolean;
  /**
   * The id of the record that the handler created or changed, where the path does not contain it;
   * for the audit log.
   */
  changed?: string;
  /**
   * The workspace that the change concerns, where it is not the caller's; its audit log records the
   * change as well.
   */
  changedIn?: string;
  /** Set for a request that no client waits for. */
  background?: BackgroundWork;
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

  /** The headers of the response to come as one record, which may be read and changed. */
  get headers(): Record<string, string> {
    return this.answerHeaders.all;
  }

  /** Returns the address that the request came from, past the trusted proxies. */
  clientAddress(): string {
    return this.source.addressOf(this.request);
  }

  /**
   * Returns whether the request was encrypted in transit, as far as this server and its trusted
   * proxies can tell.
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

  /**
   * Returns what serves the frames of a socket: each passes every check of an endpoint, such as
   * `POST /responses`, as a request of its own would. Errors are answers.
   */
  frameServer(): RequestSource<Caller>["serve"] {
    const { source } = this;
    return (endpoint, request) => source.serve(endpoint, request);
  }

  /** Returns a path parameter, decoded; empty when the route has none of that name. */
  param(name: string): string {
    return this.request.params[name] ?? "";
  }

  get query(): URLSearchParams {
    return queryOf(this.request);
  }

  /** Returns a JSON response with the headers gathered so far. */
  json(body: unknown, options: { status?: number; headers?: Record<string, string> } = {}): Reply {
    const reply = {
      status: options.status ?? 200,
      headers: { "content-type": "application/json", ...this.headers, ...options.headers },
    };
    return this.isInner ? Reply.ofValue(body, reply) : new Reply(JSON.stringify(body), reply);
  }
}

/**
 * Returns where the path starts in a request's URL, without parsing it: a malformed `Host` header
 * makes an unparsable URL.
 */
const pathStart = (url: string): number => {
  if (url.startsWith("/")) return 0;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? url.length : start;
};

/** Returns the path of a request as it was sent, without the query. */
export function pathOf({ url }: Pick<HttpRequest, "url">): string {
  const query = url.indexOf("?");
  return url.slice(pathStart(url), query < 0 ? undefined : query);
}

/** Returns the query parameters of a request. */
export function queryOf({ url }: Pick<HttpRequest, "url">): URLSearchParams {
  const query = url.indexOf("?");
  return new URLSearchParams(query < 0 ? "" : url.slice(query));
}

/**
 * Matches a valid host that names no user and contains nothing that ends a host (RFC 9112, 3.2; RFC
 * 3986, 3.2.2).
 */
const hostPattern = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i;

/**
 * Returns why a request is refused although the platform accepts it: another parser on the way
 * could see a different request in it.
 */
export function ambiguityOf({ headers, url }: ServedRequest): string | undefined {
  const host = headers.get("host");
  if (host !== null && !hostPattern.test(host)) return "The header host is not one host.";
  if (headers.get("content-length")?.includes(",")) return "The header content-length came twice.";
  const expectation = headers.get("expect");
  if (expectation !== null && expectation.toLowerCase() !== "100-continue") {
    return "The header expect asks for something other than 100-continue.";
  }
  return url.startsWith("/") || url.includes("://")
    ? undefined
    : "The request's target is no path.";
}

/** The values of a query parameter. A list repeats it; undefined omits it. */
type QueryValue = string | number | boolean | readonly string[] | undefined;

/**
 * A call from one endpoint to another for the same client: with the same credential and checks, and
 * without a network in between.
 */
export interface InnerCall<Caller = unknown> {
  /** The method and path of the route table, such as `DELETE /keys/:hash`. */
  endpoint: string;
  /** The path parameters, decoded. */
  params?: Readonly<Record<string, string>> | undefined;
  query?: Readonly<Record<string, QueryValue>> | undefined;
  body?: unknown;
  idempotencyKey?: string | undefined;
  /**
   * The operator whose key calls, for operators' endpoints that do not accept keys of that kind
   * themselves.
   */
  operator?: Caller | undefined;
}

/** The answer of an endpoint that succeeded. */
export interface InnerAnswer {
  status: number;
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>;
  /** The JSON body as a value; any other body as text. */
  body: unknown;
}
