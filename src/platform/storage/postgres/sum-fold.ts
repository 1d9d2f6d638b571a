import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from "kysely";
import { DatabaseError as PostgresError } from "pg";
import { z } from "zod";
import type { Clock } from "../../kernel/clock.ts";
import { LogLimit } from "../../kernel/log-limit.ts";
import type { AddStatement } from "../commit-queue.ts";
import type { GrowthFormat } from "../growths.ts";
import type { StorageLogger } from "../storage.ts";
import { readsSums } from "../sum-reads.ts";
import { succeedsWithin } from "../../kernel/time/within-time.ts";
import { type ColumnTypes, foldSql } from "./commit-sql.ts";
import type { QueryClient, QueryPool } from "./silence-watch.ts";

/** Milliseconds that the sums may lag behind the commits while no query reads them. */
const foldEveryMs = 1_000;
/**
 * The number of intervals after which a gateway that committed nothing folds what ended gateways
 * left.
 */
const foldsOfOthersEvery = 10;

/** read_only_sql_transaction (PostgreSQL, appendix A). */
const readOnlyCode = "25006";

/** Milliseconds that the last fold may take; the next gateway does the rest. */
const lastFoldMs = 2_000;
const goodbyeMs = 1_000;

/**
 * Allows one fold at a time across all gateways. A lock on a table can be taken before a
 * repeatable-read transaction takes its snapshot.
 * https://www.postgresql.org/docs/current/sql-lock.html
 */
const lockSql = "lock table commit_formats in exclusive mode";

const formatRows = z.array(z.object({ format: z.string() }));
const sumsRows = z.tuple([z.object({ sums: z.string() })]);

/** Runs one statement on some connection. */
type Run = (sql: string, values?: readonly unknown[]) => Promise<readonly unknown[]>;

/** Options of a gateway's fold. */
export interface SumFoldOptions {
  /** Connections that nothing else waits for. */
  pool: QueryPool;
  format: GrowthFormat;
  /** Returns the present column types of the tables of some sums. */
  typesOf(adds: readonly AddStatement[]): Promise<ColumnTypes>;
  clock: Clock;
  logger: StorageLogger;
}

/**
 * Folds the growth of commits into the sums: in the background, and before a query reads them. A
 * fold deletes the rows of growth in the statement that adds them, so that any number of gateways
 * may fold.
 */
export class SumFold {
  readonly #options: SumFoldOptions;
  #sqlByFormat = new Map<string, string>();
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #logLimit: LogLimit;
  #stopped: Promise<void> | undefined;
  #rounds = 0;
  /** Whether this gateway committed since its last fold. */
  isBehind = false;

  constructor(options: SumFoldOptions) {
    this.#options = options;
    this.#logLimit = new LogLimit(options.clock);
  }

  /** Starts to fold each second, where there may be something to fold. */
  start(): void {
    const { logger } = this.#options;
    this.#timer = setInterval(() => {
      this.#rounds += 1;
      if (!this.isBehind && this.#rounds % foldsOfOthersEvery !== 0) return;
      this.run().catch((error: unknown) => {
        const cause = error instanceof Error ? error.message : String(error);
        if (this.#logLimit.pass(cause) !== undefined)
          logger.warn({ cause }, "sums could not be folded yet");
      });
    }, foldEveryMs);
    this.#timer.unref();
  }

  /** Folds what is left, as far as the database takes it, and closes the pool. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop());
  }

  /** Resolves when the sums contain all that was committed before; calls share a fold. */
  run(): Promise<void> {
    if (this.#running === undefined) return (this.#running = this.#fold());
    // The fold in progress may have taken its snapshot already.
    return (this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return (this.#running = this.#fold());
      }));
  }

  /** Folds in the transaction of a connection, as its first statement. */
  async within(run: Run): Promise<void> {
    const { format } = this.#options;
    await run(lockSql);
    const others = formatRows.parse(await run(await this.#sqlOf(format.id)));
    // Written by another release.
    for (const other of others) await run(await this.#sqlOf(other.format));
  }

  /** Returns the pool with a fold before every query of sums. */
  foldingPool(pool: QueryPool): PostgresPool {
    const clients = new WeakMap<QueryClient, FoldingClient>();
    return {
      options: {},
      connect: async () => {
        const client = await pool.connect();
        let folding = clients.get(client);
        if (folding === undefined) {
          folding = new FoldingClient(client, this);
          clients.set(client, folding);
        }
        return folding;
      },
      end: () => pool.end(),
    };
  }

  async #stop(): Promise<void> {
    clearInterval(this.#timer);
    await succeedsWithin(lastFoldMs, this.run());
    // A silently dead connection would never finish its goodbye.
    await succeedsWithin(goodbyeMs, this.#options.pool.end());
  }

  async #fold(): Promise<void> {
    this.isBehind = false;
    try {
      const client = await this.#options.pool.connect();
      const run: Run = async (text, values) => (await client.query(text, values as unknown[])).rows;
      let failure: Error | undefined;
      try {
        await run("begin");
        // Where the server loses a fold, it loses it whole, and the same rows are folded again.
        await run("set local synchronous_commit = off");
        await this.within(run);
        await run("commit");
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error));
        await run("rollback").catch(() => undefined);
        throw error;
      } finally {
        client.release(failure);
      }
    } catch (error) {
      this.isBehind = true;
      throw error;
    } finally {
      this.#running = undefined;
    }
  }

  async #sqlOf(id: string): Promise<string> {
    const { format, typesOf } = this.#options;
    let text = this.#sqlByFormat.get(id);
    if (text === undefined) {
      const adds = id === format.id ? format.adds : await this.#readFormat(id);
      text = foldSql({ id, adds }, { typeOf: await typesOf(adds), own: format.id });
      this.#sqlByFormat.set(id, text);
    }
    return text;
  }

  async #readFormat(id: string): Promise<readonly AddStatement[]> {
    const client = await this.#options.pool.connect();
    let failure: Error | undefined;
    try {
      const { rows } = await client.query("select sums from commit_formats where id = $1", [id]);
      const [{ sums }] = sumsRows.parse(rows);
      return JSON.parse(sums) as AddStatement[];
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      throw error;
    } finally {
      client.release(failure);
    }
  }
}

type Isolation = "none" | "each statement" | "one moment";

/**
 * A connection whose queries of sums are preceded by a fold. A repeatable-read transaction begins
 * with one, so that the sums contain exactly what it sees.
 */
class FoldingClient implements PostgresPoolClient {
  readonly #client: QueryClient;
  readonly #fold: SumFold;
  #isolation: Isolation = "none";

  constructor(client: QueryClient, fold: SumFold) {
    this.#client = client;
    this.#fold = fold;
  }

  query<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  query(): never;
  async query<R>(sql = "", parameters: readonly unknown[] = []): Promise<PostgresQueryResult<R>> {
    if (this.#isolation !== "one moment" && readsSums(sql)) await this.#foldFirst();
    const result = await this.#run<R>(sql, parameters);
    await this.#note(sql);
    return result;
  }

  release(error?: boolean | Error): void {
    this.#isolation = "none";
    this.#client.release(error);
  }

  async #run<R>(sql: string, parameters: readonly unknown[] = []): Promise<PostgresQueryResult<R>> {
    return (await this.#client.query(sql, [...parameters])) as unknown as PostgresQueryResult<R>;
  }

  async #foldFirst(): Promise<void> {
    if (this.#isolation !== "none") return this.#foldHere();
    try {
      await this.#fold.run();
    } catch (error) {
      // A read-only database is read as it is.
      if (!(error instanceof PostgresError) || error.code !== readOnlyCode) throw error;
    }
  }

  #foldHere(): Promise<void> {
    return this.#fold.within(async (sql, values) => (await this.#run(sql, values)).rows);
  }

  async #note(sql: string): Promise<void> {
    if (/^(begin|start transaction)/.test(sql)) {
      this.#isolation = sql.includes("repeatable read") ? "one moment" : "each statement";
      if (this.#isolation === "one moment") await this.#foldHere();
    } else if (sql === "commit" || sql === "rollback") this.#isolation = "none";
  }
}
