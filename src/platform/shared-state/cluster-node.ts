import type { Redis } from "ioredis";
import { type NodeAddress, readSlots, type SlotMap } from "./cluster-slots.ts";
import { CommandWatch } from "./command-watch.ts";
import {
  isPassingRefusal,
  newRedisClient,
  redisFailure,
  requireNoEviction,
  runIdIn,
  type SharedServer,
} from "./redis-client.ts";
import { SharedStateAwayError } from "./shared-state-error.ts";
import type { ScriptCall, SharedScript } from "./shared-state.ts";

/** What a server of a cluster is connected to with. */
export interface ClusterNodeOptions {
  /** The cluster, whose URL has the login and says whether TLS is spoken. */
  server: SharedServer;
  address: NodeAddress;
  /** Called with every connection to it, once its run is known or why it cannot be used. */
  onReady(): void;
  /** Called when it does not answer any more. */
  onLost(failure: unknown): void;
}

type Command = (keyCount: number, ...values: (string | number)[]) => Promise<unknown>;

/** The server answers, and refuses for now what was asked of a slot. */
class SlotRefusedError extends SharedStateAwayError {}

/** Refusals by a server that does not have the slot (any more, or for as long as it moves). */
const slotRefusal = /^(MOVED|ASK|CLUSTERDOWN)\b|\bANOTHERRUN\b/;

const isSlotRefusal = (error: unknown): boolean =>
  error instanceof Error && (slotRefusal.test(error.message) || isPassingRefusal(error));

/** Pause before a server that cannot be used is connected to again. */
const learnAgainMs = 1_000;

/** One server of a cluster, on one connection; it connects again by itself. */
export class ClusterNode {
  readonly address: NodeAddress;
  private readonly client: Redis;
  private readonly watch: CommandWatch;
  private readonly onReady: () => void;
  private readonly onLost: (failure: unknown) => void;
  private readonly commands = new Map<string, Command>();
  private currentRun: string | undefined;
  private lastFailure: unknown;

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

  /** Begins to connect to a server. */
  static async connect(options: ClusterNodeOptions): Promise<ClusterNode> {
    const client = await newRedisClient(
      { ...options.server, url: nodeUrl(options.server.url, options.address) },
      {},
    );
    const node = new ClusterNode(client, options);
    client.connect().catch(() => undefined);
    return node;
  }

  /** Its `run_id`; undefined while it does not answer, or evicts keys. */
  get runId(): string | undefined {
    return this.currentRun;
  }

  /** Why it could not be used the last time. */
  get failure(): unknown {
    return this.lastFailure;
  }

  /**
   * Runs a script with the whole names of its keys. Rejects with `SlotRefusedError` where the server answers and does
   * not run it, and with `SharedStateAwayError` where it is unknown whether it ran.
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

  /** Asks it with a command; rejects as `run` does. */
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

  /** Who has which slots, as far as this server knows. */
  async slots(): Promise<SlotMap> {
    const answer = await this.ask((client) => client.call("CLUSTER", "SLOTS"));
    return readSlots(answer, this.address.host);
  }

  /** Lets go of it. */
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
      this.currentRun = runIdIn(server);
      this.lastFailure = undefined;
    } catch (error) {
      this.lastFailure = error;
      // Asked again after a pause: it may be set up otherwise by then.
      setTimeout(() => this.connectAgain(), learnAgainMs).unref();
    }
    this.onReady();
  }
}

/** Host and port as they stand in a URL. */
export const placeOf = ({ host, port }: NodeAddress): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** The URL of one server of a cluster, with the login and the scheme of the cluster's. */
function nodeUrl(clusterUrl: string, address: NodeAddress): string {
  const { protocol, username, password } = new URL(clusterUrl);
  const login = username === "" && password === "" ? "" : `${username}:${password}@`;
  return `${protocol}//${login}${placeOf(address)}`;
}
