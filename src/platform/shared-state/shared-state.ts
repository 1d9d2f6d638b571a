import type { Redis } from "ioredis";
import type { NodeAddress } from "./cluster-slots.ts";
import { CommandWatch } from "./command-watch.ts";
import { enterScript, RunGuard, runValues } from "./run-guard.ts";
import {
  newRedisClient,
  passingRefusal,
  isPassingRefusal,
  redisFailure,
  refusedLogin,
  replicationIdIn,
  requireNoEviction,
  requireScripts,
  runIdIn,
  scriptsRefused,
  type SharedServer,
  type SharedScript,
} from "./redis-client.ts";
import {
  SharedStateAwayError,
  SharedStateClusterError,
  SharedStateUnfitError,
} from "./shared-state-error.ts";

/** The logger that receives warnings about the server. */
export interface SharedStateLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

type Script = (keyCount: number, ...values: (string | number)[]) => Promise<unknown>;

/** The prefix of all keys that gateways store on the server. */
export const sharedPrefix = "switchyard:";

/** The arguments of a script call. The part that runs the script adds its prefix to each key. */
export interface ScriptCall {
  keys: readonly string[];
  values: readonly (string | number)[];
}

/**
 * The share of the state that one script can reach: all of it on a single server, one part of it in
 * a cluster. While it is unavailable, every call rejects with `SharedStateAwayError` at once. It
 * becomes available again without a call.
 */
export interface SharedPart {
  /** The prefix of all keys in the part. */
  readonly prefix: string;
  /**
   * The current run of the part's server; undefined while the part is unavailable. A new run may
   * have lost what was written during the run before.
   */
  readonly runId: string | undefined;
  /**
   * Calls the listener with the run after each connection to the server, and at once where the part
   * is available. Returns a function that removes the listener.
   */
  onRun(listener: (runId: string) => void): () => void;
  /**
   * Runs a script. Rejects with `SharedStateAwayError` where it is unknown whether the script ran.
   */
  run(script: SharedScript, call: ScriptCall): Promise<unknown>;
  /** Returns the text under a key; null where there is none. */
  get(key: string): Promise<string | null>;
  /** Stores a text under a key for a number of milliseconds. */
  set(key: string, text: string, lifetimeMs: number): Promise<void>;
  /**
   * Stores a text for a number of milliseconds under a key that has none yet; returns whether it
   * did.
   */
  setIfAbsent(key: string, text: string, lifetimeMs: number): Promise<boolean>;
}

/** The state that the gateways on one database share. */
export interface SharedParts {
  readonly parts: readonly SharedPart[];
  /** Returns the part that stores everything of a workspace, or of anything else with this name. */
  partOf(name: string): SharedPart;
  /**
   * Returns the address of another server that forwards channel messages, a different one with each
   * call; absent where there is only one server.
   */
  nextRelay?(): NodeAddress;
  /** Sends a message to all listeners of a channel. */
  publish(channel: string, message: string): Promise<void>;
  /** Closes the connections to all servers. */
  close(): void;
}

/** The key of the run of the server, which is lost with everything else that the server has. */
const runKey = `${sharedPrefix}run`;
const guard = new RunGuard(1);

/**
 * Returns the key under which the rate windows briefly record that they admitted the request of a
 * ticket. The hold of the same request, which is sent at the same time, reads it (decision 0126).
 */
export const admittedKey = ({ prefix }: Pick<SharedPart, "prefix">, ticket: string): string =>
  `${prefix}admitted:${ticket}`;

/** How long the gateway waits for the server when it starts, in milliseconds. */
export const waitMsDefault = 10_000;

/**
 * The shared state of all gateways on one database, on a single Valkey or Redis server. It has one
 * part.
 */
export class SharedState implements SharedPart, SharedParts {
  readonly prefix = sharedPrefix;
  readonly parts: readonly SharedPart[] = [this];
  private readonly client: Redis;
  private readonly server: SharedServer;
  private readonly logger: SharedStateLogger;
  private readonly scripts = new Map<string, Script>();
  private readonly listeners = new Set<(runId: string) => void>();
  private currentRun: string | undefined;
  /** The most recent reason why the server could not be used. */
  private lastFailure: unknown;
  /**
   * The server's reason for refusing writes at the last connection; undefined where it took them.
   */
  private refusal: string | undefined;
  /** Whether the first connection was made. */
  private isOpen = false;
  /** Why no sentinel named a primary since the last connection. */
  private sentinelFailure: Error | undefined;
  private readonly watch: CommandWatch;

  private constructor(
    client: Redis,
    server: SharedServer,
    { logger, answerMs }: { logger: SharedStateLogger; answerMs: number | undefined },
  ) {
    this.client = client;
    this.watch = new CommandWatch(client, answerMs);
    this.server = server;
    this.logger = logger;
    // Explains the failure better than the error that follows once no sentinel has named a primary.
    client.on("sentinelError", (error: Error) => (this.sentinelFailure = error));
    client.on("error", (error: Error) => {
      this.lastFailure = this.sentinelFailure ?? error;
      this.logger.warn({ err: this.lastFailure }, "the server of shared state cannot be reached");
    });
    client.on("close", () => this.lose());
    client.on("ready", () => void this.learnRun());
  }

  /**
   * Connects to the server. Throws `SharedStateAwayError` where it does not answer in time, and
   * `SharedStateUnfitError` where it refuses the login, evicts keys or runs no scripts;
   * `SharedStateClusterError` where it belongs to a cluster. Only warns where the server takes no writes.
   */
  static async open({
    logger,
    waitMs = waitMsDefault,
    answerMs,
    ...server
  }: SharedServer & {
    logger: SharedStateLogger;
    waitMs?: number | undefined;
    /** How long an answer may take before the server counts as away; one second where absent. */
    answerMs?: number;
  }): Promise<SharedState> {
    const parts = { logger, answerMs };
    const shared = new SharedState(await newRedisClient(server, {}), server, parts);
    const opened = Promise.withResolvers<void>();
    const forget = shared.onRun(() => opened.resolve());
    const timer = setTimeout(() => opened.reject(shared.awayError()), Math.max(waitMs, 1_000));
    shared.client.connect().catch(() => undefined);
    try {
      await opened.promise;
      await shared.requireFit();
      await shared.takesWrites().catch((error: unknown) => {
        shared.lastFailure = error;
        throw shared.awayError();
      });
      shared.isOpen = true;
      return shared;
    } catch (error) {
      shared.close();
      throw error;
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  partOf(_name: string): SharedPart {
    return this;
  }

  get runId(): string | undefined {
    return this.currentRun;
  }

  onRun(listener: (runId: string) => void): () => void {
    this.listeners.add(listener);
    if (this.currentRun !== undefined) listener(this.currentRun);
    return () => void this.listeners.delete(listener);
  }

  run(script: SharedScript, { keys, values }: ScriptCall): Promise<unknown> {
    const names = keys.map((key) => sharedPrefix + key);
    const run = this.currentRun ?? "";
    return this.command(guard.of(script), [...names, runKey], [...values, run]);
  }

  private command(
    { name, lua }: SharedScript,
    keys: readonly string[],
    values: readonly (string | number)[],
  ): Promise<unknown> {
    let script = this.scripts.get(name);
    if (script === undefined) {
      this.client.defineCommand(name, { lua });
      script = (this.client as unknown as Record<string, Script>)[name]!.bind(this.client);
      this.scripts.set(name, script);
    }
    const command = script;
    return this.ask(() => command(keys.length, ...keys, ...values));
  }

  get(key: string): Promise<string | null> {
    return this.ask(() => this.client.get(sharedPrefix + key));
  }

  async set(key: string, text: string, lifetimeMs: number): Promise<void> {
    await this.ask(() =>
      this.client.set(sharedPrefix + key, text, "PX", Math.max(1, Math.round(lifetimeMs))),
    );
  }

  async setIfAbsent(key: string, text: string, lifetimeMs: number): Promise<boolean> {
    const name = sharedPrefix + key;
    return (await this.ask(() => this.client.set(name, text, "PX", lifetimeMs, "NX"))) === "OK";
  }

  async publish(channel: string, message: string): Promise<void> {
    await this.ask(() => this.client.publish(sharedPrefix + channel, message));
  }

  close(): void {
    this.currentRun = undefined;
    this.listeners.clear();
    this.client.disconnect();
  }

  private async ask<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    const run = this.currentRun;
    if (run === undefined) throw new SharedStateAwayError("the server of shared state is away");
    try {
      return await this.watch.answerOf(send);
    } catch (error) {
      const failure = redisFailure(error);
      // Sends nothing more to a server that does not answer, until it answers a new connection.
      if (
        failure instanceof SharedStateAwayError &&
        this.currentRun === run &&
        this.client.status === "ready"
      ) {
        this.lose(failure);
        this.client.disconnect(true);
      }
      throw failure;
    }
  }

  private lose({ cause }: { cause?: unknown } = {}): void {
    if (this.currentRun === undefined) return;
    this.currentRun = undefined;
    this.refusal = undefined;
    const reason = cause instanceof Error ? cause.message : undefined;
    this.logger.warn({ reason }, "the server of shared state is away");
  }

  private get place(): string {
    const { url, sentinels = [] } = this.server;
    const { host } = new URL(url);
    if (sentinels.length === 0) return host;
    return `${host} as ${sentinels.map((each) => new URL(each).host).join(", ")} name it`;
  }

  private awayError(): Error {
    const { message = "" } = this.lastFailure instanceof Error ? this.lastFailure : {};
    const command = /'(evalsha|eval)'/i.exec(message)?.[1]?.toUpperCase();
    if (refusedLogin.test(message) && command !== undefined)
      return scriptsRefused({ place: this.place, command, message });
    if (refusedLogin.test(message))
      return new SharedStateUnfitError(`the Valkey or Redis at ${this.place} refuses: ${message}`);
    const reason = message === "" ? "" : ` (${message})`;
    return new SharedStateAwayError(`no Valkey or Redis answers at ${this.place}${reason}`);
  }

  /** Throws where the server belongs to a cluster, lacks the database, evicts keys, or runs no scripts. */
  private async requireFit(): Promise<void> {
    if (/^cluster_enabled:1/m.test(await this.ask(() => this.client.info("cluster"))))
      throw new SharedStateClusterError(
        `the Valkey or Redis at ${this.place} is part of a cluster`,
      );
    const { db = 0 } = this.client.options;
    // The client goes on with the first database where the server refuses another.
    if (db !== 0)
      await this.client.select(db).catch(({ message }: Error) => {
        throw new SharedStateUnfitError(
          `the Valkey or Redis at ${this.place} does not give database ${db} (${message})`,
        );
      });
    requireNoEviction(await this.ask(() => this.client.info("memory")), this.place);
    await this.watch.answerOf(() => requireScripts(this.client, this.place));
  }

  /** Whether sentinels may replace the server. */
  private get isReplaceable(): boolean {
    return (this.server.sentinels ?? []).length > 0;
  }

  /**
   * Returns the `master_replid` of the server. Rejects where sentinels named a replica, because they
   * have not noticed a failover yet.
   */
  private async replicationId(): Promise<string> {
    const replication = await this.watch.answerOf(() => this.client.info("replication"));
    if (this.isReplaceable && !/^role:master/m.test(replication))
      throw new Error("the server is no primary any more");
    return replicationIdIn(replication);
  }

  /**
   * Returns the run of the server, which is stored with all other keys: a server that was emptied
   * has another one. A primary that comes back, even before it has followed the one in between,
   * starts a new run: its keys are older than the database. At the start, a server that takes no
   * writes has a run that no script expects.
   */
  private async enter(server: { runId: string; replicationId: string }): Promise<string> {
    const values = runValues(server);
    try {
      const entering = () => this.client.eval(enterScript.lua, 1, runKey, ...values);
      return String(await this.watch.answerOf(entering));
    } catch (error) {
      if (this.isOpen || !isPassingRefusal(error as Error)) throw error;
      return values[0];
    }
  }

  /**
   * Returns whether the server takes writes. A server that refuses them (a replica, one without
   * memory, one with fewer replicas than `min-replicas-to-write`) counts as unavailable, and the
   * gateway soon reconnects, since another server may be the primary by then. At the start, the
   * gateway only warns; the first write then fails.
   */
  private async takesWrites(): Promise<boolean> {
    try {
      await this.watch.answerOf(() =>
        this.client.set(`${sharedPrefix}writable`, "", "PX", writableMs),
      );
      this.refusal = undefined;
      return true;
    } catch (error) {
      const { message } = error as Error;
      if (!passingRefusal.test(message)) throw error;
      if (this.refusal !== message)
        this.logger.warn({ reason: message }, "the server of shared state takes no writes");
      this.refusal = message;
    }
    if (this.isOpen) this.connectAgainSoon();
    return false;
  }

  private connectAgainSoon(): void {
    setTimeout(() => {
      if (this.currentRun === undefined && this.client.status === "ready")
        this.client.disconnect(true);
    }, refusedPauseMs).unref();
  }

  private async learnRun(): Promise<void> {
    try {
      const replicationId = await this.replicationId();
      const runId = runIdIn(await this.watch.answerOf(() => this.client.info("server")));
      this.sentinelFailure = undefined;
      if (this.isOpen && !(await this.takesWrites())) return;
      this.currentRun = await this.enter({ runId, replicationId });
    } catch (error) {
      this.lastFailure = error;
      this.logger.warn({ err: error }, "the server of shared state does not answer yet");
      this.client.disconnect(true);
      return;
    }
    for (const listener of this.listeners) listener(this.currentRun);
  }
}

/** How long the server keeps the key that tests whether it takes writes, in milliseconds. */
const writableMs = 60_000;
/** The pause before the gateway reconnects to a server that takes no writes, in milliseconds. */
const refusedPauseMs = 250;
