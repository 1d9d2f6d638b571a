import { DatabaseError as PostgresError, type QueryResult } from "pg";
import type { Clock } from "../../kernel/clock.ts";
import { StorageUnavailableError } from "../storage-error.ts";
import type { StorageLogger } from "../storage.ts";

/** Milliseconds between checks of waiting statements. */
const lookEveryMs = 500;
/** Milliseconds without any answer after which the database is probed. */
const quietMs = 1_000;
const goodbyeMs = 1_000;

type Answer = QueryResult<Record<string, unknown>>;

/** A connection on which one statement at a time is run. */
export interface QueryClient {
  query(text: string, values?: unknown[]): Promise<Answer>;
  release(error?: boolean | Error): void;
}

/** The part of a `pg` pool that is used here. */
export interface QueryPool {
  connect(): Promise<QueryClient>;
  end(): Promise<void>;
}

/** The options of a silence watch. */
export interface SilenceWatchOptions {
  /** A separate connection for the probes, which have a time limit. */
  probes: { query(text: string): Promise<unknown>; end(): Promise<void> };
  /** Milliseconds without an answer, while something waits, that count as silence. */
  silentAfterMs: number;
  clock: Clock;
  logger: StorageLogger;
}

/**
 * Detects a database that keeps its connections and answers nothing: its processes are stopped, its
 * disk hangs, or the network drops packets. When something waits and nothing was answered for a
 * second, it sends a probe that needs neither disk nor lock, which a slow database still answers.
 * Silence rejects every waiting query, so that no connection is held forever, and refuses new ones
 * until the database answers again.
 */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  readonly #waiting = new Set<(reason: Error) => void>();
  /** When the last answer came or, where nothing was waiting, when something began to wait. */
  #heardMs = 0;
  /** When the last probe was sent. */
  #probedMs = -1;
  #probing = false;
  #silentSinceMs: number | undefined;
  #onSilence: (cause: string) => void = () => undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
  }

  /** Whether the database is silent, as far as is known. */
  get isSilent(): boolean {
    return this.#silentSinceMs !== undefined;
  }

  /** Starts to watch. `onSilence` is called once for each silence. */
  start(onSilence: (cause: string) => void): void {
    this.#onSilence = onSilence;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
    this.#timer.unref();
  }

  /** Stops, and closes the connection of the probes. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // A silently dead connection would never finish its goodbye.
    await Promise.race([
      this.#options.probes.end().catch(() => undefined),
      new Promise((resolve) => setTimeout(resolve, goodbyeMs)),
    ]);
  }

  /**
   * Returns the database's answer, even if it is an error. Rejects with `StorageUnavailableError`
   * during a silence, also where it begins later; nothing is sent then.
   */
  async answerOf<Result>(ask: () => Promise<Result>): Promise<Result> {
    try {
      const answer = await this.unlessSilent(ask);
      this.heard();
      return answer;
    } catch (error) {
      if (error instanceof PostgresError) this.heard();
      throw error;
    }
  }

  /**
   * Runs work that waits for the database without proving that it answers. Rejects as `answerOf`
   * does.
   */
  unlessSilent<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.isSilent) return Promise.reject(silence());
    if (this.#waiting.size === 0) this.#heardMs = this.#nowMs();
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      work()
        .finally(() => this.#waiting.delete(reject))
        .then(resolve, reject);
    });
  }

  /** Notes that the database has answered. */
  heard(): void {
    this.#heardMs = this.#nowMs();
    if (this.#silentSinceMs === undefined) return;
    const seconds = Math.round((this.#heardMs - this.#silentSinceMs) / 100) / 10;
    this.#silentSinceMs = undefined;
    this.#options.logger.info({ seconds }, "the database answers again");
  }

  /**
   * Returns a pool whose connections are watched. A connection that was caught by a silence is
   * closed when it is released.
   */
  pool(pool: QueryPool): QueryPool {
    const clients = new WeakMap<QueryClient, WatchedClient>();
    return {
      connect: async () => {
        const client = await this.#connect(pool);
        let watched = clients.get(client);
        if (watched === undefined) {
          watched = new WatchedClient(client, this);
          clients.set(client, watched);
        }
        return watched;
      },
      end: () => pool.end(),
    };
  }

  /**
   * Connects. A connection that arrives after the attempt was given up is released, whether or not
   * the silence is over.
   */
  async #connect(pool: QueryPool): Promise<QueryClient> {
    let connecting: Promise<QueryClient> | undefined;
    try {
      return await this.unlessSilent(() => (connecting = pool.connect()));
    } catch (error) {
      connecting?.then(
        (client) => client.release(true),
        () => undefined,
      );
      throw error;
    }
  }

  #look(): void {
    const nowMs = this.#nowMs();
    if (this.isSilent) return this.#probe(nowMs);
    if (this.#waiting.size === 0 || nowMs - this.#heardMs < quietMs) return;
    const wasAsked = this.#probedMs >= this.#heardMs;
    if (wasAsked && nowMs - this.#heardMs >= this.#options.silentAfterMs) this.#fallSilent(nowMs);
    else this.#probe(nowMs);
  }

  #probe(nowMs: number): void {
    if (this.#probing) return;
    this.#probing = true;
    this.#probedMs = nowMs;
    this.#options.probes
      .query("select 1")
      .then(
        () => this.heard(),
        (error: unknown) => (error instanceof PostgresError ? this.heard() : undefined),
      )
      .finally(() => (this.#probing = false));
  }

  #fallSilent(nowMs: number): void {
    const { logger } = this.#options;
    this.#silentSinceMs = this.#heardMs;
    logger.error(
      { seconds: Math.round((nowMs - this.#heardMs) / 100) / 10, waiting: this.#waiting.size },
      "the database keeps its connections and answers nothing",
    );
    const reason = silence();
    this.#onSilence(reason.message);
    for (const giveUp of [...this.#waiting]) giveUp(reason);
    this.#waiting.clear();
  }

  #nowMs(): number {
    return this.#options.clock.livedMs();
  }
}

const silence = (): StorageUnavailableError =>
  new StorageUnavailableError("the database does not answer");

/** A connection whose statements end with a silence, after which it is not used again. */
class WatchedClient implements QueryClient {
  readonly #client: QueryClient;
  readonly #watch: SilenceWatch;
  #lost: Error | undefined;

  constructor(client: QueryClient, watch: SilenceWatch) {
    this.#client = client;
    this.#watch = watch;
  }

  async query(text: string, values?: unknown[]): Promise<Answer> {
    // A statement behind one that is not answered would wait for it.
    if (this.#lost !== undefined) throw this.#lost;
    try {
      return await this.#watch.answerOf(() => this.#client.query(text, values));
    } catch (error) {
      if (error instanceof StorageUnavailableError) this.#lost = error;
      throw error;
    }
  }

  release(error: boolean | Error = false): void {
    this.#client.release(error === false ? this.#lost : error);
  }
}
