import type { Redis } from "ioredis";
import { type NodeAddress, readSlots, type SlotMap } from "./cluster-slots.ts";
import { CommandWatch } from "./command-watch.ts";
import {
  isPassingRefusal,
  newRedisClient,
  redisFailure,
  replicationIdIn,
  requireNoEviction,
  requireScripts,
  runIdIn,
  type SharedServer,
  type SharedScript,
} from "./redis-client.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import type { ScriptCall } from "./shared-state.ts";

/** The options of a connection to one server of a cluster. */
export interface ClusterNodeOptions {
  /** The cluster, whose URL gives the login and says whether the connection uses TLS. */
  server: SharedServer;
  address: NodeAddress;
  /**
   * Called after each connection, once the server's run is known or the reason it cannot be used.
   */
  onReady(): void;
  /** Called when the server stops answering. */
  onLost(failure: unknown): void;
}

type Command = (keyCount: number, ...values: (string | number)[]) => Promise<unknown>;

/** An error of a server that answers, but refuses for now to serve the slot of a command. */
class SlotRefusedError extends SharedStateAwayError {}

/** The refusals of a server that does not own the slot, or that is moving it. */
const slotRefusal = /^(MOVED|ASK|CLUSTERDOWN)\b|\bANOTHERRUN\b/;

const isSlotRefusal = (error: unknown): boolean =>
  error instanceof Error && (slotRefusal.test(error.message) || isPassingRefusal(error));

/** The pause before the gateway reconnects to a server that it cannot use, in milliseconds. */
const learnAgainMs = 1_000;

/** A connection to one server of a cluster, which reconnects automatically. */
export class ClusterNode {
  readonly address: NodeAddress;
  private readonly client: Redis;
  private readonly watch: CommandWatch;
  private readonly onReady: () => void;
  private readonly onLost: (failure: unknown) => void;
  private readonly commands = new Map<string, Command>();
  private currentRun: string | undefined;
  private lastFailure: unknown;
  /** Whether it is known that the server runs scripts. */
  private runsScripts = false;

  private constructor(client: Redis, { address, onReady, onLost }: ClusterNodeOptions) {
    this.client = client;
    this.watch = new CommandWatch(client);
    this.address = address;
    this.onReady = onReady;
    this.onLost = onLost;
    client.on("error", (error: Error) => (this.lastFailure = error));
    const closed = new Error(`${placeOf(address)} closed the connection`);
    client.on("close", () => this.lose(this.lastFailure ?? closed));
    client.on("ready", () => void this.learnRun());
  }

  /** Starts connecting to a server and returns without waiting for the connection. */
  static async connect(options: ClusterNodeOptions): Promise<ClusterNode> {
    const client = await newRedisClient(
      { ...options.server, url: nodeUrl(options.server.url, options.address) },
      {},
    );
    const node = new ClusterNode(client, options);
    client.connect().catch(() => undefined);
    return node;
  }

  /** The server's `run_id`; undefined while the server does not answer or evicts keys. */
  get runId(): string | undefined {
    return this.currentRun;
  }

  /** The most recent reason why the server could not be used. */
  get failure(): unknown {
    return this.lastFailure;
  }

  /**
   * Runs a script whose keys are given with their prefixes. Rejects with `SlotRefusedError` where
   * the server answers but does not run the script, and with `SharedStateAwayError` where it is
   * unknown whether the script ran.
   */
  run({ name, lua }: SharedScript, { keys, values }: ScriptCall): Promise<unknown> {
    let command = this.commands.get(name);
    if (command === undefined) {
      this.client.defineCommand(name, { lua });
      command = (this.client as unknown as Record<string, Command>)[name]!.bind(this.client);
      this.commands.set(name, command);
    }
    const run = command;
    return this.ask(() => run(keys.length, ...keys, ...values));
  }

  /** Sends a command and returns its answer; rejects as `run` does. */
  async ask<Answer>(send: (client: Redis) => Promise<Answer>): Promise<Answer> {
    const run = this.currentRun;
    if (run === undefined) throw new SharedStateAwayError("a server of the cluster is away");
    try {
      return await this.watch.answerOf(() => send(this.client));
    } catch (error) {
      if (isSlotRefusal(error))
        throw new SlotRefusedError("a part of the cluster is away", { cause: error });
      const failure = redisFailure(error);
      if (failure instanceof SharedStateAwayError && this.currentRun === run) {
        this.lose(error);
        this.client.disconnect(true);
      }
      throw failure;
    }
  }

  /** Returns its `master_replid`. Rejects as `run` does. */
  async replicationId(): Promise<string> {
    return replicationIdIn(await this.ask((client) => client.info("replication")));
  }

  /** Returns which server owns each slot, as far as this server knows. */
  async slots(): Promise<SlotMap> {
    const answer = await this.ask((client) => client.call("CLUSTER", "SLOTS"));
    return readSlots(answer, this.address.host);
  }

  /** Closes the connection. */
  close(): void {
    this.currentRun = undefined;
    this.client.disconnect();
  }

  private lose(failure: unknown): void {
    this.lastFailure = failure;
    if (this.currentRun === undefined) return;
    this.currentRun = undefined;
    this.onLost(failure);
  }

  private connectAgain(): void {
    if (this.currentRun === undefined && this.client.status === "ready")
      this.client.disconnect(true);
  }

  private async learnRun(): Promise<void> {
    try {
      const [server, memory] = await Promise.all([
        this.watch.answerOf(() => this.client.info("server")),
        this.watch.answerOf(() => this.client.info("memory")),
      ]);
      requireNoEviction(memory, placeOf(this.address));
      if (!this.runsScripts)
        await this.watch.answerOf(() => requireScripts(this.client, placeOf(this.address)));
      this.runsScripts = true;
      this.currentRun = runIdIn(server);
      this.lastFailure = undefined;
    } catch (error) {
      this.lastFailure = error;
      // Retries after a pause, since an operator may correct the server's settings meanwhile.
      setTimeout(() => this.connectAgain(), learnAgainMs).unref();
    }
    this.onReady();
  }
}

/** Returns the host and port as they are written in a URL. */
export const placeOf = ({ host, port }: NodeAddress): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

/**
 * Returns the URL of one server of a cluster, with the login and the scheme of the cluster's URL.
 */
function nodeUrl(clusterUrl: string, address: NodeAddress): string {
  const { protocol, username, password } = new URL(clusterUrl);
  const login = username === "" && password === "" ? "" : `${username}:${password}@`;
  return `${protocol}//${login}${placeOf(address)}`;
}
