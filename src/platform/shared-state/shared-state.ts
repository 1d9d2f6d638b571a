import { rootCertificates } from "node:tls";
import type { Redis, RedisOptions } from "ioredis";
import { CommandWatch } from "./command-watch.ts";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";

/** A script that runs on the server as one step. */
export interface SharedScript {
  /** Unique; a command of that name is made of it. */
  name: string;
  lua: string;
}

/** Where the server is, and how it is known. */
export interface SharedServer {
  /** Where sentinels are asked for its address, its host is the name by which they know it. */
  url: string;
  /** URLs of sentinels, all of one scheme and login; absent or empty, none are asked. */
  sentinels?: readonly string[] | undefined;
  /** In PEM, trusted beside the platform's own list. */
  certificates?: readonly string[] | undefined;
}

/** Where trouble is reported. */
export interface SharedStateLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

type Script = (keyCount: number, ...values: (string | number)[]) => Promise<unknown>;

/** Names of everything that is kept there begin with it. */
export const sharedPrefix = "switchyard:";

/**
 * The name under which rate windows note for a moment that they admitted the request of a ticket,
 * for the hold that is asked for at the same time (decision 0126).
 */
export const admittedKey = (ticket: string): string => `${sharedPrefix}admitted:${ticket}`;

/** How long the server may take to be there when the gateway starts. */
const waitMsDefault = 10_000;

/**
 * What the gateways of one database share, on a Valkey or Redis server. While it is away every call
 * rejects with `SharedStateAwayError` at once; it is back by itself.
 */
export class SharedState {
  private readonly client: Redis;
  private readonly server: SharedServer;
  private readonly logger: SharedStateLogger;
  private readonly scripts = new Map<string, Script>();
  private readonly listeners = new Set<(runId: string) => void>();
  private currentRun: string | undefined;
  /** Why the server could not be asked the last time. */
  private lastFailure: unknown;
  /** Why the server took no writes the last time that it was connected to. */
  private refusal: string | undefined;
  /** Whether the first connection was made. */
  private isOpen = false;
  /** Why a sentinel named no primary since the last connection. */
  private sentinelFailure: Error | undefined;
  private readonly watch = new CommandWatch(commandTimeoutMs);
  /** The socket whose writes of this turn are held back until the turn ends. */
  private gathering: Redis["stream"] | undefined;

  private constructor(client: Redis, server: SharedServer, logger: SharedStateLogger) {
    this.client = client;
    this.server = server;
    this.logger = logger;
    // Says more than the error that follows once none of them knew a primary.
    client.on("sentinelError", (error: Error) => (this.sentinelFailure = error));
    client.on("error", (error: Error) => {
      this.lastFailure = this.sentinelFailure ?? error;
      this.logger.warn({ err: this.lastFailure }, "the server of shared state cannot be reached");
    });
    client.on("close", () => this.lose());
    client.on("ready", () => void this.learnRun());
  }

  /**
   * Connects; throws `SharedStateAwayError` when the server is not there in time, and
   * `SharedStateUnfitError` where it refuses the login, evicts keys or is part of a cluster. One
   * that takes no writes is warned of.
   */
  static async open({
    logger,
    waitMs = waitMsDefault,
    ...server
  }: SharedServer & {
    logger: SharedStateLogger;
    waitMs?: number | undefined;
  }): Promise<SharedState> {
    const shared = new SharedState(await newRedisClient(server, {}), server, logger);
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
      this.gatherWrites();
      return await this.watch.answerOf(send);
    } catch (error) {
      const failure = redisFailure(error);
      // A server that does not answer is asked nothing more until it answers a new connection.
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

  /** Sends all commands of a turn of the event loop with one write to the socket. */
  private gatherWrites(): void {
    const { stream } = this.client;
    if (this.gathering === stream) return;
    this.gathering = stream;
    stream.cork();
    setImmediate(() => {
      this.gathering = undefined;
      stream.uncork();
    });
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
    if (refusedLogin.test(message))
      return new SharedStateUnfitError(`the Valkey or Redis at ${this.place} refuses: ${message}`);
    const reason = message === "" ? "" : ` (${message})`;
    return new SharedStateAwayError(`no Valkey or Redis answers at ${this.place}${reason}`);
  }

  /**
   * Refuses a server of a cluster, whose parts share no scripts, and one that evicts: holds and
   * windows would be taken a second time.
   */
  private async requireFit(): Promise<void> {
    const host = this.place;
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

  /** Rejects where a sentinel that knows no better yet named what is a replica by now. */
  private async requirePrimary(): Promise<void> {
    if ((this.server.sentinels ?? []).length === 0) return;
    const replication = await this.watch.answerOf(() => this.client.info("replication"));
    if (!/^role:master/m.test(replication)) throw new Error("the server is no primary any more");
  }

  /**
   * Whether the server takes writes. One that refuses them (a replica, one without memory, one with
   * fewer replicas than `min-replicas-to-write`) is away, and connected to again after a moment:
   * another may be the primary by then. At the start it is only warned of, and then found
   * out by the first write.
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
      await this.requirePrimary();
      const run = /^run_id:(\w+)/m.exec(
        await this.watch.answerOf(() => this.client.info("server")),
      )?.[1];
      if (run === undefined) throw new Error("the server of shared state does not tell its run_id");
      this.sentinelFailure = undefined;
      if (this.isOpen && !(await this.takesWrites())) return;
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

/** How long the mark is kept that shows whether writes are taken. */
const writableMs = 60_000;
/** Pause before a server that takes no writes is connected to again. */
const refusedPauseMs = 250;

const connectTimeoutMs = 2_000;
const minBackoffMs = 50;
const maxBackoffMs = 1_000;

/** Refusals of the user or the password, or of a right that the user lacks. */
const refusedLogin = /(^|because )(NOAUTH|WRONGPASS|NOPERM)\b/;

/**
 * Refusals that pass by themselves: the server loads its data, is no primary any more, or has too
 * few replicas to be one.
 */
const passingRefusal = /^(LOADING|READONLY|NOREPLICAS|MASTERDOWN|TRYAGAIN|OOM)\b/;

/**
 * A client that never waits for a server that is away: commands fail at once, and it reconnects by
 * itself. Commands do not wait for one another's answers. (ioredis 6.0.0: with
 * `enableAutoPipelining` scripts that share a pipeline lose answers, and what throws then cannot be
 * caught by any caller.) The library is loaded with the first client.
 */
export async function newRedisClient(
  server: SharedServer,
  timeouts: { commandTimeout?: number } = { commandTimeout: commandTimeoutMs },
): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const isSecret = server.url.startsWith("rediss:");
  const retryStrategy = (attempt: number): number =>
    Math.min(minBackoffMs * 2 ** Math.min(attempt, 5), maxBackoffMs);
  return new Redis(server.url, {
    ...(isSecret && trusted(server)),
    ...sentinelOptions(server),
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    ...timeouts,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy,
    sentinelRetryStrategy: retryStrategy,
  });
}

/** TLS with the certificates that are trusted beside the platform's own. */
const trusted = ({ certificates = [] }: SharedServer): Pick<RedisOptions, "tls"> =>
  certificates.length === 0 ? {} : { tls: { ca: [...rootCertificates, ...certificates] } };

const sentinelPort = 26_379;

/** How sentinels are asked for the primary; nothing where there are none. */
function sentinelOptions(server: SharedServer) {
  const urls = (server.sentinels ?? []).map((url) => new URL(url));
  const [first] = urls;
  if (first === undefined) return {};
  const { tls = {} } = trusted(server);
  return {
    name: decodeURIComponent(new URL(server.url).hostname),
    sentinels: urls.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || sentinelPort),
    })),
    ...(first.username !== "" && { sentinelUsername: decodeURIComponent(first.username) }),
    ...(first.password !== "" && { sentinelPassword: decodeURIComponent(first.password) }),
    ...(first.protocol === "rediss:" && { sentinelTLS: tls }),
    ...(server.url.startsWith("rediss:") && { tls, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: commandTimeoutMs,
  };
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
