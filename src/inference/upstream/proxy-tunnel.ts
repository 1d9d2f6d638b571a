import type { Socket } from "bun";
import type { Proxy } from "../../platform/kernel/network/proxy-rules.ts";
import { parseHead } from "./response-parser.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** The most bytes of a proxy's answer to CONNECT. */
const answerBytesMax = 16 * 1024;

/** The host and port to which a tunnel leads. */
type TunnelEnd = Pick<Proxy, "host" | "port">;

/**
 * Receives a tunnel's outcome: the socket that leads to the origin, or the reason why there is
 * none.
 */
interface TunnelListener {
  onTunnel(socket: Socket<ProxyTunnel>): void;
  onFailure(failure: UpstreamFailure): void;
}

const handlers = {
  open(socket: Socket<ProxyTunnel>): void {
    socket.data.onOpen(socket);
  },
  data(socket: Socket<ProxyTunnel>, bytes: Buffer): void {
    socket.data.onData(socket, bytes);
  },
  end(socket: Socket<ProxyTunnel>): void {
    socket.data.onClose();
  },
  close(socket: Socket<ProxyTunnel>): void {
    socket.data.onClose();
  },
  error(socket: Socket<ProxyTunnel>, error: Error): void {
    socket.data.fail("connect_failed", error.message, error);
  },
  connectError(socket: Socket<ProxyTunnel>, error: Error): void {
    socket.data.fail("connect_failed", error.message, error);
  },
};

/**
 * Asks a proxy for a tunnel to an origin (RFC 9110, 9.3.6). Once it is open, its socket belongs to
 * the listener.
 */
export class ProxyTunnel {
  private readonly origin: TunnelEnd;
  private readonly listener: TunnelListener;
  private socket: Socket<ProxyTunnel> | undefined;
  private answer: Buffer = Buffer.alloc(0);
  private settled = false;

  constructor(
    private readonly proxy: Proxy,
    { origin, listener }: { origin: TunnelEnd; listener: TunnelListener },
  ) {
    this.origin = origin;
    this.listener = listener;
  }

  open(): void {
    const { host: hostname, port } = this.proxy;
    Bun.connect<ProxyTunnel>({ hostname, port, socket: handlers, data: this }).catch(
      (error: unknown) =>
        this.fail("connect_failed", error instanceof Error ? error.message : String(error), error),
    );
  }

  /** Drops the connection to the proxy and the tunnel in it; nothing more is reported. */
  destroy(): void {
    this.settled = true;
    this.socket?.terminate();
  }

  onOpen(socket: Socket<ProxyTunnel>): void {
    this.socket = socket;
    if (this.settled) {
      socket.terminate();
      return;
    }
    socket.setNoDelay(true);
    const { host, port } = this.origin;
    const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    const { authorization } = this.proxy;
    const proof = authorization === undefined ? "" : `proxy-authorization: ${authorization}\r\n`;
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${proof}\r\n`);
  }

  /** Reads the proxy's answer. Anything after it comes from the origin and is read by its TLS. */
  onData(socket: Socket<ProxyTunnel>, bytes: Buffer): void {
    if (this.settled) return;
    this.answer = Buffer.concat([this.answer, bytes]);
    const end = this.answer.indexOf("\r\n\r\n");
    if (end < 0) {
      if (this.answer.length > answerBytesMax)
        this.fail("proxy_refused", "the proxy's answer to CONNECT is too long");
      return;
    }
    const status = statusOf(this.answer.toString("latin1", 0, end));
    if (status < 200 || status >= 300)
      this.fail("proxy_refused", `the proxy answered CONNECT with status ${status}`);
    // The origin does not speak before its client, so bytes behind the answer are the proxy's own.
    else if (this.answer.length > end + 4)
      this.fail("proxy_refused", "the proxy sent bytes behind its answer to CONNECT");
    else {
      this.settled = true;
      this.listener.onTunnel(socket);
    }
  }

  onClose(): void {
    this.fail("proxy_refused", "the proxy closed the connection");
  }

  fail(fault: "connect_failed" | "proxy_refused", message: string, cause?: unknown): void {
    if (this.settled) return;
    this.destroy();
    this.listener.onFailure(new UpstreamFailure(fault, message, { sent: false, cause }));
  }
}

/** Returns the status of a proxy's answer; 0 where it is not an HTTP answer. */
function statusOf(head: string): number {
  try {
    return parseHead(head).status;
  } catch {
    return 0;
  }
}
