import type { ServerWebSocket } from "bun";
import type { Clock } from "../../platform/kernel/clock.ts";
import { type SocketSession, type SocketData, closeCodes, ClientSocket } from "./client-socket.ts";

/** Milliseconds between pings: less than the minute after which common proxies cut silence. */
const pingMs = 20_000;

/** Milliseconds for which a client may leave data unread before its socket is closed. */
const unreadMaxMs = 60_000;

/** Milliseconds that a closed socket may take to confirm its end before it is cut. */
const farewellMs = 5_000;

/** The largest frame that is accepted, in bytes: as much as a request over HTTP may have. */
const frameBytesMax = 32 * 1024 * 1024;

/**
 * The most bytes that the platform holds for one client. Senders wait long before (`untilRoom`), so
 * that no frame is ever dropped.
 */
const platformBytesMax = 512 * 1024 * 1024;

/** The open sockets of a server. */
export class OpenSockets {
  private readonly sessions = new Map<ClientSocket, SocketSession>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private empty: PromiseWithResolvers<void> | undefined;
  /** The frames that clients have sent since the start. */
  framesReceived = 0;
  /** Milliseconds that closed sockets were open, and the times at which the open ones began. */
  private closedMs = 0;
  private openedSumMs = 0;

  /** `onError` is called with what the work of a socket has thrown. */
  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly onError: (error: unknown) => void,
  ) {}

  get count(): number {
    return this.sessions.size;
  }

  /** Seconds that all sockets since the start were open, with those that still are. */
  get secondsOpen(): number {
    const openMs = this.count * this.clock.monotonicMs() - this.openedSumMs;
    return (this.closedMs + openMs) / 1_000;
  }

  /** The platform's callbacks and limits. */
  readonly handlers: Bun.WebSocketHandler<SocketData> = {
    perMessageDeflate: { compress: "shared", decompress: "shared" },
    maxPayloadLength: frameBytesMax,
    backpressureLimit: platformBytesMax,
    closeOnBackpressureLimit: false,
    // Pings of its own are late, and it cannot tell a client that reads nothing from one that left.
    sendPings: false,
    idleTimeout: 120,
    open: (platform) => this.opened(platform),
    message: (platform, frame) => {
      this.framesReceived += 1;
      this.guarded(platform, () => platform.data.session.received(frame));
    },
    drain: (platform) => platform.data.socket?.drained(),
    close: (platform) => this.closed(platform),
  };

  /** Asks every session to finish; resolves when all sockets are closed. */
  async end(): Promise<void> {
    for (const session of [...this.sessions.values()]) session.ending();
    if (this.count === 0) return;
    this.empty ??= Promise.withResolvers<void>();
    await this.empty.promise;
  }

  /** Cuts every socket. */
  terminate(): void {
    for (const socket of [...this.sessions.keys()]) socket.terminate();
  }

  /**
   * Pings every client, closes the sockets whose clients do not read, and lets sessions check their
   * limits.
   */
  pass(): void {
    const nowMs = this.clock.monotonicMs();
    for (const [socket, session] of [...this.sessions]) {
      const sinceMs = socket.unreadSinceMs;
      if (sinceMs !== undefined && nowMs - sinceMs > unreadMaxMs) {
        socket.close(closeCodes.tryLater, "The client has not read for a minute.");
        setTimeout(() => socket.terminate(), farewellMs).unref();
        continue;
      }
      socket.ping();
      session.passed?.(nowMs);
    }
  }

  private opened(platform: ServerWebSocket<SocketData>): void {
    const { data } = platform;
    const socket = new ClientSocket(platform, this.clock);
    data.socket = socket;
    this.sessions.set(socket, data.session);
    this.openedSumMs += socket.openedMs;
    this.timer ??= setInterval(() => this.pass(), pingMs);
    this.timer.unref();
    this.guarded(platform, () => data.session.opened(socket));
  }

  private closed({ data: { socket, session } }: ServerWebSocket<SocketData>): void {
    if (socket === undefined) return;
    socket.gone();
    this.sessions.delete(socket);
    this.openedSumMs -= socket.openedMs;
    this.closedMs += this.clock.monotonicMs() - socket.openedMs;
    session.closed();
    if (this.count > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.empty?.resolve();
  }

  /**
   * Runs the work of one socket. What it throws ends that socket with 1011; the platform would report
   * it as uncaught, which ends the process and so every other request.
   */
  private guarded({ data }: ServerWebSocket<SocketData>, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.onError(error);
      data.socket?.close(closeCodes.internal, "The frame could not be worked on.");
    }
  }
}
