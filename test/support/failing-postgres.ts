import { createServer, connect, type Server, type Socket } from "node:net";

/**
 * How the server of a `FailingPostgres` behaves: `works` forwards everything; `refuses` has no
 * listener; `resets` breaks every connection; `hangs` keeps connections and answers nothing; and an
 * SQLSTATE answers every statement and every login with that fatal error.
 */
export type PostgresFault = "works" | "refuses" | "resets" | "hangs" | { code: string };

/** A proxy before a Postgres that makes it fail in one of several ways. */
export class FailingPostgres {
  readonly #target: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #fault: PostgresFault = "works";
  #port = 0;

  constructor(target: { host: string; port: number }) {
    this.#target = target;
  }

  /** Listens on a free port and returns it. */
  async listen(): Promise<number> {
    await this.#open();
    return this.#port;
  }

  /** Changes how the server behaves, also on connections that are open. */
  async become(fault: PostgresFault): Promise<void> {
    this.#fault = fault;
    if (fault === "refuses") return this.close();
    if (this.#server === undefined) await this.#open();
    if (fault === "works" || fault === "resets") this.#cutAll();
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#cutAll();
    await new Promise((resolve) => (server === undefined ? resolve(0) : server.close(resolve)));
  }

  #open(): Promise<void> {
    const server = createServer((client) => this.#accept(client));
    this.#server = server;
    return new Promise((resolve) =>
      server.listen(this.#port, "127.0.0.1", () => {
        const address = server.address();
        this.#port = typeof address === "object" && address !== null ? address.port : 0;
        resolve();
      }),
    );
  }

  #cutAll(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #accept(client: Socket): void {
    const upstream = connect(this.#target);
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket
        .on("error", () => undefined)
        .once("close", () => {
          this.#sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
    }
    client.on("data", (request: Buffer) => {
      const fault = this.#fault;
      if (fault === "works") upstream.write(request);
      else if (fault === "resets" || fault === "refuses") client.resetAndDestroy();
      else if (fault !== "hangs") client.end(fatalError(fault.code));
    });
    upstream.on("data", (answer: Buffer) => {
      if (this.#fault === "works") client.write(answer);
    });
  }
}

/** https://www.postgresql.org/docs/current/protocol-message-formats.html, ErrorResponse. */
function fatalError(code: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mthe test makes the server fail\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}
