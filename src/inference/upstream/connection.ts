import type { Socket, TLSOptions } from "bun";
import type { StoredContent } from "../../platform/spool/spool.ts";
import type { Proxy } from "../../platform/kernel/network/proxy-rules.ts";
import { ConnectDeadline, type ConnectLimit } from "./connect-deadline.ts";
import { ProxyTunnel } from "./proxy-tunnel.ts";
import { ResponseParser, type ResponseHead } from "./response-parser.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** The scheme, host and port of an upstream, by which connections are pooled. */
export interface Origin {
  secure: boolean;
  host: string;
  port: number;
}

/**
 * The target of a connection: its origin, and the proxy and certificates with which it is reached.
 */
export interface Place {
  origin: Origin;
  /** Connections with the same key are interchangeable. */
  key: string;
  /** The proxy that it goes through. */
  proxy: Proxy | undefined;
  /** Certificates in PEM that are trusted in place of the platform's own list. */
  trusted: readonly string[] | undefined;
}

/**
 * A part of a request in wire form. Text is ASCII: one byte per character. A stored content is read
 * as the socket takes it, from its byte `start` on.
 */
export type WirePart = string | Uint8Array | StoredPart;

/** The rest of a stored content. */
interface StoredPart {
  stored: StoredContent;
  start: number;
}

/** Bytes of a stored content that are read at once. */
const storedPieceBytes = 128 * 1024;

/**
 * Characters of a text that are written at once. The platform encodes all of a text before it writes
 * what the socket takes, so that the rest of a long one would be encoded again and again.
 */
const textPieceCharacters = 256 * 1024;

/** A request in wire form: parts that are sent one after the other. */
export type WireRequest = readonly WirePart[];

/** Receives the events of one request in flight on a connection, in order. */
export interface ExchangeListener {
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer, start: number, end: number): void;
  /** Called when all body bytes of one read of the socket were passed on. */
  onRead(): void;
  onEnd(): void;
  onFailure(failure: UpstreamFailure): void;
}

const socketHandlers = {
  open(socket: Socket<Connection>): void {
    socket.data.onOpen(socket);
  },
  handshake(socket: Socket<Connection>, success: boolean, error: Error | null): void {
    socket.data.onHandshake(success, error);
  },
  data(socket: Socket<Connection>, bytes: Buffer): void {
    socket.data.onData(bytes);
  },
  drain(socket: Socket<Connection>): void {
    socket.data.onDrain();
  },
  end(socket: Socket<Connection>): void {
    socket.data.onPeerEnd();
  },
  close(socket: Socket<Connection>): void {
    socket.data.onClose();
  },
  error(socket: Socket<Connection>, error: Error): void {
    socket.data.onError(error);
  },
  connectError(socket: Socket<Connection>, error: Error): void {
    socket.data.onConnectError(error);
  },
};

/**
 * An HTTP/1.1 client connection on a plain or TLS socket. It carries one request at a time, and the
 * certificate must be valid for the host. Written on `Bun.connect` because `fetch` crosses a thread
 * for each request and cannot tell a slow connect from a slow answer.
 */
export class Connection {
  /** When it became idle, in milliseconds of the monotonic clock. */
  idleSinceMs = 0;
  /** Until when an idle connection is trusted, in milliseconds of the monotonic clock. */
  idleUntilMs = 0;
  /** The upstream's announced idle timeout in milliseconds; undefined where it announced none. */
  idleForMs: number | undefined;
  private socket: Socket<Connection> | undefined;
  private tunnel: ProxyTunnel | undefined;
  private readonly parser: ResponseParser;
  private listener: ExchangeListener | undefined;
  private unsent: WireRequest = [];
  private pulling: StoredPart | undefined;
  private storedBytes: Buffer | undefined;
  private written = false;
  /** Whether its opening has succeeded. */
  private isOpened = false;
  private closed = false;
  private paused = false;
  private opened!: (connection: Connection) => void;
  private refused!: (failure: UpstreamFailure) => void;

  constructor(
    readonly place: Place,
    private readonly release: (connection: Connection, reusable: boolean) => void,
  ) {
    this.parser = new ResponseParser({
      onHead: (head) => this.listener?.onHead(head),
      onBody: (bytes, start, end) => this.listener?.onBody(bytes, start, end),
      onEnd: (reusable) => this.complete(reusable),
    });
  }

  /**
   * Opens the socket. Rejects with `connect_failed`, `proxy_refused`, `tls_failed` or
   * `connect_timeout`.
   */
  open({ timeoutMs, watch }: ConnectLimit): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    const deadline = new ConnectDeadline({ timeoutMs, watch }, () => {
      this.refused(
        new UpstreamFailure("connect_timeout", `no connection within ${timeoutMs} ms`, {
          sent: false,
        }),
      );
    });
    this.opened = (connection) => {
      this.isOpened = true;
      watch.remove(deadline);
      resolve(connection);
    };
    this.refused = (failure) => {
      watch.remove(deadline);
      this.destroy();
      reject(failure);
    };
    const { origin, proxy } = this.place;
    if (proxy !== undefined && origin.secure) this.openThrough(proxy);
    else this.openTo(proxy ?? origin);
    return promise;
  }

  private openTo({ host, port }: Pick<Origin, "host" | "port">): void {
    Bun.connect<Connection>({
      hostname: host,
      port,
      socket: socketHandlers,
      data: this,
      ...(this.place.origin.secure ? { tls: this.tls() } : {}),
    }).then(
      (socket) => {
        if (this.closed) socket.terminate();
      },
      (error: unknown) => this.onConnectError(error),
    );
  }

  private openThrough(proxy: Proxy): void {
    this.tunnel = new ProxyTunnel(proxy, {
      origin: this.place.origin,
      listener: {
        onTunnel: (socket) =>
          void socket.upgradeTLS<Connection>({
            data: this,
            socket: socketHandlers,
            tls: this.tls(),
          }),
        onFailure: (failure) => this.refused(failure),
      },
    });
    this.tunnel.open();
  }

  private tls(): TLSOptions {
    const {
      origin: { host },
      trusted,
    } = this.place;
    return {
      serverName: host,
      rejectUnauthorized: true,
      ...(trusted === undefined ? {} : { ca: [...trusted] }),
    };
  }

  /** Aborts a connection that is still being opened. */
  abort(): void {
    this.abandon("aborted", "the request was abandoned");
  }

  private abandon(fault: "aborted" | "shutting_down", message: string): void {
    if (!this.closed) this.refused(new UpstreamFailure(fault, message, { sent: false }));
  }

  /** Sends one request. */
  send(wire: WireRequest, listener: ExchangeListener): void {
    this.listener = listener;
    this.written = false;
    if (this.socket === undefined || this.closed) {
      this.fail(
        new UpstreamFailure("connection_closed", "the connection was closed", { sent: false }),
      );
      return;
    }
    this.unsent = wire;
    this.flush();
  }

  /**
   * Writes what the socket takes, and keeps the rest until it has room. The rest of a part is a
   * view of it, so that no byte is copied.
   */
  private flush(): void {
    while (this.unsent.length > 0) {
      const [part = "", ...later] = this.unsent;
      if (typeof part === "object" && "stored" in part) {
        this.pull(part, later);
        return;
      }
      const piece = typeof part === "string" ? part.slice(0, textPieceCharacters) : part;
      const taken = Math.max(0, this.socket?.write(piece) ?? 0);
      this.written ||= taken > 0;
      const rest = typeof part === "string" ? part.slice(taken) : part.subarray(taken);
      this.unsent = rest.length > 0 ? [rest, ...later] : later;
      if (taken < piece.length) return;
    }
  }

  /** Reads the next bytes of a stored content, and goes on to send once they are there. */
  private pull(part: StoredPart, later: WireRequest): void {
    const { stored, start } = part;
    if (start >= stored.size) {
      this.unsent = later;
      this.flush();
      return;
    }
    // A drained socket must not read the same bytes again.
    if (this.pulling === part) return;
    this.pulling = part;
    const { listener } = this;
    // The socket has taken all that was read before.
    this.storedBytes ??= Buffer.allocUnsafe(storedPieceBytes);
    stored.read(start, storedPieceBytes, this.storedBytes).then(
      (bytes) => {
        if (this.listener !== listener || this.unsent[0] !== part) return;
        if (bytes.byteLength === 0) this.fail(unreadable(undefined));
        else {
          this.unsent = [bytes, { stored, start: start + bytes.byteLength }, ...later];
          this.flush();
        }
      },
      (error: unknown) => {
        if (this.listener === listener) this.fail(unreadable(error));
      },
    );
  }

  /**
   * Limits the trust in an idle connection to the upstream's `Keep-Alive: timeout=N`, less half a
   * second.
   */
  noteKeepAlive(header: string | undefined): void {
    const seconds = header === undefined ? undefined : /timeout=(\d+)/i.exec(header)?.[1];
    if (seconds !== undefined) this.idleForMs = Math.max(0, Number(seconds) * 1000 - 500);
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /** Stops reading, so that TCP backpressure slows the upstream. */
  pause(): void {
    if (!this.paused) {
      this.paused = true;
      this.socket?.pause();
    }
  }

  resume(): void {
    if (this.paused) {
      this.paused = false;
      this.socket?.resume();
    }
  }

  /** Drops the connection at once; the exchange in flight fails, and so does a connect. */
  breakOff(): void {
    const message = "the gateway is shutting down";
    if (this.listener === undefined) this.abandon("shutting_down", message);
    else this.fail(new UpstreamFailure("shutting_down", message, { sent: true }));
  }

  /** Drops the connection at once; the exchange in flight receives no further event. */
  destroy(): void {
    this.listener = undefined;
    this.unsent = [];
    if (!this.closed) {
      this.closed = true;
      this.socket?.terminate();
      this.tunnel?.destroy();
      this.release(this, false);
    }
  }

  onOpen(socket: Socket<Connection>): void {
    this.socket = socket;
    if (this.closed) socket.terminate();
    else if (!this.place.origin.secure) {
      socket.setNoDelay(true);
      this.opened(this);
    }
  }

  onHandshake(success: boolean, error: Error | null): void {
    if (this.closed) return;
    if (success && error === null) {
      this.socket?.setNoDelay(true);
      this.opened(this);
    } else {
      this.refused(
        new UpstreamFailure("tls_failed", error?.message ?? "the TLS handshake failed", {
          sent: false,
          cause: error,
        }),
      );
    }
  }

  onData(bytes: Buffer): void {
    if (this.listener === undefined) {
      // The peer sent bytes that were not asked for, which breaks the protocol: the connection
      // cannot be reused.
      this.destroy();
      return;
    }
    try {
      this.parser.push(bytes);
      this.listener?.onRead();
    } catch (error) {
      this.fail(
        error instanceof UpstreamFailure
          ? error
          : new UpstreamFailure("malformed_response", "the answer could not be read", {
              sent: true,
              cause: error,
            }),
      );
    }
  }

  onDrain(): void {
    this.flush();
  }

  onPeerEnd(): void {
    if (this.listener !== undefined && this.parser.end()) return;
    this.onClose();
  }

  onClose(): void {
    if (this.listener !== undefined && this.parser.end()) return;
    this.fail(
      new UpstreamFailure("connection_closed", "the upstream closed the connection", {
        sent: this.written,
      }),
    );
  }

  onError(error: Error): void {
    this.fail(
      new UpstreamFailure("connection_closed", error.message, { sent: this.written, cause: error }),
    );
  }

  onConnectError(error: unknown): void {
    if (this.closed) return;
    const message = error instanceof Error ? error.message : String(error);
    this.refused(new UpstreamFailure("connect_failed", message, { sent: false, cause: error }));
  }

  /** Ends the opening of a socket that its peer has closed, in the middle of a handshake mostly. */
  private failOpening({ message, cause }: UpstreamFailure): void {
    if (this.closed) return;
    const fault = this.place.origin.secure ? "tls_failed" : "connect_failed";
    this.refused(new UpstreamFailure(fault, message, { sent: false, cause }));
  }

  private complete(reusable: boolean): void {
    this.storedBytes = undefined;
    const listener = this.listener;
    this.listener = undefined;
    this.resume();
    const keep = reusable && this.unsent.length === 0 && !this.closed;
    if (keep) this.release(this, true);
    else this.destroy();
    listener?.onEnd();
  }

  private fail(failure: UpstreamFailure): void {
    if (!this.isOpened) return this.failOpening(failure);
    const listener = this.listener;
    this.destroy();
    listener?.onFailure(failure);
  }
}

/** Builds the failure of a request whose stored body is gone. */
const unreadable = (cause: unknown): UpstreamFailure =>
  new UpstreamFailure("aborted", "the body of the request could not be read", {
    sent: true,
    cause,
  });
