import { rootCertificates } from "node:tls";
import type { Redis } from "ioredis";
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
 * What the gateways of one database share, on a Valkey or Redis server. While it is away every call
 * rejects with `SharedStateAwayError` at once; it is back by itself.
 */
export class SharedState {
  private readonly client: Redis;
  private readonly logger: SharedStateLogger;
  private readonly scripts = new Map<string, Script>();
  private readonly listeners = new Set<(runId: string) => void>();
  private currentRun: string | undefined;
  /** Why the server could not be asked the last time. */
  private lastFailure: unknown;

  private constructor(client: Redis, logger: SharedStateLogger) {
    this.client = client;
    this.logger = logger;
    client.on("error", (error: Error) => {
      this.lastFailure = error;
      this.logger.warn({ err: error }, "the server of shared state cannot be reached");
    });
    client.on("close", () => this.lose());
    client.on("ready", () => void this.learnRun());
  }

  /**
   * Connects; throws `SharedStateAwayError` when the server is not there in time, and
   * `SharedStateUnfitError` where it refuses the login, evicts keys or is part of a cluster.
   */
  static async open({
    url,
    certificates,
    logger,
    waitMs = waitMsDefault,
  }: {
    url: string;
    /** In PEM, trusted beside the platform's own list. */
    certificates?: readonly string[] | undefined;
    logger: SharedStateLogger;
    waitMs?: number | undefined;
  }): Promise<SharedState> {
    const { host } = new URL(url);
    const shared = new SharedState(await newRedisClient(url, certificates, {}), logger);
    const opened = Promise.withResolvers<void>();
    const forget = shared.onRun(() => opened.resolve());
    const timer = setTimeout(() => opened.reject(shared.awayAt(host)), Math.max(waitMs, 1_000));
    shared.client.connect().catch(() => undefined);
    try {
      await opened.promise;
      await shared.requireFit(host);
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
   * Which run of the server this is connected to; undefined while it is away. Another run may have
   * lost what was written to the one before.
   */
  get runId(): string | undefined {
    return this.currentRun;
  }

  /**
   * Calls the listener at every connection to a run of the server, at once for the present one;
   * returns a function that ends this.
   */
  onRun(listener: (runId: string) => void): () => void {
    this.listeners.add(listener);
    if (this.currentRun !== undefined) listener(this.currentRun);
    return () => void this.listeners.delete(listener);
  }

  /** Runs a script. Rejects with `SharedStateAwayError` where it is unknown whether it ran. */
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

  /** Sends a message to all listeners of a channel. */
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
      return await inTime(send());
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

  private awayAt(host: string): Error {
    const { message = "" } = this.lastFailure instanceof Error ? this.lastFailure : {};
    if (refusedLogin.test(message))
      return new SharedStateUnfitError(`the Valkey or Redis at ${host} refuses: ${message}`);
    const reason = message === "" ? "" : ` (${message})`;
    return new SharedStateAwayError(`no Valkey or Redis answers at ${host}${reason}`);
  }

  /**
   * Refuses a server of a cluster, whose parts share no scripts, and one that evicts: holds and
   * windows would be taken a second time.
   */
  private async requireFit(host: string): Promise<void> {
    if (/^cluster_enabled:1/m.test(await this.ask(() => this.client.info("cluster"))))
      throw new SharedStateUnfitError(
        `the Valkey or Redis at ${host} is part of a cluster, and what gateways share is kept by scripts over keys of several of ` +
          "its parts: name a single primary (cluster-enabled no), with replicas if you like",
      );
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
      const run = /^run_id:(\w+)/m.exec(await inTime(this.client.info("server")))?.[1];
      if (run === undefined) throw new Error("the server of shared state does not tell its run_id");
      this.currentRun = run;
    } catch (error) {
      this.lastFailure = error;
      this.logger.warn({ err: error }, "the server of shared state does not answer yet");
      this.client.disconnect(true);
      return;
    }
    for (const listener of this.listeners) listener(this.currentRun);
  }
}

/** How long a command may take before the server counts as away. */
const commandTimeoutMs = 1_000;

/**
 * Rejects where no answer comes in time. Answers that came while this process itself stood still
 * are read before that is decided: timers run first after a pause, and a server that had answered
 * would count as away.
 */
function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const give = (): void =>
      reject(new Error(`no answer came within ${commandTimeoutMs} milliseconds`));
    const timer = setTimeout(() => setImmediate(() => setImmediate(give)), commandTimeoutMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

const connectTimeoutMs = 2_000;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;

/** Refusals of the user or the password, or of a right that the user lacks. */
const refusedLogin = /^(NOAUTH|WRONGPASS|NOPERM)\b/;

/** Refusals that pass by themselves: the server loads its data, or is no primary any more. */
const passingRefusal = /^(LOADING|READONLY|MASTERDOWN|TRYAGAIN|OOM)\b/;

/**
 * A client that never waits for a server that is away: commands fail at once, and it reconnects by
 * itself. Commands do not wait for one another's answers. (ioredis 6.0.0: with
 * `enableAutoPipelining` scripts that share a pipeline lose answers, and what throws then cannot be
 * caught by any caller.) The library is loaded with the first client.
 */
export async function newRedisClient(
  url: string,
  certificates: readonly string[] = [],
  timeouts: { commandTimeout?: number } = { commandTimeout: commandTimeoutMs },
): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const isSecret = url.startsWith("rediss:") && certificates.length > 0;
  return new Redis(url, {
    ...(isSecret && { tls: { ca: [...rootCertificates, ...certificates] } }),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    ...timeouts,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(minBackoffMs * 2 ** Math.min(attempt, 5), maxBackoffMs),
  });
}

/**
 * What a failed command means: a refusal is a mistake of ours, anything else is a server that is
 * away.
 */
function redisFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error.name === "ReplyError" && !passingRefusal.test(error.message)) return error;
  return new SharedStateAwayError("the server of shared state is away", { cause: error });
}
