import { connect, type Socket } from "node:net";

/** How a connection ended, as its client saw it. */
export type RawEnding = "FIN" | "RST";

/** A TCP client that keeps what it received in the segments in which it arrived. */
export class RawClient {
  readonly segments: Buffer[] = [];
  /** Resolves when the connection has ended. */
  readonly ended: Promise<RawEnding>;
  private readonly socket: Socket;
  private readonly watchers = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    const { promise, resolve } = Promise.withResolvers<RawEnding>();
    this.ended = promise;
    socket.on("data", (bytes: Buffer) => {
      this.segments.push(bytes);
      for (const watcher of this.watchers) watcher();
    });
    socket.on("end", () => resolve("FIN"));
    socket.on("error", () => resolve("RST"));
  }

  /** Connects to a port of 127.0.0.1. */
  static connect(port: number): Promise<RawClient> {
    const { promise, resolve, reject } = Promise.withResolvers<RawClient>();
    const socket = connect(port, "127.0.0.1");
    socket.setNoDelay(true);
    socket.once("error", reject);
    socket.once("connect", () => resolve(new RawClient(socket)));
    return promise;
  }

  send(content: string | Uint8Array): void {
    this.socket.write(content);
  }

  /** Sends a POST with a JSON body and its length. */
  post(path: string, value: unknown = {}): void {
    const text = JSON.stringify(value);
    const length = Buffer.byteLength(text);
    this.send(`POST ${path} HTTP/1.1\r\nhost: fixture\r\ncontent-length: ${length}\r\n\r\n${text}`);
  }

  /** The text of everything received so far. */
  get text(): string {
    return Buffer.concat(this.segments).toString("utf8");
  }

  /** Resolves when the received text ends with this. */
  receivedUpTo(ending: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => {
      if (this.text.endsWith(ending)) resolve();
    };
    this.watchers.add(check);
    check();
    return promise;
  }

  /** Closes the connection with a FIN. */
  leave(): void {
    this.socket.end();
  }

  /** Closes the connection with a RST. */
  vanish(): void {
    this.socket.resetAndDestroy();
  }
}
