import { ClusterNode, placeOf } from "./cluster-node.ts";
import { ClusterPart } from "./cluster-part.ts";
import { type NodeAddress, partIndexOf, partTags, type SlotMap } from "./cluster-slots.ts";
import { refusedLogin, type SharedServer } from "./redis-client.ts";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";
import { type SharedParts, type SharedStateLogger, sharedPrefix } from "./shared-state.ts";

/** The options of a connection to a cluster. */
export interface SharedClusterOptions extends SharedServer {
  logger: SharedStateLogger;
  /** How long the gateway waits for the parts when it starts, in milliseconds. */
  waitMs: number;
}

/** The pause before the gateway looks again for unavailable parts, in milliseconds. */
const lookAgainMs = 250;

/**
 * The shared state of all gateways on one database, in a Valkey or Redis cluster: parts of one slot
 * each. A part is unavailable while no server serves its slot, and does not affect the others. The
 * gateway asks the cluster for the owners of slots whenever a part is unavailable.
 */
export class SharedCluster implements SharedParts {
  readonly parts: readonly ClusterPart[];
  private readonly server: SharedServer;
  private readonly logger: SharedStateLogger;
  /** The servers that own slots of parts, by host and port. */
  private readonly nodes = new Map<string, ClusterNode>();
  /** The addresses of the cluster's servers, past and present, from the most recent answer. */
  private known: NodeAddress[];
  private looking: Promise<void> | undefined;
  private looksAgain = false;
  private turn = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private reportedAway = 0;
  private isClosed = false;
  private lastFailure: unknown;
  private onLooked: () => void = () => undefined;

  private constructor({ logger, waitMs: _waitMs, ...server }: SharedClusterOptions) {
    this.server = server;
    this.logger = logger;
    this.known = [seedOf(server)];
    this.parts = partTags().map((tag) => new ClusterPart(tag, () => this.look()));
  }

  /**
   * Connects to the servers of a cluster. Resolves once every part is available, or when the time
   * is up and some are. Throws `SharedStateAwayError` where none is, and `SharedStateUnfitError`
   * where a server refuses the login or evicts keys, where the URL names a database, or where there
   * are sentinels.
   */
  static async open(options: SharedClusterOptions): Promise<SharedCluster> {
    requireClusterUrl(options);
    const cluster = new SharedCluster(options);
    const opened = Promise.withResolvers<void>();
    const decide = (isLast: boolean): void => {
      const unfit = cluster.unfitness();
      if (unfit !== undefined) return opened.reject(unfit);
      if (cluster.awayCount === 0) return opened.resolve();
      if (!isLast) return;
      if (cluster.awayCount < cluster.parts.length) opened.resolve();
      else opened.reject(cluster.awayError());
    };
    cluster.onLooked = () => decide(false);
    const timer = setTimeout(() => decide(true), Math.max(options.waitMs, 1_000));
    cluster.look();
    try {
      await opened.promise;
      return cluster;
    } catch (error) {
      cluster.close();
      throw error;
    } finally {
      clearTimeout(timer);
      cluster.onLooked = () => cluster.tellAway();
      if (!cluster.isClosed) cluster.tellAway();
    }
  }

  partOf(name: string): ClusterPart {
    return this.parts[partIndexOf(name)]!;
  }

  /** Publishes through any server, since each forwards messages to all others. */
  async publish(channel: string, message: string): Promise<void> {
    const node = this.nodes.values().find(({ runId }) => runId !== undefined);
    if (node === undefined) throw new SharedStateAwayError("no server of the cluster answers");
    await node.ask((client) => client.publish(sharedPrefix + channel, message));
  }

  nextRelay(): NodeAddress {
    this.turn += 1;
    return this.known[this.turn % this.known.length]!;
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const part of this.parts) part.close();
    for (const node of this.nodes.values()) node.close();
  }

  private get awayCount(): number {
    return this.parts.filter(({ runId }) => runId === undefined).length;
  }

  /**
   * Looks for the servers of unavailable parts until every part is available; one search runs at a
   * time.
   */
  private look(): void {
    if (this.isClosed) return;
    if (this.looking !== undefined) {
      this.looksAgain = true;
      return;
    }
    clearTimeout(this.timer);
    this.looksAgain = false;
    this.looking = this.enterParts()
      .catch((error: unknown) => (this.lastFailure = error))
      .then(() => this.looked());
  }

  private looked(): void {
    this.looking = undefined;
    if (this.isClosed) return;
    this.onLooked();
    if (this.looksAgain) return this.look();
    if (this.awayCount > 0) this.timer = setTimeout(() => this.look(), lookAgainMs);
  }

  private async enterParts(): Promise<void> {
    const away = this.parts.filter(({ runId }) => runId === undefined);
    if (away.length === 0) return;
    const slots = await this.askSlots();
    if (slots === undefined || this.isClosed) return;
    this.known = [...slots.nodes, seedOf(this.server)];
    for (const { slot } of away) {
      const owner = slots.ownerOf(slot);
      if (owner !== undefined) await this.connect(owner);
    }
    await Promise.all(away.map((part) => this.enter(part, slots)));
    this.leaveUnused(slots);
  }

  private async enter(part: ClusterPart, slots: SlotMap): Promise<void> {
    const owner = slots.ownerOf(part.slot);
    const node = owner && this.nodes.get(placeOf(owner));
    if (node === undefined) part.lose(new Error(`no server has the slot ${part.slot}`));
    else await part.enter(node);
  }

  /**
   * Asks one server for the owners of all slots. Each call asks another server, since one that was
   * cut off may have old information. Connects to a known server where none is connected.
   */
  private async askSlots(): Promise<SlotMap | undefined> {
    const ready = [...this.nodes.values()].filter(({ runId }) => runId !== undefined);
    this.turn += 1;
    for (let index = 0; index < ready.length; index += 1) {
      try {
        return await ready[(this.turn + index) % ready.length]!.slots();
      } catch (error) {
        this.lastFailure = error;
      }
    }
    await this.connect(this.known[this.turn % this.known.length]!);
    return undefined;
  }

  private async connect(address: NodeAddress): Promise<void> {
    const place = placeOf(address);
    if (this.nodes.has(place) || this.isClosed) return;
    const node: ClusterNode = await ClusterNode.connect({
      server: this.server,
      address,
      onReady: () => this.look(),
      onLost: (failure) => this.loseNode(node, failure),
    });
    this.nodes.set(place, node);
    if (this.isClosed) node.close();
  }

  private loseNode(node: ClusterNode, failure: unknown): void {
    for (const part of this.parts) if (part.isAt(node)) part.lose(failure);
    this.look();
  }

  /** Closes the connections to servers that own no part. */
  private leaveUnused(slots: SlotMap): void {
    const owners = new Set(this.parts.map(({ slot }) => placeOrNone(slots.ownerOf(slot))));
    for (const [place, node] of this.nodes) {
      if (owners.has(place) || this.parts.some((part) => part.isAt(node))) continue;
      this.nodes.delete(place);
      node.close();
    }
  }

  /** Warns once about unavailable parts, and logs when all parts are available again. */
  private tellAway(): void {
    const { awayCount: away } = this;
    if (away === this.reportedAway) return;
    this.reportedAway = away;
    if (away === 0) return this.logger.info({}, "every part of the cluster of shared state serves");
    const reason = this.reason();
    this.logger.warn({ away, of: this.parts.length, reason }, "parts of the cluster are away");
  }

  private get failures(): unknown[] {
    const nodes = [...this.nodes.values()].map(({ failure }) => failure);
    return [...nodes, ...this.parts.map(({ failure }) => failure), this.lastFailure];
  }

  private reason(): string | undefined {
    return this.failures.map(messageOf).find((message) => message !== undefined);
  }

  /** Returns the error where a server's settings make it unusable; undefined where none does. */
  private unfitness(): SharedStateUnfitError | undefined {
    for (const failure of this.failures) {
      if (failure instanceof SharedStateUnfitError) return failure;
      const message = messageOf(failure);
      if (message !== undefined && refusedLogin.test(message))
        return new SharedStateUnfitError(`a server of the cluster refuses: ${message}`);
    }
    return undefined;
  }

  private awayError(): SharedStateAwayError {
    const reason = this.reason();
    return new SharedStateAwayError(
      `no part of the cluster at ${new URL(this.server.url).host} serves${reason === undefined ? "" : ` (${reason})`}`,
    );
  }
}

const placeOrNone = (address: NodeAddress | undefined): string | undefined =>
  address && placeOf(address);

/** Returns the message of a failure, or of what caused it. */
function messageOf(failure: unknown): string | undefined {
  if (!(failure instanceof Error)) return undefined;
  return messageOf(failure.cause) ?? failure.message;
}

const defaultPort = 6_379;

/** Returns the address of the server that the URL names. */
function seedOf({ url }: SharedServer): NodeAddress {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || defaultPort) };
}

function requireClusterUrl({ url, sentinels = [] }: SharedServer): void {
  const { host, pathname } = new URL(url);
  const database = pathname.replace(/^\//, "");
  if (sentinels.length > 0)
    throw new SharedStateUnfitError(
      `the Valkey or Redis at ${host} is part of a cluster, which replaces its primaries without sentinels: name no sentinels`,
    );
  if (database !== "" && Number(database) !== 0)
    throw new SharedStateUnfitError(
      `the Valkey or Redis at ${host} is part of a cluster, which has no databases: leave /${database} out of its URL`,
    );
}
