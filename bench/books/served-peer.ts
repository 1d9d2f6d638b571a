import { mkdir } from "node:fs/promises";
import type { Peer, PeerContext, RunningPeer } from "../peers/peer.ts";

/** How long a peer may take to end after SIGTERM. */
const graceMs = 60_000;

/** A peer that is ended and started again on the same data. */
export class ServedPeer {
  readonly peer: Peer;
  readonly #context: PeerContext;
  #running: RunningPeer | undefined;

  constructor(peer: Peer, context: PeerContext) {
    this.peer = peer;
    this.#context = context;
  }

  /** Starts it and gives the port that it listens on. */
  async start(): Promise<number> {
    await mkdir(this.#context.directory, { recursive: true });
    this.#running = await this.peer.start(this.#context);
    return this.#running.port;
  }

  /** Sends it a signal that does not end it. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    process.kill(this.#pid, name);
  }

  /** Ends it as a power cut would, as far as the process is concerned. */
  async kill9(): Promise<void> {
    process.kill(this.#pid, "SIGKILL");
    await this.#gone();
  }

  /** Asks it to end, and lets it take its time. */
  async terminate(): Promise<void> {
    process.kill(this.#pid, "SIGTERM");
    const giveUpAtMs = performance.now() + graceMs;
    while (isAlive(this.#pid) && performance.now() < giveUpAtMs) await Bun.sleep(20);
    await this.#gone();
  }

  /** Keeps it from writing to its books until the result is called. */
  async lockBooks(): Promise<() => void> {
    const unlock = await this.peer.books?.lock(this.#context.directory);
    if (unlock === undefined) throw new Error(`${this.peer.name} keeps no books`);
    return unlock;
  }

  /** Ids of the answers in its books; it has ended. */
  async bookedIds(): Promise<string[]> {
    return (await this.peer.books?.readIds(this.#context.directory)) ?? [];
  }

  /** Ends what is left of it. */
  async stop(): Promise<void> {
    if (this.#running !== undefined) await this.#gone();
  }

  get #pid(): number {
    if (this.#running === undefined) throw new Error(`${this.peer.name} does not run`);
    return this.#running.pid;
  }

  async #gone(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.stop();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
