import { DatabaseError as PostgresError, type QueryResult } from "pg";
import type { Clock } from "../../kernel/clock.ts";
import { StorageUnavailableError } from "../storage-error.ts";
import type { StorageLogger } from "../storage.ts";

/** How often it is looked at what waits, in milliseconds. */
const lookEveryMs = 500;
/** After so long without any answer the database is asked whether it is there. */
const quietMs = 1_000;
const goodbyeMs = 1_000;

type Answer = QueryResult<Record<string, unknown>>;

/** A connection on which one statement at a time is run. */
export interface QueryClient {
  query(text: string, values?: unknown[]): Promise<Answer>;
  release(error?: boolean | Error): void;
}

/** The part of a pool of `pg` that is used. */
export interface QueryPool {
  connect(): Promise<QueryClient>;
  end(): Promise<void>;
}

/** What a watch asks, and whom it tells. */
export interface SilenceWatchOptions {
  /** One connection, which the probes have for themselves, and whose probes have an end. */
  probes: { query(text: string): Promise<unknown>; end(): Promise<void> };
  /** How long nothing may be answered, while something waits, until that is silence. */
  silentAfterMs: number;
  clock: Clock;
  logger: StorageLogger;
}

/**
 * Finds out that a database keeps its connections and answers nothing: its processes are stopped,
 * its disk hangs, or the network drops what is sent. While something waits and nothing at all was
 * answered for a second, it asks a question that needs no disk and no lock; a database that is only
 * slow answers that. Silence ends every question that waits, so that no connection is taken for
 * ever, and refuses new ones until the database answers again.
 */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  readonly #waiting = new Set<(reason: Error) => void>();
  /** When something was answered last, or where nothing waited, when something began to. */
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

  /** Whether the database answers nothing, as far as is known. */
  get isSilent(): boolean {
    return this.#silentSinceMs !== undefined;
  }

  /** Watches from now on; `onSilence` is called once for each silence. */
  start(onSilence: (cause: string) => void): void {
    this.#onSilence = onSilence;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
    this.#timer.unref();
  }

  /** Lets go of the connection of the probes. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // A connection that is dead without a word would never say goodbye.
    await Promise.race([
      this.#options.probes.end().catch(() => undefined),
      new Promise((resolve) => setTimeout(resolve, goodbyeMs)),
    ]);
  }

  /**
   * What the database answers, be it an error; rejects with `StorageUnavailableError` in a silence,
   * also where that comes later. Nothing is asked then.
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

  /** Work that waits for the database without proving that it answers. Rejects as `answerOf` does. */
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

  /** Tells that the database has answered something. */
  heard(): void {
    this.#heardMs = this.#nowMs();
    if (this.#silentSinceMs === undefined) return;
    const seconds = Math.round((this.#heardMs - this.#silentSinceMs) / 100) / 10;
    this.#silentSinceMs = undefined;
    this.#options.logger.info({ seconds }, "the database answers again");
  }

  /** A pool whose connections are watched; one that a silence took is closed when it is released. */
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

  /** A connection that comes after it was given up is let go of, be the silence over or not. */
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

/** A connection whose statements end with a silence, and which is then not used again. */
class WatchedClient implements QueryClient {
  readonly #client: QueryClient;
  readonly #watch: SilenceWatch;
  #lost: Error | undefined;

  constructor(client: QueryClient, watch: SilenceWatch) {
    this.#client = client;
    this.#watch = watch;
  }

  async query(text: string, values?: unknown[]): Promise<Answer> {
    // What comes after a statement that is not answered would wait behind it.
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
