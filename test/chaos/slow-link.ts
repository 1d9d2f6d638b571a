import { connect, createServer, type Server, type Socket } from "node:net";

/** How far the ends of a link are apart, and how much of what is sent arrives at once. */
export interface LinkQuality {
  /** Round trip that the link adds; half of it each way. */
  roundTripMs: number;
  /** Share of segments that are lost, and sent again. */
  loss: number;
}

/** Payload of a TCP segment on Ethernet. */
const segmentBytes = 1_448;

/** The least that a sender waits before it sends a lost segment again (Linux: `TCP_RTO_MIN`). */
const retransmitMs = 200;

/**
 * A TCP proxy that is to its two ends what a long, lossy network is: bytes arrive later, in order,
 * and a lost segment holds up all that follow until it was sent again. It does what loss looks like
 * to an application, so that neither rights nor `tc` are needed. At first it delays nothing.
 */
export class SlowLink {
  quality: LinkQuality = { roundTripMs: 0, loss: 0 };
  readonly #target: { host: string; port: number };
  readonly #random: () => number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: { host: string; port: number }, random: () => number) {
    this.#target = target;
    this.#random = random;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** Listens on a free port and returns it. */
  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(0, "127.0.0.1", () => {
        const address = this.#server.address();
        resolve(typeof address === "object" && address ? address.port : 0);
      });
    });
  }

  /** Resets every connection, and takes no more. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #accept(client: Socket): void {
    const server = connect(this.#target);
    const cut = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket.setNoDelay(true));
      socket.on("error", cut).once("close", () => this.#sockets.delete(socket));
    }
    this.#carry(client, server);
    this.#carry(server, client);
  }

  /** Passes bytes on in their order, each once its time has come, and then the end. */
  #carry(from: Socket, to: Socket): void {
    const waiting: { atMs: number; deliver: () => void }[] = [];
    const deliverDue = (): void => {
      for (let [first] = waiting; first !== undefined; [first] = waiting) {
        const leftMs = first.atMs - performance.now();
        if (leftMs > 0) return void setTimeout(deliverDue, Math.ceil(leftMs));
        waiting.shift();
        first.deliver();
      }
    };
    const send = (bytes: number, deliver: () => void): void => {
      waiting.push({ atMs: performance.now() + this.#delayOf(bytes), deliver });
      if (waiting.length === 1) deliverDue();
    };
    from.on("data", (chunk: Buffer) => send(chunk.length, () => void to.write(chunk)));
    from.once("close", () => send(0, () => void to.end()));
  }

  #delayOf(bytes: number): number {
    const { roundTripMs, loss } = this.quality;
    let delayMs = roundTripMs / 2;
    for (let left = bytes; left > 0; left -= segmentBytes)
      for (let waitMs = retransmitMs; this.#random() < loss; waitMs *= 2) delayMs += waitMs;
    return delayMs;
  }
}
