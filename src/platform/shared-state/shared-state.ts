import type { Redis } from "ioredis";
import { newRedisClient, redisFailure } from "./redis-client.ts";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";

/** A script that runs on the server as one step. */
export interface SharedScript {
  /** Unique; a command of that name is made of it. */
  name: string;
  lua: string;
}

/** Where trouble is reported. */
export interface SharedStateLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

type Script = (keyCount: number, ...values: (string | number)[]) => Promise<unknown>;

/** Names of everything that is kept there begin with it. */
export const sharedPrefix = "switchyard:";

/** How long the server may take to be there when the gateway starts. */
const waitMsDefault = 10_000;

/**
 * What the gateways of one database share, on a Valkey or Redis server. While it is away every call rejects
 * with `SharedStateAwayError` at once; it is back by itself.
 */
export class SharedState {
  private readonly client: Redis;
  private readonly logger: SharedStateLogger;
  private readonly scripts = new Map<string, Script>();
  private readonly listeners = new Set<(runId: string) => void>();
  private currentRun: string | undefined;

  private constructor(client: Redis, logger: SharedStateLogger) {
    this.client = client;
    this.logger = logger;
    client.on("error", (error: Error) =>
      this.logger.warn({ err: error }, "the server of shared state cannot be reached"),
    );
    client.on("close", () => this.lose());
    client.on("ready", () => void this.learnRun());
  }

  /**
   * Connects; throws `SharedStateAwayError` when the server is not there in time, and `SharedStateUnfitError` where it may forget what
   * it was told.
   */
  static async open({
    url,
    logger,
    waitMs = waitMsDefault,
  }: {
    url: string;
    logger: SharedStateLogger;
    waitMs?: number | undefined;
  }): Promise<SharedState> {
    const shared = new SharedState(await newRedisClient(url), logger);
    const opened = Promise.withResolvers<void>();
    const forget = shared.onRun(() => opened.resolve());
    const away = new SharedStateAwayError(`no Valkey or Redis answers at ${new URL(url).host}`);
    const timer = setTimeout(() => opened.reject(away), Math.max(waitMs, 1_000));
    shared.client.connect().catch(() => undefined);
    try {
      await opened.promise;
      await shared.requireNoEviction(new URL(url).host);
      return shared;
    } catch (error) {
      shared.close();
      throw error;
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  /**
   * Which run of the server this is connected to; undefined while it is away. Another run may have lost what
   * the one before was told.
   */
  get runId(): string | undefined {
    return this.currentRun;
  }

  /** Tells of every connection to a run of the server, the present one at once; gives what ends it. */
  onRun(listener: (runId: string) => void): () => void {
    this.listeners.add(listener);
    if (this.currentRun !== undefined) listener(this.currentRun);
    return () => void this.listeners.delete(listener);
  }

  /** Runs a script. Rejects with `SharedStateAwayError` where nobody knows whether it ran. */
  run(
    { name, lua }: SharedScript,
    { keys, values }: { keys: readonly string[]; values: readonly (string | number)[] },
  ): Promise<unknown> {
    let script = this.scripts.get(name);
    if (script === undefined) {
      this.client.defineCommand(name, { lua });
      script = (this.client as unknown as Record<string, Script>)[name]!.bind(this.client);
      this.scripts.set(name, script);
    }
    const command = script;
    return this.ask(() =>
      command(keys.length, ...keys.map((key) => sharedPrefix + key), ...values),
    );
  }

  /** The text that is kept under a key. */
  get(key: string): Promise<string | null> {
    return this.ask(() => this.client.get(sharedPrefix + key));
  }

  /** Keeps a text for a time. */
  async set(key: string, text: string, lifetimeMs: number): Promise<void> {
    await this.ask(() =>
      this.client.set(sharedPrefix + key, text, "PX", Math.max(1, Math.round(lifetimeMs))),
    );
  }

  /** Keeps a text unless something is kept there; tells whether it was. */
  async setIfAbsent(key: string, text: string): Promise<boolean> {
    return (await this.ask(() => this.client.set(sharedPrefix + key, text, "NX"))) === "OK";
  }

  /** Tells everybody who listens to a channel. */
  async publish(channel: string, message: string): Promise<void> {
    await this.ask(() => this.client.publish(sharedPrefix + channel, message));
  }

  /** Lets go of the server. */
  close(): void {
    this.currentRun = undefined;
    this.listeners.clear();
    this.client.disconnect();
  }

  private async ask<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    const run = this.currentRun;
    if (run === undefined) throw new SharedStateAwayError("the server of shared state is away");
    try {
      return await send();
    } catch (error) {
      const failure = redisFailure(error);
      // A server that does not answer is asked nothing more until it answers a new connection.
      if (
        failure instanceof SharedStateAwayError &&
        this.currentRun === run &&
        this.client.status === "ready"
      ) {
        this.lose();
        this.client.disconnect(true);
      }
      throw failure;
    }
  }

  private lose(): void {
    if (this.currentRun === undefined) return;
    this.currentRun = undefined;
    this.logger.warn({}, "the server of shared state is away");
  }

  /** Holds and windows that are evicted would be taken a second time. */
  private async requireNoEviction(host: string): Promise<void> {
    const policy = /^maxmemory_policy:(\S+)/m.exec(
      await this.ask(() => this.client.info("memory")),
    )?.[1];
    if (policy === undefined || policy === "noeviction") return;
    throw new SharedStateUnfitError(
      `the Valkey or Redis at ${host} evicts keys (maxmemory-policy ${policy}), and holds and rate windows are among them: ` +
        "set maxmemory-policy to noeviction",
    );
  }

  private async learnRun(): Promise<void> {
    try {
      const run = /^run_id:(\w+)/m.exec(await this.client.info("server"))?.[1];
      if (run === undefined) throw new Error("the server of shared state does not tell its run_id");
      this.currentRun = run;
    } catch (error) {
      this.logger.warn({ err: error }, "the server of shared state does not answer yet");
      this.client.disconnect(true);
      return;
    }
    for (const listener of this.listeners) listener(this.currentRun);
  }
}
