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
  private room: PromiseWithResolvers<void> | undefined;

  constructor(
    private readonly socket: ServerWebSocket<SocketData>,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {
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
