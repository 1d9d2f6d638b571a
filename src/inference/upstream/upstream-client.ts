import type { Clock } from "../../platform/lib/clock.ts";
import type { Connection, Origin, WireRequest } from "./connection.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { decodedBody, type ByteSource } from "./content-encoding.ts";
import { DeadlineWatch } from "./deadline-watch.ts";
import { Exchange, type ExchangeTimeouts } from "./exchange.ts";
import type { ExchangeTie } from "./lifeline.ts";
import type { ResponseHead } from "./response-parser.ts";
import type { RequestSigner } from "./signing/request-signer.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Where requests of one provider surface go; built once, when the catalog is. */
export interface UpstreamTarget {
  origin: Origin;
  originKey: string;
  /** Request line and all headers but the content length, ready to be sent. */
  headPrefix: string;
  /** What proves the sender of each request, where that is more than a constant header. */
  signing?: TargetSigning;
}

/** How requests to a target are signed, over which address and constant headers. */
export interface TargetSigning {
  signer: RequestSigner;
  url: string;
  headers: Readonly<Record<string, string>>;
}

export interface UpstreamRequest {
  target: UpstreamTarget;
  /** JSON text. */
  body: string;
  /** Headers of this request alone; their values are checked here, since clients may have a say in them. */
  headers?: Readonly<Record<string, string>> | undefined;
  connectTimeoutMs: number;
  timeouts: ExchangeTimeouts;
  /** Ends the exchange when the client goes away. */
  lifeline: ExchangeTie;
}

/** An answer whose body is still to be read; every answer has to be read to its end or aborted. */
export interface UpstreamResponse {
  status: number;
  headers: ResponseHead["headers"];
  /** The next piece of the decoded body; undefined at its end; rejects with an `UpstreamFailure`. */
  next(): Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /** The whole decoded body as text; rejects with an `UpstreamFailure`. */
  readText(limitBytes: number): Promise<string>;
  /** Tells that content arrived: the idle timeout takes over from the first-token timeout. */
  markContent(): void;
  /** Tells that everything was said: the answer is given up unless it ends soon. */
  expectEnd(): void;
  abort(): void;
}

/** Builds the constant part of every request to a URL. Header values must not hold line breaks. */
export function upstreamTarget(url: string, headers: Readonly<Record<string, string>>): UpstreamTarget {
  const { protocol, hostname, port, pathname, search, host } = new URL(url);
  const secure = protocol === "https:";
  const origin = { secure, host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? (secure ? 443 : 80) : Number(port) };
  const headPrefix = `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n${headerLines(headers)}`;
  return { origin, originKey: `${protocol}//${host}`, headPrefix };
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  let lines = "";
  for (const name in headers) {
    const line = `${name}: ${headers[name]}`;
    if (!/^[\t\x20-\x7e]*$/.test(line)) throw new TypeError(`header ${name} holds a character that no header can carry`);
    lines += `${line}\r\n`;
  }
  return lines;
}

/** Opens, keeps and reuses upstream connections. Nobody else opens upstream sockets. */
export class UpstreamClient {
  private readonly clock: Clock;
  private readonly pool: ConnectionPool;
  private readonly watch: DeadlineWatch;

  constructor({ clock }: { clock: Clock }) {
    this.clock = clock;
    this.pool = new ConnectionPool(clock);
    this.watch = new DeadlineWatch(clock);
  }

  /** Connections that are open, idle or busy. */
  get connectionCount(): number {
    return this.pool.size;
  }

  /**
   * Sends a request and settles with the head of the answer. A kept connection that turns out to be
   * closed before any byte of the answer came is replaced once by a new one (RFC 9112, 9.3.1).
   */
  async send(request: UpstreamRequest): Promise<UpstreamResponse> {
    if (request.lifeline.heardClientLeave) throw abandoned();
    const wire = requestWire(request);
    const idle = this.pool.takeIdle(request.target.originKey);
    if (idle !== undefined) {
      const kept = this.exchangeOn(idle, request);
      try {
        return await this.answer(kept, wire, request);
      } catch (error) {
        const stale = error instanceof UpstreamFailure && error.fault === "connection_closed" && kept.unanswered;
        if (!stale || request.lifeline.clientGone) throw error;
      }
    }
    const { target } = request;
    const connection = await this.pool.open(
      { origin: target.origin, key: target.originKey },
      { timeoutMs: request.connectTimeoutMs, lifeline: request.lifeline },
    );
    if (request.lifeline.clientGone) {
      connection.destroy();
      throw abandoned();
    }
    return this.answer(this.exchangeOn(connection, request), wire, request);
  }

  /** Ends every exchange that is under way: each fails with what it has, and is settled. */
  breakOff(): void {
    this.pool.breakOff();
  }

  close(): void {
    this.pool.close();
    this.watch.stop();
  }

  private exchangeOn(connection: Connection, request: UpstreamRequest): Exchange {
    return new Exchange({
      connection, watch: this.watch, clock: this.clock, timeouts: request.timeouts, onLasting: () => request.lifeline.listen(),
    });
  }

  private async answer(exchange: Exchange, wire: WireRequest, request: UpstreamRequest): Promise<UpstreamResponse> {
    request.lifeline.attach(exchange);
    const head = await exchange.start(wire);
    const body = bodyOf(exchange, head.headers["content-encoding"]);
    return {
      status: head.status,
      headers: head.headers,
      next: () => body.next(),
      readText: (limitBytes) => body.readText(limitBytes),
      markContent: () => exchange.markContent(),
      expectEnd: () => exchange.expectEnd(),
      abort: () => exchange.abort(),
    };
  }
}

const abandoned = (): UpstreamFailure => new UpstreamFailure("aborted", "the request was abandoned", { sent: false });

/** The answer's body without its coding. A coding that nobody understands ends the exchange. */
function bodyOf(exchange: Exchange, encoding: string | undefined): ByteSource {
  if (encoding === undefined || encoding === "identity") return exchange;
  try {
    return decodedBody(exchange, encoding);
  } catch (error) {
    exchange.abort();
    throw error;
  }
}

function requestWire({ target, body, headers }: UpstreamRequest): WireRequest {
  const bodyBytes = Buffer.byteLength(body);
  const more = headers === undefined ? "" : headerLines(headers);
  const head = `${target.headPrefix}${more}content-length: ${bodyBytes}\r\n\r\n`;
  // A head has ASCII only, so its length in bytes is its length.
  return { text: head + body, byteLength: head.length + bodyBytes };
}
