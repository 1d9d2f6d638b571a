import type { BunRequest, Server } from "bun";
import { systemClock, type Clock } from "../platform/lib/clock.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { FrameSource } from "../platform/lib/frame-source.ts";
import { BodyRoom } from "./body-room.ts";
import { encodeContractError } from "./error-envelope.ts";
import { FrameStreams } from "./frame-stream.ts";
import { ServedRequest } from "./http-request.ts";
import { isNearlyOutOfFiles, openFilesMax } from "./open-files.ts";
import { Reply, type Answer } from "./reply.ts";

/** Works on one request; what it throws is a mistake of ours. */
export type RouteHandler = (request: ServedRequest) => Answer | Promise<Answer>;

/** Handlers by path; a segment that begins with a colon takes any value. */
export type CompiledRoutes = Readonly<Record<string, RouteHandler>>;

/** A certificate, with those that lead to its root, and its key, in PEM. */
export interface TlsPair {
  cert: string;
  key: string;
}

/** What a server serves, and where. */
export interface HttpServerOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  routes: CompiledRoutes;
  fallback: RouteHandler;
  tls?: TlsPair | undefined;
  /** Bytes that request bodies may take at once. */
  bodyMemoryBytes: number;
  clock?: Clock;
  /** Receives what was thrown where nothing may throw. */
  onError(error: unknown): void;
}

/** Silent seconds after which a connection is closed that has sent no request, or none that was served. */
const strangerIdleSeconds = 5;

/** Silent seconds between requests, and while an answer is sent: longer than the minute after which usual proxies let go themselves. */
const keptIdleSeconds = 75;

/** How often streams and the file limit are looked at, in milliseconds. */
const sweepMs = 1_000;

/**
 * Bodies are bounded where they are read, with an answer in the endpoint's dialect. A limit of the platform's own
 * would close the connection without one.
 */
const bodyBytesWall = Number.MAX_SAFE_INTEGER;

/** The API on `Bun.serve`: what it serves, how long connections may be silent, and how it ends. */
export class HttpServer {
  readonly bodies: BodyRoom;
  readonly server: Server<undefined>;
  private readonly streams: FrameStreams;
  private readonly tellError: (error: unknown) => void;
  private readonly sweeper: ReturnType<typeof setInterval>;
  private readonly filesMax = openFilesMax();
  private closing = false;

  /** Opens the listening socket; throws the system's error where it cannot. */
  constructor({
    host,
    port,
    routes,
    fallback,
    tls,
    bodyMemoryBytes,
    onError,
    clock = systemClock,
  }: HttpServerOptions) {
    this.streams = new FrameStreams(clock);
    this.bodies = new BodyRoom(bodyMemoryBytes);
    this.tellError = onError;
    this.server = Bun.serve({
      hostname: host,
      port,
      idleTimeout: strangerIdleSeconds,
      maxRequestBodySize: bodyBytesWall,
      development: false,
      // Bun lets processes share a port once it is not developing: a second gateway would take every other connection.
      reusePort: false,
      routes: mapValues(
        routes,
        (handler) => (request: BunRequest) => this.answer(request, handler),
      ),
      fetch: (request) => this.answer(request, fallback),
      error: (error) => this.failed(error),
      ...(tls === undefined ? {} : { tls }),
    });
    this.sweeper = setInterval(() => this.sweep(), sweepMs);
    this.sweeper.unref();
  }

  get port(): number {
    return this.server.port ?? 0;
  }

  /** Requests that are under way. */
  get pendingRequests(): number {
    return this.server.pendingRequests;
  }

  /** From now on every answer closes its connection (RFC 9112, 9.6): clients send their next request elsewhere. */
  announceClosing(): void {
    this.closing = true;
  }

  /**
   * Accepts no more, closes what is idle and settles once every request under way was answered; at once with `abruptly`, which cuts
   * them off.
   */
  async stop(abruptly = false): Promise<void> {
    this.closing = true;
    clearInterval(this.sweeper);
    await this.server.stop(abruptly);
  }

  private async answer(
    platformRequest: BunRequest | Request,
    handler: RouteHandler,
  ): Promise<Response> {
    const request = new ServedRequest(platformRequest, this);
    // Whoever works on a request bounds how long that takes.
    request.setIdleSeconds(0);
    try {
      return this.send(request, await handler(request));
    } catch (error) {
      request.hold.release();
      request.setIdleSeconds(strangerIdleSeconds);
      return this.failed(error);
    }
  }

  private send(request: ServedRequest, answer: Answer): Response {
    const closes = this.closing || request.closes;
    if (!(answer instanceof Reply)) {
      this.ended(request, idleSecondsAfter(answer.status));
      if (closes) answer.headers.set("connection", "close");
      return answer;
    }
    const { body, status } = answer;
    const options = { status, headers: headersOf(answer, closes) };
    if (typeof body !== "string") return new Response(this.streamed(request, body), options);
    this.ended(request, idleSecondsAfter(status));
    return new Response(body, options);
  }

  private streamed(request: ServedRequest, source: FrameSource): ReadableStream<string> {
    return this.streams.stream(source, {
      onEnd: () => this.ended(request, keptIdleSeconds),
      onBroken: (error) => {
        this.tellError(error);
        this.ended(request, 1);
      },
      onUnread: () => this.ended(request, 1),
    });
  }

  private ended(request: ServedRequest, idleSeconds: number): void {
    request.hold.release();
    request.setIdleSeconds(idleSeconds);
  }

  private failed(error: unknown): Response {
    this.tellError(error);
    const envelope = encodeContractError(
      new GatewayError("internal_server_error", "The gateway failed on this request."),
      { traceId: "" },
    );
    return Response.json(envelope, { status: 500, headers: { connection: "close" } });
  }

  /** Ends streams that are not read, and makes room where nearly as many files are open as may be. */
  sweep(): void {
    this.streams.sweep();
    // Connections that nobody asks anything over make room for those that somebody does.
    if (this.filesMax !== undefined && isNearlyOutOfFiles(this.filesMax))
      this.server.closeIdleConnections();
  }
}

const idleSecondsAfter = (status: number): number =>
  status < 400 ? keptIdleSeconds : strangerIdleSeconds;

function headersOf({ headers, cookies }: Reply, closes: boolean): Headers | Record<string, string> {
  const written = closes ? { ...headers, connection: "close" } : headers;
  if (cookies === undefined) return written;
  const all = new Headers(written);
  for (const cookie of cookies) all.append("set-cookie", cookie);
  return all;
}

const mapValues = <Value, Other>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value) => Other,
): Record<string, Other> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
