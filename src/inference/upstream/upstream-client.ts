import type { Clock } from "../../platform/kernel/clock.ts";
import { parseProxy, type Proxy, ProxyRules } from "../../platform/kernel/network/proxy-rules.ts";
import type { StoredContent } from "../../platform/spool/spool.ts";
import {
  Connection,
  type Origin,
  type Place,
  type WirePart,
  type WireRequest,
} from "./connection.ts";
import { DeadlineWatch } from "./deadline-watch.ts";
import { Exchange, type ExchangeTimeouts } from "./exchange.ts";
import type { ExchangeTie } from "./abort-scope.ts";
import type { RequestSigner } from "./signing/request-signer.ts";
import { UpstreamFailure } from "./upstream-failure.ts";
import type { UpstreamResponse } from "./response-parser.ts";

export type { UpstreamResponse };

/** The address to which requests of one provider surface are sent. Built once, with the catalog. */
export interface UpstreamTarget {
  origin: Origin;
  originKey: string;
  /** The request line and all headers but the content length, in wire form. */
  headPrefix: string;
  /** The provider's own proxy, or `none`; absent follows the gateway's proxy rules. */
  proxy?: Proxy | "none";
  /** The signing of each request, where authentication takes more than a constant header. */
  signing?: TargetSigning;
}

/**
 * The signer of requests to a target, and the address and constant headers that the signature
 * covers.
 */
export interface TargetSigning {
  signer: RequestSigner;
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** Milliseconds for which an idle connection is written to without checking its socket first. */
const freshForMs = 1_000;

/** A part of a request's body. */
export type BodyPart = string | Uint8Array | StoredContent;

/** A request to a provider, ready to be sent. */
export interface UpstreamRequest {
  target: UpstreamTarget;
  /** Text, or its parts: text, bytes, and contents that are read while they are sent. */
  body: string | readonly BodyPart[];
  /**
   * The headers of this request alone. Their values are checked here, since clients may influence
   * them.
   */
  headers?: Readonly<Record<string, string>> | undefined;
  connectTimeoutMs: number;
  timeouts: ExchangeTimeouts;
  /** Ends the exchange when the client disconnects. */
  abortScope: ExchangeTie;
}

/** The proxies and the trusted certificates of outgoing requests. */
export interface UpstreamNetwork {
  proxies: ProxyRules;
  /**
   * Certificates in PEM that are trusted in place of the platform's own list; absent trusts that
   * list.
   */
  trusted?: readonly string[] | undefined;
}

/** How a socket reaches its provider. */
export type SocketRoute = Pick<Place, "proxy" | "trusted">;

/**
 * Builds the constant part of every request to a URL. Header values must not contain line breaks.
 * `proxy` is a provider's own: an address, or `none`.
 */
export function upstreamTarget(
  url: string,
  headers: Readonly<Record<string, string>>,
  { proxy }: { proxy?: string | undefined } = {},
): UpstreamTarget {
  const { protocol, hostname, port, pathname, search, host } = new URL(url);
  const secure = protocol === "https:";
  const origin = {
    secure,
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (secure ? 443 : 80) : Number(port),
  };
  const headPrefix = `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n${headerLines(headers)}`;
  const target = { origin, originKey: `${protocol}//${host}`, headPrefix };
  return proxy === undefined
    ? target
    : { ...target, proxy: proxy === "none" ? proxy : parseProxy(proxy) };
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  let lines = "";
  for (const name in headers) {
    const line = `${name}: ${headers[name]}`;
    if (!/^[\t\x20-\x7e]*$/.test(line))
      throw new TypeError(`header ${name} holds a character that no header can carry`);
    lines += `${line}\r\n`;
  }
  return lines;
}

/**
 * The place and the head of requests to a target. The head, which holds the credential, is kept
 * apart from the place, because kept connections hold their place for as long as they live.
 */
interface Way {
  place: Place;
  headPrefix: string;
}

/** An answer in flight that a shutdown ends. */
interface Breakable {
  breakOff(): void;
}

/** Opens, keeps and reuses upstream connections. Nothing else opens upstream sockets. */
export class UpstreamClient {
  private readonly clock: Clock;
  private readonly pool: ConnectionPool;
  private readonly watch: DeadlineWatch;
  private readonly network: UpstreamNetwork;
  private readonly ways = new WeakMap<UpstreamTarget, Way>();
  /** The answers in flight on sockets that are opened elsewhere. */
  private readonly others = new Set<Breakable>();

  constructor({ clock, network }: { clock: Clock; network?: UpstreamNetwork }) {
    this.clock = clock;
    this.network = network ?? {
      proxies: new ProxyRules({ https: undefined, http: undefined, none: undefined }),
    };
    this.watch = new DeadlineWatch(clock);
    this.pool = new ConnectionPool(clock, this.watch);
  }

  /** The number of open connections, idle or busy. */
  get connectionCount(): number {
    return this.pool.size;
  }

  /**
   * Sends a request and resolves with its answer once the head has come. A kept connection that
   * turns out to be closed before it took the first byte of the request is replaced once by a new
   * one. A request that may have been executed is never sent again.
   */
  send(request: UpstreamRequest): Promise<UpstreamResponse> {
    if (request.abortScope.heardClientLeave) return Promise.reject(abandoned());
    const way = this.wayTo(request.target);
    let wire: WireRequest;
    try {
      wire = requestWire(request, way);
    } catch (error) {
      return Promise.reject(error);
    }
    const idle = this.pool.takeIdle(way.place.key);
    if (idle === undefined) return this.sendOnNew(request, wire);
    if (this.clock.monotonicMs() - idle.idleSinceMs > freshForMs)
      return this.sendOnRested(idle, { request, wire });
    return this.exchange(idle, { request, wire, onStale: () => this.sendOnNew(request, wire) });
  }

  /**
   * Returns the proxy and the trusted certificates with which a URL is reached, for connections that
   * are opened elsewhere. `own` is the provider's proxy, or `none`.
   */
  routeTo(url: string, own: string | undefined): SocketRoute {
    const target = upstreamTarget(url, {}, { proxy: own });
    const { proxy, trusted } = wayOf(target, this.network).place;
    return { proxy, trusted };
  }

  /** Ends every exchange in flight: each fails with what it has, and is settled. */
  breakOff(): void {
    this.pool.breakOff();
    for (const other of [...this.others]) other.breakOff();
  }

  /**
   * Ends an answer that comes over another connection together with the exchanges in flight, until
   * the returned function is called.
   */
  tie(other: Breakable): () => void {
    this.others.add(other);
    return () => void this.others.delete(other);
  }

  close(): void {
    this.pool.close();
    this.watch.stop();
  }

  private wayTo(target: UpstreamTarget): Way {
    let way = this.ways.get(target);
    if (way === undefined) this.ways.set(target, (way = wayOf(target, this.network)));
    return way;
  }

  /**
   * Lets the event loop poll its sockets once before writing, since the close of a long-idle
   * connection may be waiting to be read.
   */
  private async sendOnRested(
    idle: Connection,
    { request, wire }: { request: UpstreamRequest; wire: WireRequest },
  ): Promise<UpstreamResponse> {
    await socketsPolled();
    if (idle.isClosed) return this.sendOnNew(request, wire);
    return this.exchange(idle, { request, wire, onStale: () => this.sendOnNew(request, wire) });
  }

  private async sendOnNew(request: UpstreamRequest, wire: WireRequest): Promise<UpstreamResponse> {
    const { target, abortScope } = request;
    const connection = await this.pool.open(this.wayTo(target).place, {
      timeoutMs: request.connectTimeoutMs,
      abortScope,
    });
    if (abortScope.clientGone) {
      connection.destroy();
      throw abandoned();
    }
    return this.exchange(connection, { request, wire });
  }

  private exchange(
    connection: Connection,
    {
      request: { timeouts, abortScope },
      wire,
      onStale,
    }: {
      request: UpstreamRequest;
      wire: WireRequest;
      onStale?: () => Promise<UpstreamResponse>;
    },
  ): Promise<UpstreamResponse> {
    const exchange = new Exchange({
      connection,
      watch: this.watch,
      clock: this.clock,
      timeouts,
      abortScope,
      onStale,
    });
    abortScope.attach(exchange);
    return exchange.start(wire);
  }
}

/**
 * Resolves once the event loop has polled its sockets: between two immediate callbacks it does. A
 * timer of 0 ms that comes due while this turn's work still runs would fire before the poll.
 */
const socketsPolled = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

const abandoned = (): UpstreamFailure =>
  new UpstreamFailure("aborted", "the request was abandoned", { sent: false });

/**
 * Returns how a request travels. Through a proxy, https uses a tunnel, and http a request for the
 * absolute URL (RFC 9112, 3.2.2) with the proxy's credentials in a header that only the proxy
 * reads.
 */
function wayOf(
  { origin, originKey, headPrefix, proxy: own }: UpstreamTarget,
  { proxies, trusted }: UpstreamNetwork,
): Way {
  const proxy = own === "none" ? undefined : (own ?? proxies.proxyFor(origin));
  if (proxy === undefined) return { place: { origin, key: originKey, proxy, trusted }, headPrefix };
  const key = `${originKey} ${proxy.host}:${proxy.port} ${proxy.authorization ?? ""}`;
  const place = { origin, key, proxy, trusted };
  if (origin.secure) return { place, headPrefix };
  const proof =
    proxy.authorization === undefined ? "" : `proxy-authorization: ${proxy.authorization}\r\n`;
  return { place, headPrefix: headPrefix.replace(" ", ` ${originKey}`) + proof };
}

/** Characters from which a part is sent by itself, since joining it to others copies it. */
const apartCharactersMin = 64 * 1024;

function requestWire({ body, headers }: UpstreamRequest, { headPrefix }: Way): WireRequest {
  const bodyParts = typeof body === "string" ? [body] : body;
  let bytes = 0;
  let characters = 0;
  for (const part of bodyParts) {
    const length = typeof part === "string" ? Buffer.byteLength(part) : lengthOf(part);
    bytes += length;
    characters += typeof part === "string" ? part.length : length;
  }
  const more = headers === undefined ? "" : headerLines(headers);
  const wire: WirePart[] = [];
  let short = `${headPrefix}${more}content-length: ${bytes}\r\n\r\n`;
  for (const part of bodyParts) {
    if (typeof part === "string" && part.length < apartCharactersMin) short += part;
    else {
      if (short !== "") wire.push(short);
      wire.push(isStored(part) ? { stored: part, start: 0 } : part);
      short = "";
    }
  }
  if (short !== "") wire.push(short);
  // A head is ASCII. Other text is encoded here, so that it is encoded only once.
  return bytes === characters
    ? wire
    : wire.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
}

const isStored = (part: BodyPart): part is StoredContent =>
  typeof part === "object" && "read" in part;

const lengthOf = (part: Uint8Array | StoredContent): number =>
  isStored(part) ? part.size : part.byteLength;

/**
 * Milliseconds that an idle connection is trusted where its upstream announces no shorter time: a
 * request after a quiet minute does without another handshake. Go's client waits as long (`net/http`,
 * `DefaultTransport`), and networks that forget connections in silence wait for minutes.
 */
const idleDefaultMs = 90_000;
const idleConnectionsPerPlaceMax = 1_024;

/** Keeps idle connections by place, newest first, and opens new ones where none is idle. */
class ConnectionPool {
  private readonly idle = new Map<string, Connection[]>();
  private readonly all = new Set<Connection>();
  private sweptAtMs: number;

  constructor(
    private readonly clock: Clock,
    private readonly watch: DeadlineWatch,
  ) {
    this.sweptAtMs = clock.monotonicMs();
  }

  /** The number of open connections, idle or busy. */
  get size(): number {
    return this.all.size;
  }

  /**
   * Returns an idle connection to a place that can still be trusted; undefined where a new one is
   * needed.
   */
  takeIdle(key: string): Connection | undefined {
    const stack = this.idle.get(key);
    if (stack === undefined) return undefined;
    for (let connection = stack.pop(); connection !== undefined; connection = stack.pop()) {
      if (!connection.isClosed && connection.idleUntilMs > this.clock.monotonicMs())
        return connection;
      connection.destroy();
    }
    return undefined;
  }

  /**
   * Opens a connection. Rejects with an `UpstreamFailure`, at once where the client disconnects
   * meanwhile.
   */
  open(place: Place, options: { timeoutMs: number; abortScope: ExchangeTie }): Promise<Connection> {
    const connection = new Connection(place, this.release);
    this.all.add(connection);
    const opened = connection.open({ timeoutMs: options.timeoutMs, watch: this.watch });
    options.abortScope.attach(connection);
    options.abortScope.listen();
    return opened;
  }

  /** Ends every exchange in flight, as if its upstream had closed the connection. */
  breakOff(): void {
    for (const connection of [...this.all]) connection.breakOff();
  }

  /** Closes every idle connection. */
  close(): void {
    for (const stack of this.idle.values())
      for (const connection of [...stack]) connection.destroy();
    this.idle.clear();
  }

  private readonly release = (connection: Connection, reusable: boolean): void => {
    if (!reusable) {
      this.all.delete(connection);
      return;
    }
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.sweptAtMs > idleDefaultMs) this.sweep(nowMs);
    let stack = this.idle.get(connection.place.key);
    if (stack === undefined) this.idle.set(connection.place.key, (stack = []));
    if (stack.length >= idleConnectionsPerPlaceMax) {
      connection.destroy();
      return;
    }
    connection.idleSinceMs = nowMs;
    connection.idleUntilMs = nowMs + Math.min(connection.idleForMs ?? idleDefaultMs, idleDefaultMs);
    stack.push(connection);
  };

  /**
   * Closes what is not trusted any more: the newest connection of a place is always taken first, so
   * the others would stay open for as long as their upstream allows. Done while requests end, so
   * that an idle gateway is not woken for it.
   */
  private sweep(nowMs: number): void {
    this.sweptAtMs = nowMs;
    for (const [key, stack] of this.idle) {
      const trusted = stack.filter((each) => !each.isClosed && each.idleUntilMs > nowMs);
      for (const each of stack) if (each.idleUntilMs <= nowMs) each.destroy();
      if (trusted.length > 0) this.idle.set(key, trusted);
      else this.idle.delete(key);
    }
  }
}
