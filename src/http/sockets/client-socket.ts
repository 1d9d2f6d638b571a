import type { ServerWebSocket } from "bun";
import type { Clock } from "../../platform/kernel/clock.ts";

/** The work that an endpoint does over an open socket. */
export interface SocketSession {
  /** Called once, when the socket is open. */
  opened(socket: ClientSocket): void;
  /** Receives a frame: text, or bytes where the client sent a binary one. */
  received(frame: string | Uint8Array): void;
  /** Asks for the end: running work is finished, and then the socket is closed with 1001. */
  ending(): void;
  /** Called once, when the socket is closed, whichever side closed it. */
  closed(): void;
  /** Called from time to time, for limits of time. `nowMs` is monotonic. */
  passed?(nowMs: number): void;
}

/** What the platform keeps with each socket. */
export interface SocketData {
  session: SocketSession;
  socket: ClientSocket | undefined;
}

/** Close codes (RFC 6455, section 7.4.1, and the registry of IANA). */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  policy: 1008,
  internal: 1011,
  tryLater: 1013,
} as const;

/** Bytes that may wait for a client to read them before its sender waits, too. */
const unreadBytesMax = 4 * 1024 * 1024;

/** Characters from which a frame is compressed; smaller ones gain nothing. */
const compressedFrom = 1_024;

/** An open socket towards a client. */
export class ClientSocket {
  /** The monotonic time since which the client has had no room; undefined while it has. */
  unreadSinceMs: number | undefined;
  /** Whether it is open. */
  isOpen = true;
  /** The monotonic time at which it was opened. */
  readonly openedMs: number;
  private readonly socket: ServerWebSocket<SocketData>;
  private readonly clock: Pick<Clock, "monotonicMs">;
  private room: PromiseWithResolvers<void> | undefined;

  constructor(socket: ServerWebSocket<SocketData>, clock: Pick<Clock, "monotonicMs">) {
    this.socket = socket;
    this.clock = clock;
    this.openedMs = clock.monotonicMs();
  }

  /** Sends a text frame; does nothing once the socket is closed. */
  send(text: string): void {
    if (!this.isOpen) return;
    this.socket.send(text, text.length >= compressedFrom);
    if (this.unreadBytes > unreadBytesMax) this.unreadSinceMs ??= this.clock.monotonicMs();
  }

  /** The bytes that wait for the client to read them. */
  get unreadBytes(): number {
    return this.socket.getBufferedAmount();
  }

  /**
   * Resolves when the client has room for more, or is gone; undefined where it has room now, so that
   * nothing is awaited.
   */
  untilRoom(): Promise<void> | undefined {
    if (this.unreadSinceMs === undefined || !this.isOpen) return undefined;
    this.room ??= Promise.withResolvers<void>();
    return this.room.promise;
  }

  /** Closes the socket with a code and a reason of at most 123 bytes. */
  close(code: number, reason = ""): void {
    if (this.isOpen) this.socket.close(code, reason);
  }

  /** Cuts the connection. */
  terminate(): void {
    this.socket.terminate();
  }

  ping(): void {
    this.socket.ping();
  }

  /** Notes that the client has read. */
  drained(): void {
    if (this.unreadBytes > unreadBytesMax / 2) return;
    this.unreadSinceMs = undefined;
    this.release();
  }

  /** Notes that the socket is closed. */
  gone(): void {
    this.isOpen = false;
    this.release();
  }

  private release(): void {
    this.room?.resolve();
    this.room = undefined;
  }
}

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
  private readonly clock: Pick<Clock, "monotonicMs">;
  private timer: ReturnType<typeof setInterval> | undefined;
  private empty: PromiseWithResolvers<void> | undefined;
  /** The frames that clients have sent since the start. */
  framesReceived = 0;
  /** Milliseconds that closed sockets were open, and the times at which the open ones began. */
  private closedMs = 0;
  private openedSumMs = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.clock = clock;
  }

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
      platform.data.session.received(frame);
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
    data.session.opened(socket);
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
}
