import type { Redis } from "ioredis";
import type { NodeAddress } from "./cluster-slots.ts";
import { CommandWatch } from "./command-watch.ts";
import {
  newRedisClient,
  passingRefusal,
  redisFailure,
  refusedLogin,
  requireNoEviction,
  runIdIn,
  type SharedServer,
} from "./redis-client.ts";
import {
  SharedStateAwayError,
  SharedStateClusterError,
  SharedStateUnfitError,
} from "./shared-state-error.ts";

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

/** A call of a script; each of its keys is kept under the prefix of the part that runs it. */
export interface ScriptCall {
  keys: readonly string[];
  values: readonly (string | number)[];
}

/**
 * What one script can reach of what gateways share: all of it on a single server, a part of it in a
 * cluster. While it is away every call rejects with `SharedStateAwayError` at once; it is back by
 * itself.
 */
export interface SharedPart {
  /** What every name in it begins with. */
  readonly prefix: string;
  /**
   * Which run of its server this is; undefined while it is away. Another run may have lost what was
   * written to the one before.
   */
  readonly runId: string | undefined;
  /**
   * Calls the listener at every connection to a run of its server, at once for the present one;
   * returns a function that ends this.
   */
  onRun(listener: (runId: string) => void): () => void;
  /** Runs a script. Rejects with `SharedStateAwayError` where it is unknown whether it ran. */
  run(script: SharedScript, call: ScriptCall): Promise<unknown>;
  /** The text that is kept under a key. */
  get(key: string): Promise<string | null>;
  /** Keeps a text for a time. */
  set(key: string, text: string, lifetimeMs: number): Promise<void>;
  /** Keeps a text unless something is kept there; tells whether it was. */
  setIfAbsent(key: string, text: string): Promise<boolean>;
}

/** What the gateways of one database share. */
export interface SharedParts {
  readonly parts: readonly SharedPart[];
  /** The part that has everything of a workspace, or of anything else that has a name. */
  partOf(name: string): SharedPart;
  /**
   * Where messages of channels are heard as well, another server with each call; absent where there
   * is one alone.
   */
  nextRelay?(): NodeAddress;
  /** Sends a message to all listeners of a channel. */
  publish(channel: string, message: string): Promise<void>;
  /** Lets go of the servers. */
  close(): void;
}

/**
 * The name under which rate windows note for a moment that they admitted the request of a ticket,
 * for the hold that is asked for at the same time (decision 0126).
 */
export const admittedKey = ({ prefix }: Pick<SharedPart, "prefix">, ticket: string): string =>
  `${prefix}admitted:${ticket}`;

/** How long the server may take to be there when the gateway starts. */
export const waitMsDefault = 10_000;

/** What the gateways of one database share, on a single Valkey or Redis server: one part. */
export class SharedState implements SharedPart, SharedParts {
  readonly prefix = sharedPrefix;
  readonly parts: readonly SharedPart[] = [this];
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
  private readonly watch: CommandWatch;

  private constructor(client: Redis, server: SharedServer, logger: SharedStateLogger) {
    this.client = client;
    this.watch = new CommandWatch(client);
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
   * `SharedStateUnfitError` where it refuses the login or evicts keys: a `SharedStateClusterError`
   * where it is part of a cluster. One that takes no writes is warned of.
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

  run({ name, lua }: SharedScript, { keys, values }: ScriptCall): Promise<unknown> {
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

  get(key: string): Promise<string | null> {
    return this.ask(() => this.client.get(sharedPrefix + key));
  }

  async set(key: string, text: string, lifetimeMs: number): Promise<void> {
    await this.ask(() =>
      this.client.set(sharedPrefix + key, text, "PX", Math.max(1, Math.round(lifetimeMs))),
    );
  }

  async setIfAbsent(key: string, text: string): Promise<boolean> {
    return (await this.ask(() => this.client.set(sharedPrefix + key, text, "NX"))) === "OK";
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

  /** Refuses a server of a cluster, and one that evicts. */
  private async requireFit(): Promise<void> {
    if (/^cluster_enabled:1/m.test(await this.ask(() => this.client.info("cluster"))))
      throw new SharedStateClusterError(
        `the Valkey or Redis at ${this.place} is part of a cluster`,
      );
    requireNoEviction(await this.ask(() => this.client.info("memory")), this.place);
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
      const run = runIdIn(await this.watch.answerOf(() => this.client.info("server")));
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

/** How long the mark is kept that shows whether writes are taken. */
const writableMs = 60_000;
/** Pause before a server that takes no writes is connected to again. */
const refusedPauseMs = 250;
