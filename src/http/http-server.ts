import { closeSync, openSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { BunRequest, Server } from "bun";
import { systemClock, type Clock } from "../platform/kernel/clock.ts";
import type { TlsPair } from "../platform/config/tls-files.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import type { FramePiece, Frames } from "../platform/kernel/frame-source.ts";
import { type Passing, PassingSet } from "../platform/kernel/passing/passing-set.ts";
import { encodeContractError } from "./error-envelope.ts";
import { comingBytes, Reply, type Answer, type AnswerSource } from "./reply.ts";
import { platformRoutes, type CompiledRoutes, type RouteHandler } from "./routes-by-method.ts";
import { ServedRequest } from "./served-request.ts";
import { BodyMemory } from "./bodies/body-memory.ts";
import type { SocketData } from "./sockets/client-socket.ts";
import { refusedVersionOf } from "./sockets/handshake.ts";
import { OpenSockets } from "./sockets/open-sockets.ts";
import { SocketUpgrade } from "./sockets/socket-upgrade.ts";

/** The address and handlers of a server. */
interface HttpServerOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  /**
   * Whether other processes may listen at the same port, so that connections are divided among
   * them.
   */
  sharesPort?: boolean;
  routes: CompiledRoutes;
  fallback: RouteHandler;
  tls?: TlsPair | undefined;
  /** The headers of every answer. */
  headers?: Readonly<Record<string, string>>;
  /** The most bytes of request bodies at once. */
  bodyMemoryBytes: number;
  clock?: Clock;
  /** Receives errors from places that must not throw. */
  onError(error: unknown): void;
}

/**
 * Returns the headers of every answer: browsers must not guess its type, and use HTTPS alone for a
 * year where people reach the service by it (RFC 6797).
 */
export const answerHeadersAt = (publicUrl: string): Readonly<Record<string, string>> => ({
  "x-content-type-options": "nosniff",
  ...(publicUrl.startsWith("https:") && { "strict-transport-security": "max-age=31536000" }),
});

/**
 * Seconds of silence after which a connection is closed that has sent no request yet, or whose
 * requests were all refused.
 */
const strangerIdleSeconds = 5;

/**
 * Seconds of silence allowed between requests and while an answer is sent: more than the minute
 * after which common proxies close a connection themselves.
 */
const keptIdleSeconds = 75;

/**
 * Milliseconds between checks of the open streams and the file limit. Without streams and without
 * a request for as long as a connection is kept, nothing is checked.
 */
const sweepMs = 1_000;

/**
 * Disables the platform's own limit, which would close the connection without an answer. Bodies are
 * bounded where they are read, with an answer in the endpoint's dialect.
 */
const bodyBytesWall = Number.MAX_SAFE_INTEGER;

/** The API on `Bun.serve`: what it serves, how long connections may be silent, and how it ends. */
export class HttpServer {
  readonly bodyMemory: BodyMemory;
  readonly sockets: OpenSockets;
  private listener: Listener;
  /** Those with an earlier certificate, which end with their connections. */
  private readonly earlier = new Set<Listener>();
  private readonly streams: FrameStreams;
  private readonly onError: (error: unknown) => void;
  private readonly headers: Readonly<Record<string, string>>;
  private sweeper: ReturnType<typeof setInterval> | undefined;
  /** The sweeps since the last request. */
  private quietSweeps = 0;
  private readonly filesMax = openFilesMax();
  private closing = false;

  /** Opens the listening socket. Throws the system's error where it cannot. */
  constructor(private readonly options: HttpServerOptions) {
    const {
      bodyMemoryBytes,
      onError,
      headers = answerHeadersAt(""),
      clock = systemClock,
    } = options;
    this.headers = headers;
    this.streams = new FrameStreams(clock);
    this.sockets = new OpenSockets(clock, (cause) =>
      onError(new Error("a frame of a socket could not be worked on", { cause })),
    );
    this.bodyMemory = new BodyMemory(bodyMemoryBytes, clock);
    this.onError = onError;
    this.listener = this.listen(options);
  }

  private listen({
    host,
    port,
    sharesPort = false,
    routes,
    fallback,
    tls,
  }: Pick<
    HttpServerOptions,
    "host" | "port" | "sharesPort" | "routes" | "fallback" | "tls"
  >): Listener {
    const answer = (request: BunRequest | Request, handler: RouteHandler) =>
      this.answer(request, handler, listener);
    const server = Bun.serve({
      hostname: host,
      port,
      idleTimeout: strangerIdleSeconds,
      maxRequestBodySize: bodyBytesWall,
      development: false,
      // Outside of development, Bun lets processes share a port by default: a second gateway would
      // take every other connection without being asked to.
      reusePort: sharesPort,
      routes: platformRoutes(routes, answer),
      fetch: (request) => answer(request, fallback),
      error: (error) => this.failed(error),
      websocket: this.sockets.handlers,
      ...(tls === undefined ? {} : { tls }),
    });
    const listener: Listener = { server, bodyMemory: this.bodyMemory };
    return listener;
  }

  /**
   * Serves another certificate to new connections; open ones keep theirs. The platform cannot
   * replace it, so another listener takes the port over, within a millisecond.
   */
  renewCertificate(tls: TlsPair): void {
    if (this.closing) return;
    const { listener, port, options } = this;
    this.earlier.add(listener);
    void listener.server.stop().then(() => this.earlier.delete(listener));
    this.listener = this.listen({ ...options, port, tls });
  }

  get port(): number {
    return this.listener.server.port ?? 0;
  }

  /** The number of requests in progress. */
  get pendingRequests(): number {
    return [this.listener, ...this.earlier].reduce(
      (sum, { server }) => sum + server.pendingRequests,
      0,
    );
  }

  /**
   * Makes every answer close its connection from now on (RFC 9112, 9.6), so that clients send their
   * next request elsewhere.
   */
  announceClosing(): void {
    this.closing = true;
  }

  /**
   * Stops accepting, closes idle connections, and resolves once every request in progress was
   * answered; with `abruptly` at once, cutting them off.
   */
  async stop(abruptly = false): Promise<void> {
    this.closing = true;
    clearInterval(this.sweeper);
    if (abruptly) this.sockets.terminate();
    const servers = [this.listener, ...this.earlier].map(({ server }) => server);
    await Promise.all([...servers.map((server) => server.stop(abruptly)), this.sockets.end()]);
  }

  private async answer(
    platformRequest: BunRequest | Request,
    handler: RouteHandler,
    listener: Listener,
  ): Promise<Response | undefined> {
    const request = new ServedRequest(platformRequest, listener);
    this.quietSweeps = 0;
    this.sweeper ??= setInterval(() => this.sweep(), sweepMs).unref();
    // The handler of a request limits how long its work takes.
    request.setIdleSeconds(0);
    try {
      const answer = await handler(request);
      if (answer instanceof SocketUpgrade) return this.upgrade(platformRequest, answer, listener);
      return this.send(request, answer);
    } catch (error) {
      request.memory.release();
      request.setIdleSeconds(strangerIdleSeconds);
      return this.failed(error);
    }
  }

  /** Turns a request into a socket, which answers it; a request that is no handshake is refused. */
  private upgrade(
    request: BunRequest | Request,
    { session, headers }: SocketUpgrade,
    { server }: Listener,
  ): Response | undefined {
    if (this.closing) session.closed();
    if (this.closing)
      return this.refusal(new GatewayError("service_unavailable", "The gateway is about to end."));
    // Bun would answer with the first protocol that was offered, even where that is a credential.
    const data: SocketData = { session, socket: undefined };
    const all = { ...this.headers, ...headers };
    const refused = refusedVersionOf(request);
    if (!refused && server.upgrade(request as Request, { headers: all, data })) return undefined;
    session.closed();
    if (refused) return this.refusal(refused.error, refused.headers);
    const message = "The request is no WebSocket handshake: it lacks sec-websocket-key.";
    return this.refusal(new GatewayError("bad_request", message));
  }

  private send(request: ServedRequest, answer: Answer): Response {
    const closes = this.closing || request.closes;
    if (!(answer instanceof Reply)) {
      this.ended(request, idleSecondsAfter(answer.status));
      if (closes) answer.headers.set("connection", "close");
      for (const name of Object.keys(this.headers))
        answer.headers.set(name, this.headers[name] ?? "");
      return this.withDeadlines(request, answer);
    }
    answer.share(this.headers);
    if (closes) answer.headers["connection"] = "close";
    const { body, status } = answer;
    if (typeof body !== "string") return answer.response(this.streamed(request, body));
    this.ended(request, idleSecondsAfter(status));
    return answer.response(body);
  }

  /** Returns an answer of bytes with the deadlines of frames; every other as it is. */
  private withDeadlines(request: ServedRequest, answer: Response): Response {
    const { status, headers } = answer;
    // The platform reads no body for these.
    const hasNone = request.method === "HEAD" || status === 204 || status === 304;
    const bytes = hasNone ? undefined : comingBytes(answer);
    if (bytes === undefined) return answer;
    request.setIdleSeconds(0);
    return new Response(this.streamed(request, bytes), { status, headers });
  }

  private streamed(request: ServedRequest, source: AnswerSource): ReadableStream<FramePiece> {
    return this.streams.stream(source, {
      onEnd: () => this.ended(request, keptIdleSeconds),
      onBroken: (error) => {
        if (source.mayBreakOff !== true) this.onError(error);
        this.ended(request, 1);
      },
      onUnread: () => this.ended(request, 1),
    });
  }

  private ended(request: ServedRequest, idleSeconds: number): void {
    request.memory.release();
    request.setIdleSeconds(idleSeconds);
  }

  private failed(error: unknown): Response {
    this.onError(error);
    return this.refusal(
      new GatewayError("internal_server_error", "The gateway failed on this request."),
    );
  }

  private refusal(error: GatewayError, headers: Readonly<Record<string, string>> = {}): Response {
    return Response.json(encodeContractError(error, { traceId: "" }), {
      status: error.status,
      headers: { connection: "close", ...this.headers, ...headers },
    });
  }

  /**
   * Ends streams that are not read, and frees idle connections where the limit of open files is
   * nearly reached.
   */
  sweep(): void {
    this.streams.sweep();
    this.quietSweeps += 1;
    if (this.quietSweeps * sweepMs > keptIdleSeconds * 1_000 && this.streams.count === 0) {
      clearInterval(this.sweeper);
      this.sweeper = undefined;
    }
    // Idle connections give way to those with requests.
    if (this.filesMax !== undefined && isNearlyOutOfFiles(this.filesMax))
      this.listener.server.closeIdleConnections();
  }
}

/** A listening socket, with what its requests need of it. */
interface Listener {
  readonly server: Server<SocketData>;
  readonly bodyMemory: BodyMemory;
}

const idleSecondsAfter = (status: number): number =>
  status < 400 ? keptIdleSeconds : strangerIdleSeconds;

/** Milliseconds for which a client may leave data unread before its stream ends. */
const unreadMaxMs = 60_000;

/** Receives the end of a stream, for the connection that carries it. */
interface StreamEnds {
  /** Called when nothing more comes: all of it was sent, or the client has left. */
  onEnd(): void;
  /** Called when the source failed, which none should: the connection is closed. */
  onBroken(error: unknown): void;
  /** Called when the client reads nothing, so that its connection is to be closed. */
  onUnread(): void;
}

/** A stream of frames towards one client. */
interface OpenStream extends Passing {
  /**
   * The monotonic time since which the client has had no room; undefined while frames are awaited.
   */
  unreadSinceMs: number | undefined;
  end(): void;
}

/** The open streams of a server. Those whose clients have stopped reading are ended. */
class FrameStreams {
  private readonly open = new PassingSet<OpenStream>();

  constructor(private readonly clock: Clock) {}

  get count(): number {
    return this.open.size;
  }

  /**
   * Returns a byte stream of frames with end-to-end backpressure: the next frames are requested
   * when the client has room, so that a slow client slows the upstream instead of filling memory.
   * (Bun's streams of type `direct` have no backpressure.)
   */
  stream(source: AnswerSource, ends: StreamEnds): ReadableStream<FramePiece> {
    const { onEnd, onBroken, onUnread } = ends;
    const { open, clock } = this;
    let control: ReadableStreamDefaultController<FramePiece> | undefined;
    const each: OpenStream = {
      place: -1,
      unreadSinceMs: undefined,
      end() {
        open.delete(each);
        onUnread();
        source.cancel();
        control?.error(new Error("the client has not read for a minute"));
      },
    };
    const close = (): void => {
      open.delete(each);
      onEnd();
      control?.close();
    };
    const give = (frames: Frames | undefined): Promise<void> | undefined => {
      // The stream has ended in the meantime.
      if (each.place < 0) return undefined;
      // An empty chunk would count as one that was sent.
      if (frames === "") return ask();
      if (frames === undefined) close();
      else {
        each.unreadSinceMs = clock.monotonicMs();
        if (typeof frames === "string") control?.enqueue(frames);
        else for (const piece of frames) control?.enqueue(piece);
      }
      return undefined;
    };
    const fail = (error: unknown): void => {
      open.delete(each);
      onBroken(error);
      control?.error(error);
    };
    const ask = (): Promise<void> | undefined => {
      if (source.tellFrames !== undefined) source.tellFrames(give);
      else if (source.tellNext !== undefined) source.tellNext(give);
      else return source.next().then(give, fail);
      return undefined;
    };
    open.add(each);
    return new ReadableStream<FramePiece>(
      {
        start(controller) {
          control = controller;
          const frames = source.readyFrames?.() ?? source.ready?.();
          if (frames !== undefined && frames !== "") void give(frames);
        },
        pull: () => {
          each.unreadSinceMs = undefined;
          if (source.isOver === true) return close();
          return ask();
        },
        cancel() {
          open.delete(each);
          source.cancel();
          onEnd();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Ends the streams whose clients have not read for too long. */
  sweep(): void {
    const nowMs = this.clock.monotonicMs();
    this.open.forEach((stream) => {
      if (stream.unreadSinceMs !== undefined && nowMs - stream.unreadSinceMs > unreadMaxMs)
        stream.end();
    });
  }
}

/**
 * Returns the limit of open files of this process, which Bun raises as far as the system allows;
 * undefined where the system does not report it.
 */
function openFilesMax(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    // Systems without /proc, such as macOS.
    return undefined;
  }
}

/**
 * The limit of open files below which the gateway warns: each request takes two, its client's
 * connection and its provider's.
 */
const comfortableFiles = 8_192;

/** Returns the warning about a low limit of open files; undefined where it is high enough. */
export const openFilesWarning = (limit = openFilesMax()): string | undefined =>
  limit === undefined || limit >= comfortableFiles
    ? undefined
    : `only ${limit} files may be open at once, connections included; raise the limit (ulimit -n, LimitNOFILE) to ${comfortableFiles}`;

/** The share of the limit from which it counts as nearly reached. */
const nearlyPart = 0.8;

/**
 * Returns whether the limit of open files is nearly reached. The system gives a newly opened file
 * the lowest free number, which is about the count.
 */
function isNearlyOutOfFiles(limit: number): boolean {
  try {
    const file = openSync("/dev/null", "r");
    closeSync(file);
    return file > limit * nearlyPart;
  } catch {
    // Not a single further file can be opened.
    return true;
  }
}

/** Counts connections to a local port in the kernel's table; NaN where there is none. */
export async function countConnections(port: number): Promise<number> {
  const tables = await Promise.all(
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map((path) =>
      readFile(path, "latin1").catch(() => ""),
    ),
  );
  if (tables.every((table) => table === "")) return Number.NaN;
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  // Local address and port, remote address and port, and 01 for an established connection.
  const row = new RegExp(`^ *\\d+: [0-9A-F]+:${hexPort} [0-9A-F]+:[0-9A-F]{4} 01 `, "gm");
  return tables.reduce((sum, table) => sum + (table.match(row)?.length ?? 0), 0);
}

/** Serves metrics on a port of their own, so that they need not be reachable where the API is. */
export function serveMetrics(
  metrics: { text(): Promise<string>; contentType: string },
  { host, port }: { host: string; port: number },
): Server<undefined> {
  return Bun.serve({
    hostname: host,
    port,
    development: false,
    reusePort: false,
    routes: {
      "/metrics": async () =>
        new Response(await metrics.text(), { headers: { "content-type": metrics.contentType } }),
    },
    fetch: () => new Response("Only /metrics is served here.\n", { status: 404 }),
  });
}
