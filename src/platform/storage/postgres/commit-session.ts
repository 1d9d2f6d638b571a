import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Client, type QueryConfig } from "pg";
import type { Clock } from "../../kernel/clock.ts";
import { StorageInUseError, StorageUnavailableError } from "../storage-error.ts";
import type { StorageLogger } from "../storage.ts";
import { succeedsWithin } from "../../kernel/time/within-time.ts";
import {
  countMembers,
  endSession,
  lockHolder,
  lockMembership,
  type SessionIdentity,
  sessionIdentity,
  sharesSession,
  tryGatewayLock,
  trySharedGatewayLock,
} from "./gateway-lock.ts";
import { failureKindOf, isAway, reasonOf, SessionLostError } from "./postgres-error.ts";
import type { SilenceWatch } from "./silence-watch.ts";
import { valueTypes } from "./value-types.ts";

/** The parameters of the connection that commits. Times are in milliseconds. */
export interface CommitSessionOptions {
  url: string;
  lockTimeoutMs: number;
  /** Milliseconds to wait for a server that cannot be reached yet. */
  waitMs: number;
  /** Milliseconds that a statement may run before the server cancels it. */
  statementTimeoutMs: number;
  /** Whether other gateways may commit to the database, too. */
  severalGateways: boolean;
  /** Detects statements that are not answered. */
  watch: SilenceWatch;
  clock: Clock;
  logger: StorageLogger;
}

const lockPollMs = 100;
const reconnectLockTimeoutMs = 1_000;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;
const goodbyeMs = 1_000;
const firstPauseMs = 250;
const maxPauseMs = 5_000;

/**
 * Turns synchronous commits on: without fsync the server could lose what clients were shown.
 * Stronger settings are kept.
 */
const durableCommits = `select set_config('synchronous_commit', 'on', false)
  where current_setting('synchronous_commit') in ('off', 'local')`;

/**
 * The one session that commits. It holds the gateway lock, so a gateway that can commit is the only
 * one, or one of several that agreed to share. A lost session is therefore certain to be over, with
 * its last statement decided, before the next one opens. Reconnects by itself.
 */
export class CommitSession {
  readonly #options: CommitSessionOptions;
  #client: Client | undefined;
  #identity: SessionIdentity | undefined;
  #opening: Promise<void> | undefined;
  #isMember = false;
  #isKnownAsOwn = false;
  /** The lock key of this gateway alone, among several. */
  readonly #ownLockKey = randomInt(2 ** 47);
  readonly #ending = new AbortController();

  private constructor(options: CommitSessionOptions) {
    this.#options = options;
  }

  /** Connects and takes the lock. Throws `StorageInUseError` when another gateway holds it. */
  static async open(options: CommitSessionOptions): Promise<CommitSession> {
    const session = new CommitSession(options);
    try {
      await session.#connectPatiently();
      return session;
    } catch (error) {
      if (error instanceof StorageInUseError) throw error;
      const { host } = new URL(options.url);
      const message = `cannot open the Postgres database at ${host}: ${reasonOf(error)}`;
      throw new StorageUnavailableError(message, { cause: error });
    }
  }

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /**
   * Returns undefined when a statement can be sent. Otherwise resolves when the session is open
   * again or was closed.
   */
  whenOpen(): Promise<void> | undefined {
    return this.#opening;
  }

  /**
   * Runs one statement. Throws the server's error, or `SessionLostError` when the answer never
   * came.
   */
  async query(config: QueryConfig): Promise<readonly unknown[]> {
    if (this.#ending.signal.aborted) throw new StorageUnavailableError("the storage is closed");
    const client = this.#client;
    if (!client) throw new SessionLostError(false);
    const { watch } = this.#options;
    if (watch.isSilent) {
      this.#lose(client, new StorageUnavailableError("the database does not answer"));
      throw new SessionLostError(false);
    }
    try {
      const answer = () => client.query<Record<string, unknown>>(config);
      return (await watch.answerOf(answer)).rows;
    } catch (error) {
      if (failureKindOf(error) !== "session-lost") throw error;
      this.#lose(client, error);
      throw new SessionLostError(true, { cause: error });
    }
  }

  /** Joins the epoch of the database; returns true where no other gateway takes part. */
  async join(): Promise<boolean> {
    const client = this.#client;
    if (client === undefined)
      throw new StorageUnavailableError("the session for commits is not open");
    const isFirst = (await countMembers(client)) === 0;
    await lockMembership(client);
    this.#isMember = true;
    return isFirst;
  }

  async close(): Promise<void> {
    this.#ending.abort();
    const client = this.#client;
    this.#client = undefined;
    // A silently dead connection would never finish its goodbye.
    if (client) await succeedsWithin(goodbyeMs, client.end());
    await this.#opening;
  }

  #lose(client: Client, cause: unknown): void {
    if (client !== this.#client) return;
    this.#client = undefined;
    abandon(client);
    if (this.#ending.signal.aborted) return;
    this.#options.logger.warn(
      { err: cause },
      "the database session for commits was lost; reconnecting",
    );
    // A session that is lost again while this attempt ends already has an attempt of its own.
    const opening = this.#reconnect().finally(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    this.#opening = opening;
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#ending;
    for (
      let backoffMs = minBackoffMs;
      !signal.aborted;
      backoffMs = Math.min(backoffMs * 2, maxBackoffMs)
    ) {
      try {
        await this.#connect(reconnectLockTimeoutMs);
        this.#options.logger.info({}, "the database session for commits is open again");
        return;
      } catch (error) {
        this.#options.logger.warn({ err: error }, "the database cannot be reached for commits");
      }
      await delay(backoffMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Connects, and retries with growing pauses while the server cannot be reached or is not ready.
   */
  async #connectPatiently(): Promise<void> {
    const { clock, waitMs, lockTimeoutMs, logger } = this.#options;
    const deadlineMs = clock.monotonicMs() + waitMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, maxPauseMs)) {
      try {
        return await this.#connect(lockTimeoutMs);
      } catch (error) {
        const leftMs = deadlineMs - clock.monotonicMs();
        if (!isAway(error) || leftMs <= 0) throw error;
        logger.warn(
          { reason: reasonOf(error), seconds_left: Math.ceil(leftMs / 1_000) },
          "waiting for the database",
        );
        await delay(Math.min(pauseMs, leftMs));
      }
    }
  }

  async #connect(lockTimeoutMs: number): Promise<void> {
    const client = this.#newClient();
    try {
      await client.connect();
      // Set by statement, since poolers refuse it as a startup parameter.
      await client.query(
        `set statement_timeout = ${this.#options.statementTimeoutMs}; ${durableCommits}`,
      );
      if (!this.#isKnownAsOwn) await this.#requireOwnSession(client);
      if (this.#identity) await endSession(client, this.#identity);
      await this.#lock(client, lockTimeoutMs);
      if (this.#isMember) await lockMembership(client);
      this.#identity = await sessionIdentity(client);
    } catch (error) {
      abandon(client);
      throw error;
    }
    if (this.#ending.signal.aborted) return abandon(client);
    this.#options.watch.heard();
    this.#client = client;
  }

  #newClient(): Client {
    const { url, statementTimeoutMs } = this.#options;
    const client = new Client({
      connectionString: url,
      application_name: "switchyard commits",
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      // Only a silently dead connection reaches this limit: the server's own is shorter.
      query_timeout: statementTimeoutMs + 2_000,
      types: valueTypes,
    });
    client.on("error", (error) => this.#lose(client, error));
    client.on("end", () => this.#lose(client, new Error("the server closed the connection")));
    return client;
  }

  async #requireOwnSession(client: Client): Promise<void> {
    const { url } = this.#options;
    const other = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    other.on("error", () => undefined);
    await other.connect();
    try {
      if (await sharesSession(client, other))
        throw new StorageUnavailableError(
          "the pooler there lends one session of Postgres to several connections (pool_mode transaction or statement), and the " +
            "locks that keep gateways apart belong to sessions: set pool_mode to session for this database, or name Postgres itself",
        );
      this.#isKnownAsOwn = true;
    } finally {
      abandon(other);
    }
  }

  async #lock(client: Client, timeoutMs: number): Promise<void> {
    const { clock, severalGateways } = this.#options;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    const tryLock = severalGateways
      ? () => trySharedGatewayLock(client, this.#ownLockKey)
      : () => tryGatewayLock(client);
    while (!(await tryLock())) {
      if (clock.monotonicMs() >= deadlineMs) {
        throw new StorageInUseError(
          `another gateway uses this database (${await lockHolder(client)}): ` +
            "stop it first, or give this one its own database",
        );
      }
      await delay(lockPollMs);
    }
  }
}

/** Drops a connection without waiting for an answer; its later errors are ignored. */
function abandon(client: Client): void {
  client.removeAllListeners("error").on("error", () => undefined);
  client.end().catch(() => undefined);
}
