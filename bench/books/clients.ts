import type { Peer } from "../peers/peer.ts";
import { answerId } from "./answers.ts";

const clientCount = 12;
/** Answers in a row after which a peer serves as it did. */
const normalInRow = 7;
/** Pause of a client that was refused or cut off, before it tries again. */
const pauseMs = 20;
const timeoutMs = 60_000;

/** Clients that ask one peer on and on, every third time for a stream, and what they are answered. */
export class Clients {
  /** Ids of the answers that came whole. */
  readonly answers: string[] = [];
  /** Answers with a 5xx status, and streams that ended without their end. */
  failed = 0;
  /** Connections that were refused, or ended before an answer did. */
  broken = 0;
  /** Answers with any other status. */
  refused = 0;
  /** Where the peer listens now. */
  port: number;
  readonly #peer: Peer;
  readonly #clients: Promise<unknown>;
  #inRow = 0;
  #isOver = false;
  readonly #waiting: { isReached: () => boolean; resolve: () => void }[] = [];

  constructor(peer: Peer, port: number) {
    this.#peer = peer;
    this.port = port;
    this.#clients = Promise.all(
      Array.from({ length: clientCount }, (_, index) => this.#askOnAndOn(index)),
    );
  }

  /** Resolves once so many more answers came whole. */
  untilAnswered(count: number): Promise<void> {
    const wanted = this.answers.length + count;
    return this.#until(() => this.answers.length >= wanted);
  }

  /** Resolves once seven answers in a row came whole from now on. */
  untilNormal(): Promise<void> {
    this.#inRow = 0;
    return this.#until(() => this.#inRow >= normalInRow);
  }

  /** Asks no more, and waits for what is under way. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  #until(isReached: () => boolean): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ isReached, resolve }));
  }

  async #askOnAndOn(client: number): Promise<void> {
    for (let turn = client; !this.#isOver; turn += 1) {
      if (await this.#ask(turn % 3 === 0)) continue;
      this.#inRow = 0;
      await Bun.sleep(pauseMs);
    }
  }

  /** Asks once; whether the answer came whole. */
  async #ask(stream: boolean): Promise<boolean> {
    const { path, headers, modelPrefix } = this.#peer;
    try {
      const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({
          model: `${modelPrefix}large`,
          messages: [{ role: "user", content: "Hello" }],
          stream,
          ...(stream && { stream_options: { include_usage: true } }),
        }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      return this.#count(response.status, await response.text());
    } catch {
      this.broken += 1;
      return false;
    }
  }

  #count(status: number, text: string): boolean {
    const id = status === 200 ? answerId(text) : undefined;
    if (id === undefined) {
      if (status >= 500 || status === 200) this.failed += 1;
      else this.refused += 1;
      return false;
    }
    this.answers.push(id);
    this.#inRow += 1;
    for (const { isReached, resolve } of this.#waiting) if (isReached()) resolve();
    return true;
  }
}
