import { CompiledQuery, Kysely, type PostgresPoolClient, type PostgresQueryResult } from "kysely";
import { DatabaseError as PostgresError, type Pool, type PoolClient } from "pg";
import type { Clock } from "../../kernel/clock.ts";
import { randomBase62 } from "../../kernel/ids.ts";
import { LogLimit } from "../../kernel/log-limit.ts";
import { succeedsWithin, withinTime } from "../../kernel/time/within-time.ts";
import { databaseMs, type GatewayTables } from "../database-epoch.ts";
import type { StorageLogger } from "../storage.ts";
import type { SumTables } from "../sum-reads.ts";
import { PostgresSumsDialect } from "./postgres-sums-dialect.ts";
import { newPool } from "./new-pool.ts";

/** The lag, in milliseconds, beyond which a replica is not read from. */
const maxLagMs = 10_000;
const beatMs = 1_000;
/** The number of beats that are kept: more than fit into the longest acceptable lag. */
const beatsKept = 16;
const probeMs = 2_000;
const maxQueryMs = 30_000;
const goodbyeMs = 1_000;

/** read_only_sql_transaction (PostgreSQL, appendix A). */
const readOnlyCode = "25006";

/** The figures of a replica. */
export interface ReplicaFigures {
  /** Whether queries go to it now. */
  isRead: boolean;
  /** Its lag in seconds, as of the last beat. */
  lagSeconds: number;
  /** The number of queries that the primary answered in its place. */
  fallbacks: number;
}

/** Options of a replica. */
export interface ReplicaOptions {
  url: string;
  poolSize: number;
  /** The database that it is a replica of. */
  primary: Kysely<GatewayTables>;
  /** The primary's tables of sums, which it folds where it answers in the replica's place. */
  sums: SumTables;
  clock: Clock;
  logger: StorageLogger;
}

/**
 * Sends reads that may lag behind to a replica of the database. This gateway writes a beat to the
 * primary each second. Where the replica shows it, that proves that it is a replica, and how far it
 * lags. A replica that shows none, or lags by more than ten seconds, is not read from: the primary
 * answers. The primary also answers where the replica fails a query, such as one that was cancelled
 * in favour of replay.
 */
export class Replica {
  /** The replica's database, for reads alone and without transactions. */
  readonly database: Kysely<GatewayTables>;
  readonly figures: ReplicaFigures = { isRead: false, lagSeconds: 0, fallbacks: 0 };
  readonly #options: ReplicaOptions;
  readonly #pool: Pool;
  /** A separate pool, so that long queries do not delay the probes. */
  readonly #probes: Pool;
  readonly #logLimit: LogLimit;
  readonly #nodeId = `replica-${randomBase62(12)}`;
  /** The last beats that the primary took, each a monotonic time. */
  #written: number[] = [];
  /** When beating started. */
  readonly #firstMs: number;
  #hasShown = false;
  #beating: Promise<void> | undefined;
  /** Rejects queries that the replica will not answer. */
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
      dialect: new PostgresSumsDialect(
        {
          pool: {
            options: {},
            connect: () => Promise.resolve(this.#client()),
            end: () => this.#pool.end(),
          },
        },
        options.sums,
      ),
    });
    this.#timer = setInterval(() => void this.beat(), beatMs);
    void this.beat();
  }

  /** Checks whether the replica answers, and how far it lags. */
  beat(): Promise<void> {
    return (this.#beating ??= this.#beat().finally(() => (this.#beating = undefined)));
  }

  /** Closes the connections to both servers. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    this.#giveUp(new Error("the gateway ends"));
    const forgotten = this.#options.primary
      .deleteFrom("gateway_beats")
      .where("node_id", "=", this.#nodeId)
      .execute();
    // A silently dead connection would never finish its goodbye.
    await Promise.all(
      [forgotten, this.database.destroy(), this.#probes.end()].map((work) =>
        succeedsWithin(goodbyeMs, work),
      ),
    );
  }

  async #beat(): Promise<void> {
    // Where the primary takes no beat, the lag is that of the last one.
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
    const row = { beat, at_ms: databaseMs };
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
      this.#options.logger.info({}, "reads use the replica of the database");
    this.figures.lagSeconds = lagMs / 1_000;
    this.figures.isRead = isRead;
    if (lagMs <= maxLagMs) return;
    if (this.#hasShown) this.#warn("the replica lags too far behind", `${lagMs} ms`);
    else this.#warn("storage.replica_url does not show what is written to the database");
  }

  /** Returns the time from the first beat that the replica lacks to the last one. */
  #lagMs(shown: number | undefined): number {
    const lastMs = this.#written.at(-1) ?? this.#firstMs;
    if (shown === undefined) return lastMs - this.#firstMs;
    const index = this.#written.findIndex((beat) => beat > shown);
    // This gateway may have been suspended between the beat that the replica shows and the next
    // one.
    return index < 0 ? 0 : lastMs - (index === 0 ? shown : (this.#written[index] ?? shown));
  }

  /** Rejects every query that waits for a server that does not answer. */
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

  /** Connects. A connection that arrives after the attempt was given up is released. */
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
