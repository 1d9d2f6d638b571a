import type { Socket, TCPSocketListener } from "bun";
import { encodeContractError } from "../error-envelope.ts";
import { pathOf } from "../request-target.ts";
import { systemClock, type Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { HttpFault } from "./http-fault.ts";
import type { IncomingRequest } from "./incoming-request.ts";
import { Reply, type Answer } from "./reply.ts";
import { handlerFor, RouteTable, type CompiledRoutes, type RouteHandler } from "./route-table.ts";
import { ServerConnection, type ConnectionServer } from "./server-connection.ts";

/** How often connections are looked at for clients that owe something, in milliseconds. */
const sweepMs = 5_000;

/** What a server serves, and where. */
export interface HttpServerOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  routes: CompiledRoutes;
  fallback: RouteHandler;
  clock?: Clock;
  /** Told of what was thrown where nothing may throw. */
  onError(error: unknown): void;
}

const socketHandlers = {
  data(socket: Socket<ServerConnection>, bytes: Buffer): void {
    socket.data.onData(bytes);
  },
  drain(socket: Socket<ServerConnection>): void {
    socket.data.onDrain();
  },
  close(socket: Socket<ServerConnection>): void {
    socket.data.onClose();
  },
  error(socket: Socket<ServerConnection>): void {
    socket.data.terminate();
  },
};

/**
 * An HTTP/1.1 server on plain sockets (RFC 9112). Written by us because every request of `Bun.serve` costs a `Request`, a `Response`
 * and their headers, and every stream a `ReadableStream`: more than all else that the gateway does with it.
 */
export class HttpServer implements ConnectionServer {
  closing = false;
  readonly clock: Clock;
  private readonly table: RouteTable;
  private readonly fallback: RouteHandler;
  private readonly tellError: (error: unknown) => void;
  private readonly connections = new Set<ServerConnection>();
  private readonly listener: TCPSocketListener<ServerConnection>;
  private readonly sweeper: ReturnType<typeof setInterval>;
  private pending = 0;
  private stopping: { promise: Promise<void>; resolve: () => void } | undefined;

  /** Opens the listening socket; throws the system's error where it cannot. */
  constructor({ host, port, routes, fallback, onError, clock = systemClock }: HttpServerOptions) {
    this.table = new RouteTable(routes);
    this.fallback = fallback;
    this.tellError = onError;
    this.clock = clock;
    this.listener = Bun.listen<ServerConnection>({
      hostname: host, port, exclusive: true,
      socket: { ...socketHandlers, open: (socket) => this.accept(socket) },
    });
    this.sweeper = setInterval(() => this.sweep(), sweepMs);
    this.sweeper.unref();
  }

  get port(): number {
    return this.listener.port;
  }

  /** Requests that are under way. */
  get pendingRequests(): number {
    return this.pending;
  }

  /** From now on every answer closes its connection (RFC 9112, 9.6): clients send their next request elsewhere. */
  announceClosing(): void {
    this.closing = true;
  }

  /**
   * Accepts no more, closes what is idle and settles once every request under way was answered; at once with `abruptly`, which cuts
   * them off.
   */
  stop(abruptly = false): Promise<void> {
    this.closing = true;
    if (this.stopping === undefined) {
      this.stopping = Promise.withResolvers<void>();
      this.listener.stop(false);
    }
    for (const connection of [...this.connections]) {
      if (abruptly) connection.terminate();
      else if (connection.isIdle) connection.close();
    }
    if (abruptly || this.pending === 0) this.settleStop(this.stopping);
    return this.stopping.promise;
  }

  handle(request: IncomingRequest): Answer | Promise<Answer> {
    const route = this.table.match(pathOf(request));
    if (route === undefined) return this.fallback(request);
    request.params = route.params;
    return (handlerFor(route.methods, request.method) ?? this.fallback)(request);
  }

  refuse({ status, message }: HttpFault): Answer {
    const error = new GatewayError(status === 500 ? "internal_server_error" : "bad_request", message);
    const envelope = encodeContractError(error, { traceId: "" });
    return new Reply(JSON.stringify(envelope), { status, headers: { "content-type": "application/json" } });
  }

  onBegin(): void {
    this.pending += 1;
  }

  onEnd(): void {
    this.pending -= 1;
    if (this.stopping !== undefined && this.pending === 0) this.settleStop(this.stopping);
  }

  onGone(connection: ServerConnection): void {
    this.connections.delete(connection);
  }

  onError(error: unknown): void {
    this.tellError(error);
  }

  private accept(socket: Socket<ServerConnection>): void {
    const connection = new ServerConnection(socket, this);
    socket.data = connection;
    socket.setNoDelay(true);
    this.connections.add(connection);
    if (this.stopping !== undefined) connection.close();
  }

  /** Ends connections whose clients have owed something for too long. */
  sweep(): void {
    const nowMs = this.clock.monotonicMs();
    for (const connection of this.connections) connection.sweep(nowMs);
  }

  private settleStop({ resolve }: { resolve: () => void }): void {
    clearInterval(this.sweeper);
    resolve();
  }
}
