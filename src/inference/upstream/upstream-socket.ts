import type { SocketRoute } from "./upstream-client.ts";

/** What happens on a socket towards a provider. */
export interface UpstreamSocketEvents {
  received(text: string): void;
  /** Called once. `code` is 1006 where the connection broke. */
  closed(code: number, reason: string): void;
}

/** Where a socket is opened. */
export interface SocketTarget {
  /** With the scheme http or https, as base URLs of providers have it. */
  url: string;
  headers: Readonly<Record<string, string>>;
  connectTimeoutMs: number;
  /** The proxy and the certificates with which the provider is reached. */
  route: SocketRoute;
}

/** A WebSocket towards a provider. Frames that come before `listen` are kept until then. */
export class UpstreamSocket {
  private readonly socket: WebSocket;
  private early: string[] = [];
  private events: UpstreamSocketEvents | undefined;
  private end: { code: number; reason: string } | undefined;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const text = typeof data === "string" ? data : new TextDecoder().decode(data as ArrayBuffer);
      if (this.events === undefined) this.early.push(text);
      else this.receive(text, this.events);
    });
    socket.addEventListener("close", ({ code, reason }) => this.closed(code, reason));
  }

  /** Opens a socket. Rejects with the reason where the provider refuses it or does not answer. */
  static async open({
    url,
    headers,
    connectTimeoutMs,
    route,
  }: SocketTarget): Promise<UpstreamSocket> {
    const options = { headers, perMessageDeflate: false, ...routeOptions(route) };
    const socket = new WebSocket(url.replace(/^http/, "ws"), options as unknown as string[]);
    socket.binaryType = "arraybuffer";
    const opened = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => opened.reject(new Error("the provider did not answer in time")),
      connectTimeoutMs,
    );
    socket.addEventListener("open", () => opened.resolve());
    socket.addEventListener("error", (event) => {
      const message = "message" in event ? String(event.message) : "";
      opened.reject(new Error(message || "the provider refused the socket"));
    });
    socket.addEventListener("close", ({ code }) =>
      opened.reject(new Error(`the provider closed the socket with ${code}`)),
    );
    const opening = new UpstreamSocket(socket);
    try {
      await opened.promise;
    } catch (error) {
      socket.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    return opening;
  }

  /** Receives what comes from now on, and what has come before. */
  listen(events: UpstreamSocketEvents): void {
    this.events = events;
    const { end } = this;
    for (const text of this.early.splice(0)) this.receive(text, events);
    if (end !== undefined) events.closed(end.code, end.reason);
  }

  send(text: string): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(text);
  }

  /** The bytes that wait to be sent. */
  get waitingBytes(): number {
    return this.socket.bufferedAmount;
  }

  close(): void {
    this.socket.close();
  }

  /**
   * Passes a frame on. One that its receiver cannot work on ends this socket alone; the platform would
   * report what was thrown as uncaught, which ends the process.
   */
  private receive(text: string, events: UpstreamSocketEvents): void {
    try {
      events.received(text);
    } catch {
      this.socket.close();
      this.closed(1011, "A frame of the provider could not be read.");
    }
  }

  private closed(code: number, reason: string): void {
    if (this.end !== undefined) return;
    this.end = { code, reason };
    this.events?.closed(code, reason);
  }
}

/** Returns the options of the platform for a proxy and for certificates of the operator's own. */
function routeOptions({ proxy, trusted }: SocketRoute): Record<string, unknown> {
  return {
    ...(trusted !== undefined && { tls: { ca: [...trusted] } }),
    ...(proxy !== undefined && {
      proxy: {
        url: `http://${proxy.host.includes(":") ? `[${proxy.host}]` : proxy.host}:${proxy.port}`,
        ...(proxy.authorization !== undefined && {
          headers: { "proxy-authorization": proxy.authorization },
        }),
      },
    }),
  };
}
