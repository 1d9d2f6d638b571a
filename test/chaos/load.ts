import { postChat } from "../end-to-end/process/support/ask.ts";
import { chargeIn, type SeenCharge } from "../end-to-end/process/support/seen-charge.ts";
import type { GatewayProcess } from "../support/process.ts";

const clientCount = 12;
/** Answers in a row that every gateway serves in normal operation. */
const normalInRow = 7;
/** Pause of a client that was refused or cut off, before it tries again. */
const pauseMs = 20;

/** A whole answer that a client got. */
interface Served {
  /** Place of its gateway. */
  home: number;
  beganMs: number;
  tookMs: number;
}

/**
 * Clients that ask on and on, streamed and whole, and what they meet. Each has a gateway of its
 * own, and tries the next one where a connection breaks, as a load balancer would.
 */
export class Load {
  readonly seen: SeenCharge[] = [];
  asked = 0;
  /** Answers with a 5xx status, and streams that ended with an error. */
  failed = 0;
  /** Connections that were refused, or ended before an answer did. */
  broken = 0;
  /** Whole answers without a charge. */
  free = 0;
  /** Answers with any other status, by status. */
  readonly refused = new Map<number, number>();
  readonly #served: Served[] = [];
  readonly #inRow: number[] = [];
  #normal: (() => void) | undefined;
  #waiting: { wanted: number; resolve: () => void }[] = [];
  #isOver = false;
  readonly #gateways: readonly GatewayProcess[];
  /** Pause of a client between its requests. */
  readonly #restMs: number;
  readonly #clients: Promise<unknown>;

  constructor(gateways: readonly GatewayProcess[], { restMs }: { restMs: number }) {
    this.#gateways = gateways;
    this.#restMs = restMs;
    this.#clients = Promise.all(
      Array.from({ length: clientCount }, (_, index) => this.#askOnAndOn(index)),
    );
  }

  get served(): number {
    return this.#served.length;
  }

  /** Resolves once every gateway has served so many answers in a row from now on. */
  untilNormal(): Promise<void> {
    this.#inRow.length = 0;
    return new Promise((resolve) => (this.#normal = resolve));
  }

  /** Resolves once so many more answers were served. */
  untilServed(count: number): Promise<void> {
    const wanted = this.served + count;
    return new Promise((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  /** Asks no more, and waits for what is under way. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  /** The 99th percentile of answers that began in a span of time at certain gateways. */
  p99Ms(fromMs: number, toMs: number, counts: (home: number) => boolean): number | undefined {
    const times = this.#served
      .filter(({ home, beganMs }) => beganMs >= fromMs && beganMs < toMs && counts(home))
      .map(({ tookMs }) => tookMs)
      .sort((one, other) => one - other);
    return times[Math.ceil(times.length * 0.99) - 1];
  }

  async #askOnAndOn(client: number): Promise<void> {
    let strays = false;
    for (let turn = client; !this.#isOver; turn += 1) {
      if (this.#restMs > 0) await Bun.sleep(this.#restMs);
      const home: number = (client + (strays ? 1 : 0)) % this.#gateways.length;
      strays = !strays && !(await this.#ask(home, turn % 3 === 0));
    }
  }

  /** Asks once; false where the connection broke. */
  async #ask(home: number, stream: boolean): Promise<boolean> {
    const gateway = this.#gateways[home];
    if (gateway === undefined) return false;
    this.asked += 1;
    const beganMs = performance.now();
    try {
      const response = await postChat(gateway, { stream });
      this.#count(response.status, await response.text(), { home, beganMs });
      if (!response.ok) await Bun.sleep(pauseMs);
      return true;
    } catch {
      this.broken += 1;
      this.#inRow[home] = 0;
      await Bun.sleep(pauseMs);
      return false;
    }
  }

  #count(status: number, text: string, { home, beganMs }: Omit<Served, "tookMs">): void {
    const charges = chargeIn(text);
    this.seen.push(...charges);
    if (status === 200 && charges.length > 0) {
      this.#served.push({ home, beganMs, tookMs: performance.now() - beganMs });
      this.#inRow[home] = (this.#inRow[home] ?? 0) + 1;
      if (this.#gateways.every((_, index) => (this.#inRow[index] ?? 0) >= normalInRow))
        this.#normal?.();
      for (const { wanted, resolve } of this.#waiting) if (this.served >= wanted) resolve();
      return;
    }
    this.#inRow[home] = 0;
    if (status >= 500 || (status === 200 && text.includes('"error"'))) this.failed += 1;
    else if (status === 200) this.free += 1;
    else this.refused.set(status, (this.refused.get(status) ?? 0) + 1);
  }
}
