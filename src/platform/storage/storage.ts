import type { Kysely } from "kysely";
import type { Clock } from "../kernel/clock.ts";
import type { CommitQueue, CommitStatements } from "./commit-queue.ts";
import type { Migration } from "./migrate.ts";

/** The engines that the gateway runs on. */
export type StorageKind = "sqlite" | "postgres";

/**
 * `power` survives a power failure, `process` the end of the process; Postgres always gives
 * `power`.
 */
export type Durability = "power" | "process";

/** The one database of the gateway. */
export interface Storage<Schema> {
  readonly kind: StorageKind;
  readonly database: Kysely<Schema>;
  /** Group commits of settlements; they share the writer with the transactions of `database`. */
  readonly commits: CommitQueue;
  /** Whether reads and commits work now; answers within two seconds. */
  isHealthy(): Promise<boolean>;
  /**
   * Does work that no other gateway on the database does at the same time, such as what the first
   * start makes.
   */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Takes part in the epoch of the database, as long as the gateway lives; true where no other
   * gateway does.
   */
  join(): Promise<boolean>;
  /** Settles every accepted commit, then lets go of the database. */
  close(): Promise<void>;
}

/** Where trouble in the background is reported. */
export interface StorageLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The database to open, what it must hold and how durable its commits are. */
export interface StorageOptions {
  /** `sqlite:PATH`, or `postgres://` and `postgresql://` as libpq reads them. */
  url: string;
  durability: Durability;
  /** Ordered by name; those that were not run yet are run before the storage opens. */
  migrations: readonly Migration[];
  /**
   * Whether migrations are run that the database lacks (true); where not, such a database is
   * refused.
   */
  mayMigrate?: boolean;
  commitStatements: CommitStatements;
  /**
   * Whether gateways share the database, on Postgres alone; each must then keep its balances where
   * the others see them.
   */
  severalGateways?: boolean;
  /**
   * How long to wait for another gateway process to give the database up (SQLite 2 s, Postgres 10
   * s).
   */
  lockTimeoutMs?: number;
  /**
   * How long to wait for a server that cannot be reached yet, or is starting itself; absent means
   * not at all.
   */
  waitMs?: number;
  /** How many connections to Postgres queries may take, beside four that are always there (10). */
  poolSize?: number;
  /** How long a commit may wait for the database before it is refused (5 s). */
  commitTimeoutMs?: number;
  clock?: Clock;
  logger?: StorageLogger;
}

/** The options as the engines see them, with every default in its place. */
export type OpenedStorageOptions = Required<StorageOptions>;
