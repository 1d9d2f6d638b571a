import { closeSync, openSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { BunRequest, Server } from "bun";
import { systemClock, type Clock } from "../platform/kernel/clock.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import type { FrameSource } from "../platform/kernel/frame-source.ts";
import { type Passing, PassingSet } from "../platform/kernel/passing.ts";
import { encodeContractError } from "./error-envelope.ts";
import { ServedRequest, Reply, type Answer } from "./request-context.ts";
import { BodyRoom } from "./read-body.ts";

/**
 * Works on one request, at once where nothing has to be waited for; what it throws is a mistake of
 * ours.
 */
export type RouteHandler = (request: ServedRequest) => Answer | Promise<Answer>;

/** Handlers by path; a segment that begins with a colon takes any value. */
export type CompiledRoutes = Readonly<Record<string, RouteHandler>>;

/** A certificate, with those that lead to its root, and its key, in PEM. */
export interface TlsPair {
  cert: string;
  key: string;
}

/** What a server serves, and where. */
interface HttpServerOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  /** Whether other processes that allow it listen at the port as well; connections are divided. */
  sharesPort?: boolean;
  routes: CompiledRoutes;
  fallback: RouteHandler;
  tls?: TlsPair | undefined;
  /** Bytes that request bodies may take at once. */
  bodyMemoryBytes: number;
  clock?: Clock;
  /** Receives what was thrown where nothing may throw. */
  onError(error: unknown): void;
}

/**
 * Silent seconds after which a connection is closed that has sent no request, or none that was
 * served.
 */
const strangerIdleSeconds = 5;

/**
 * Silent seconds between requests, and while an answer is sent: longer than the minute after which
 * usual proxies let go themselves.
 */
const keptIdleSeconds = 75;

/** How often streams and the file limit are looked at, in milliseconds. */
const sweepMs = 1_000;

/**
 * Bodies are bounded where they are read, with an answer in the endpoint's dialect. A limit of the
 * platform's own would close the connection without one.
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
    sharesPort = false,
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
      // Bun lets processes share a port once it is not developing: a second gateway would take
      // every other connection without being asked to.
      reusePort: sharesPort,
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

  /**
   * From now on every answer closes its connection (RFC 9112, 9.6): clients send their next request
   * elsewhere.
   */
  announceClosing(): void {
    this.closing = true;
  }

  /**
   * Accepts no more, closes what is idle and settles once every request under way was answered; at
   * once with `abruptly`, which cuts them off.
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
    // The handler of a request bounds how long its work takes.
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
    if (closes) answer.headers["connection"] = "close";
    const { body, status } = answer;
    if (typeof body !== "string") return answer.response(this.streamed(request, body));
    this.ended(request, idleSecondsAfter(status));
    return answer.response(body);
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

  /**
   * Ends streams that are not read, and makes room where nearly as many files are open as may be.
   */
  sweep(): void {
    this.streams.sweep();
    // Idle connections make room for those with requests.
    if (this.filesMax !== undefined && isNearlyOutOfFiles(this.filesMax))
      this.server.closeIdleConnections();
  }
}

const idleSecondsAfter = (status: number): number =>
  status < 400 ? keptIdleSeconds : strangerIdleSeconds;

const mapValues = <Value, Other>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value) => Other,
): Record<string, Other> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));

/** How long a client may leave what it was sent unread before its stream ends, in milliseconds. */
const unreadMaxMs = 60_000;

/** What became of a stream, for the connection that it goes over. */
interface StreamEnds {
  /** Nothing more comes: all of it was sent, or the client has left. */
  onEnd(): void;
  /** The source broke, which no source may: the client sees its connection end. */
  onBroken(error: unknown): void;
  /** The client reads nothing: its connection is to be closed. */
  onUnread(): void;
}

/** A stream of frames towards one client. */
interface OpenStream extends Passing {
  /** Monotonic time since which the client has had no room; undefined while frames are awaited. */
  unreadSinceMs: number | undefined;
  end(): void;
}

/**
 * The streams that a server has open, of which those whose clients have stopped reading are ended.
 */
class FrameStreams {
  private readonly open = new PassingSet<OpenStream>();
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * A byte stream of frames with backpressure end to end: the next frames are asked for when the
   * client has room, so a slow client slows the upstream instead of filling memory. (A stream of
   * Bun's type `direct` has no backpressure.)
   */
  stream(source: FrameSource, { onEnd, onBroken, onUnread }: StreamEnds): ReadableStream<string> {
    const { open, clock } = this;
    let control: ReadableStreamDefaultController<string> | undefined;
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
    // Undefined where frames were given: a promise is made only to ask for more of them.
    const give = (frames: string | undefined): Promise<void> | undefined => {
      // Ended in the meantime.
      if (each.place < 0) return undefined;
      // An empty piece would be taken for one that was sent.
      if (frames === "") return ask();
      if (frames === undefined) close();
      else {
        each.unreadSinceMs = clock.monotonicMs();
        control?.enqueue(frames);
      }
      return undefined;
    };
    const fail = (error: unknown): void => {
      open.delete(each);
      onBroken(error);
      control?.error(error);
    };
    const ask = (): Promise<void> | undefined => {
      if (source.tellNext === undefined) return source.next().then(give, fail);
      source.tellNext(give);
      return undefined;
    };
    open.add(each);
    return new ReadableStream<string>(
      {
        start(controller) {
          control = controller;
          const frames = source.ready?.();
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
 * The limit of open files of this process, which Bun raises as far as the system lets; undefined
 * where the system does not say.
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
 * Below this many files the gateway warns: each request takes two, its client's connection and its
 * provider's.
 */
const comfortableFiles = 8_192;

/** What an operator has to know of the limit of open files; undefined where it is high enough. */
export const openFilesWarning = (limit = openFilesMax()): string | undefined =>
  limit === undefined || limit >= comfortableFiles
    ? undefined
    : `only ${limit} files may be open at once, connections included; raise the limit (ulimit -n, LimitNOFILE) to ${comfortableFiles}`;

/** From this part of the limit on it counts as nearly reached. */
const nearlyPart = 0.8;

/**
 * Whether nearly as many files are open as may be. The system gives the lowest free number to a
 * file that is opened: about the count.
 */
function isNearlyOutOfFiles(limit: number): boolean {
  try {
    const file = openSync("/dev/null", "r");
    closeSync(file);
    return file > limit * nearlyPart;
  } catch {
    // Not one more can be opened.
    return true;
  }
}

/** Connections to a local port by the kernel's table; NaN where there is none. */
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
