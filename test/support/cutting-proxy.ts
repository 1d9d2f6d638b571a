import { createServer, connect, type Server, type Socket } from "node:net";

/**
 * A TCP proxy that cuts connections at chosen moments. `mode`: `pass` forwards everything; `refuse`
 * closes new connections; `lose-request` closes a connection instead of forwarding what the client
 * sends next; `lose-answer` forwards that, and closes instead of forwarding the answer; `freeze`
 * keeps connections open and forwards nothing; `hold-answers` forwards requests, and withholds the
 * answers until `letAnswersGo`.
 */
export class CuttingProxy {
  mode: "pass" | "refuse" | "lose-request" | "lose-answer" | "freeze" | "hold-answers" = "pass";
  /** Chooses, by the bytes a client sends, the connections that the two `lose` modes cut. */
  cutWhen: (request: Buffer) => boolean = () => true;
  /** Called with everything that clients send. */
  onRequest: (request: Buffer) => void = () => undefined;
  /** Called for each connection that was refused. */
  onRefused: () => void = () => undefined;
  /** Connections that were accepted so far. */
  acceptedCount = 0;
  readonly #target: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #heldAnswers: { client: Socket; answer: Buffer }[] = [];

  constructor(target: { host: string; port: number }) {
    this.#target = target;
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

  /** Forwards the withheld answers, and passes all later ones. */
  letAnswersGo(): void {
    this.mode = "pass";
    for (const { client, answer } of this.#heldAnswers.splice(0)) client.write(answer);
  }

  /** Closes every open connection. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): Promise<void> {
    this.cutAll();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket): void {
    if (this.mode === "refuse") {
      client.destroy();
      return this.onRefused();
    }
    this.acceptedCount += 1;
    const upstream = connect(this.#target);
    let loseAnswer = false;
    const cut = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket
        .on("error", cut)
        .on("close", cut)
        .once("close", () => this.#sockets.delete(socket));
    }
    client.on("data", (request: Buffer) => {
      if (this.mode === "freeze") return;
      this.onRequest(request);
      if (this.mode === "lose-request" && this.cutWhen(request)) return cut();
      if (this.mode === "lose-answer" && this.cutWhen(request)) loseAnswer = true;
      upstream.write(request);
    });
    upstream.on("data", (answer: Buffer) => {
      if (this.mode === "freeze") return;
      if (loseAnswer) return cut();
      if (this.mode === "hold-answers") return void this.#heldAnswers.push({ client, answer });
      client.write(answer);
    });
  }
}
