import {
  CompiledQuery,
  Kysely,
  PostgresDialect,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from "kysely";
import { DatabaseError as PostgresError, type Pool, type PoolClient } from "pg";
import type { Clock } from "../../kernel/clock.ts";
import { randomBase62 } from "../../kernel/ids.ts";
import { LogLimit } from "../../kernel/log-limit.ts";
import { succeedsWithin, withinTime } from "../../kernel/within-time.ts";
import type { GatewayTables } from "../database-epoch.ts";
import type { StorageLogger } from "../storage.ts";
import { newPool } from "./new-pool.ts";

/** A replica that shows what is older is not read from. */
const maxLagMs = 10_000;
const beatMs = 1_000;
/** More than fit into the longest lag with which the replica is read from. */
const beatsKept = 16;
const probeMs = 2_000;
const maxQueryMs = 30_000;
const goodbyeMs = 1_000;

/** read_only_sql_transaction (PostgreSQL, appendix A). */
const readOnlyCode = "25006";

/** A replica in numbers. */
export interface ReplicaFigures {
  /** Whether questions go to it now. */
  isRead: boolean;
  /** How far it lags, as of the last beat. */
  lagSeconds: number;
  /** Questions that the primary answered in its place. */
  fallbacks: number;
}

/** What a replica is opened with. */
export interface ReplicaOptions {
  url: string;
  poolSize: number;
  /** The database that it is a replica of. */
  primary: Kysely<GatewayTables>;
  clock: Clock;
  logger: StorageLogger;
}

/**
 * Reads that may be a little late go to a replica of the database. What this gateway writes to the
 * primary each second tells, where the replica shows it, that it is one, and how far it lags. One
 * that does not, or that lags by more than ten seconds, is not read from: the primary answers. So
 * it does where the replica fails a question, such as one that gave way to what it had to replay.
 */
export class Replica {
  /** Reads alone, without transactions. */
  readonly database: Kysely<GatewayTables>;
  readonly figures: ReplicaFigures = { isRead: false, lagSeconds: 0, fallbacks: 0 };
  readonly #options: ReplicaOptions;
  readonly #pool: Pool;
  /** Apart, so that long questions do not make it look away. */
  readonly #probes: Pool;
  readonly #logLimit: LogLimit;
  readonly #nodeId = `replica-${randomBase62(12)}`;
  /** The last beats that the primary took; each is the monotonic time of its moment. */
  #written: number[] = [];
  /** When this began to beat. */
  readonly #firstMs: number;
  #hasShown = false;
  #beating: Promise<void> | undefined;
  /** Ends questions that the replica will not answer. */
  readonly #waiting = new Set<(reason: Error) => void>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.#firstMs = options.clock.monotonicMs();
    const limits = { statementMs: maxQueryMs, isReadOnly: true };
    this.#pool = newPool(options, { ...limits, max: options.poolSize });
    this.#probes = newPool(options, { ...limits, max: 1, query_timeout: probeMs });
    this.#logLimit = new LogLimit(options.clock);
    this.database = new Kysely<GatewayTables>({
      dialect: new PostgresDialect({
        pool: {
          options: {},
          connect: () => Promise.resolve(this.#client()),
          end: () => this.#pool.end(),
        },
      }),
    });
    this.#timer = setInterval(() => void this.beat(), beatMs);
    void this.beat();
  }

  /** Finds out whether the replica answers, and how far it lags. */
  beat(): Promise<void> {
    return (this.#beating ??= this.#beat().finally(() => (this.#beating = undefined)));
  }

  /** Lets go of both servers. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    this.#giveUp(new Error("the gateway ends"));
    const forgotten = this.#options.primary
      .deleteFrom("gateway_beats")
      .where("node_id", "=", this.#nodeId)
      .execute();
    // A connection that is dead without a word would never say goodbye.
    await Promise.all(
      [forgotten, this.database.destroy(), this.#probes.end()].map((work) =>
        succeedsWithin(goodbyeMs, work),
      ),
    );
  }

  async #beat(): Promise<void> {
    // Where the primary takes none, the lag is that of the last one.
    await succeedsWithin(probeMs, this.#write());
    try {
      const shown = await withinTime(probeMs, this.#shownBeat(), "late" as const);
      if (shown === "late") throw new Error("no answer within two seconds");
      this.#judge(shown);
    } catch (error) {
      this.figures.isRead = false;
      const failure = error instanceof Error ? error : new Error(String(error));
      this.#giveUp(failure);
      this.#warn("the replica cannot be read from", failure.message);
    }
  }

  async #write(): Promise<void> {
    const { primary, clock } = this.#options;
    const beat = Math.floor(clock.monotonicMs());
    const row = { beat, at_ms: clock.nowMs() };
    await primary
      .insertInto("gateway_beats")
      .values({ node_id: this.#nodeId, ...row })
      .onConflict((conflict) => conflict.column("node_id").doUpdateSet(row))
      .execute();
    this.#written = [...this.#written.slice(1 - beatsKept), beat];
  }

  async #shownBeat(): Promise<number | undefined> {
    const { rows } = await this.#probes.query<{ beat: number }>(
      "select beat from gateway_beats where node_id = $1",
      [this.#nodeId],
    );
    return rows[0]?.beat;
  }

  #judge(shown: number | undefined): void {
    this.#hasShown ||= shown !== undefined;
    const lagMs = this.#lagMs(shown);
    const isRead = this.#hasShown && lagMs <= maxLagMs;
    if (isRead && !this.figures.isRead)
      this.#options.logger.info({}, "the replica of the database is read from");
    this.figures.lagSeconds = lagMs / 1_000;
    this.figures.isRead = isRead;
    if (lagMs <= maxLagMs) return;
    if (this.#hasShown) this.#warn("the replica lags too far behind", `${lagMs} ms`);
    else this.#warn("storage.replica_url does not show what is written to the database");
  }

  /** From the first beat that the replica lacks to the last one. */
  #lagMs(shown: number | undefined): number {
    const lastMs = this.#written.at(-1) ?? this.#firstMs;
    if (shown === undefined) return lastMs - this.#firstMs;
    const index = this.#written.findIndex((beat) => beat > shown);
    // Between the beat that it shows and the next one this gateway may have stood still.
    return index < 0 ? 0 : lastMs - (index === 0 ? shown : (this.#written[index] ?? shown));
  }

  /** Lets no question wait for a server that does not answer. */
  #giveUp(reason: Error): void {
    for (const reject of this.#waiting) reject(reason);
  }

  #warn(message: string, reason?: string): void {
    if (this.#logLimit.pass(message) === undefined) return;
    this.#options.logger.warn({ reason }, `${message}; the primary answers in its place`);
  }

  #client(): PostgresPoolClient {
    const query = async <R>(
      sql = "",
      parameters: readonly unknown[] = [],
    ): Promise<PostgresQueryResult<R>> => {
      if (this.figures.isRead) {
        try {
          return await this.#ask<R>(sql, parameters);
        } catch (error) {
          if (error instanceof PostgresError && error.code === readOnlyCode) throw error;
          this.#warn("the replica failed a question", String(error));
        }
      }
      this.figures.fallbacks += 1;
      const { rows } = await this.#options.primary.executeQuery<R>(
        CompiledQuery.raw(sql, [...parameters]),
      );
      return { command: "SELECT", rowCount: rows.length, rows };
    };
    return { query, release: () => undefined } as PostgresPoolClient;
  }

  async #ask<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> {
    const client = await this.#connect();
    let lost: Error | undefined;
    try {
      const answer = client.query(sql, [...parameters]);
      return (await this.#unlessAway(answer)) as unknown as PostgresQueryResult<R>;
    } catch (error) {
      if (!(error instanceof PostgresError)) lost = error as Error;
      throw error;
    } finally {
      client.release(lost);
    }
  }

  /** A connection that comes after it was given up is let go of. */
  async #connect(): Promise<PoolClient> {
    const connecting = this.#pool.connect();
    try {
      return await this.#unlessAway(connecting);
    } catch (error) {
      connecting.then(
        (client) => client.release(true),
        () => undefined,
      );
      throw error;
    }
  }

  #unlessAway<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      answer.finally(() => this.#waiting.delete(reject)).then(resolve, reject);
    });
  }
}
