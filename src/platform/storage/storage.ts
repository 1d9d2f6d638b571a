import type { Kysely } from "kysely";
import type { Clock } from "../kernel/clock.ts";
import type { CommitQueue, CommitStatements } from "./commit-queue.ts";

/** The engines that the gateway runs on. */
export type StorageKind = "sqlite" | "postgres";

/**
 * `power` survives a power failure, `process` the end of the process. Postgres always provides
 * `power`.
 */
export type Durability = "power" | "process";

/** The one database of the gateway. */
export interface Storage<Schema> {
  readonly kind: StorageKind;
  readonly database: Kysely<Schema>;
  /** Group commits of settlements. They share the writer with the transactions of `database`. */
  readonly commits: CommitQueue;
  /** Returns whether reads and commits work now; answers within two seconds. */
  isHealthy(): Promise<boolean>;
  /**
   * Runs work that no other gateway on the database does at the same time, such as what the first
   * start creates.
   */
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Joins the epoch of the database, for as long as the gateway lives; returns true where no other
   * gateway takes part.
   */
  join(): Promise<boolean>;
  /** Settles every accepted commit, then closes the database. */
  close(): Promise<void>;
}

/** Receives reports of problems in the background. */
export interface StorageLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The database to open, its schema and the durability of its commits. */
export interface StorageOptions {
  /** `sqlite:PATH`, or `postgres://` and `postgresql://` as libpq parses them. */
  url: string;
  durability: Durability;
  /** Ordered by name. Missing ones are run before the storage opens. */
  migrations: readonly Migration[];
  /**
   * Whether missing migrations are run (default true); where false, a database that lacks one is
   * refused.
   */
  mayMigrate?: boolean;
  commitStatements: CommitStatements;
  /**
   * Whether gateways share the database, which only Postgres allows. Each must then keep its
   * balances where the others see them.
   */
  severalGateways?: boolean;
  /**
   * Milliseconds to wait for another gateway process to release the database (SQLite 2 s, Postgres
   * 10 s).
   */
  lockTimeoutMs?: number;
  /**
   * Milliseconds to wait for a server that cannot be reached yet, or is starting; absent means
   * none.
   */
  waitMs?: number;
  /** The most connections to Postgres for queries, beside four permanent ones (10). */
  poolSize?: number;
  /** Milliseconds that a commit may wait for the database before it is refused (5 s). */
  commitTimeoutMs?: number;
  clock?: Clock;
  logger?: StorageLogger;
}

/** The options as the engines see them, with every default filled in. */
export type OpenedStorageOptions = Required<StorageOptions>;

/** A step of the schema, for both engines. `createTable` covers their differences. */
export interface Migration {
  /**
   * A name that sorts after every migration released before it, such as `2026-11-21-ledger`. A
   * migration that only adds is named like `2026-12-01-notes additive to 2026-11-21-ledger`, after
   * the newest migration of the previous release, which can then still be started on the database.
   */
  name: string;
  up(database: Kysely<unknown>, kind: StorageKind): Promise<void>;
}
