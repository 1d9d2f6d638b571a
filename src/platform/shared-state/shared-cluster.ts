import { ClusterNode, placeOf } from "./cluster-node.ts";
import { ClusterPart } from "./cluster-part.ts";
import { type NodeAddress, partIndexOf, partTags, type SlotMap } from "./cluster-slots.ts";
import { refusedLogin, type SharedServer } from "./redis-client.ts";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";
import { type SharedParts, type SharedStateLogger, sharedPrefix } from "./shared-state.ts";

/** How it is opened. */
export interface SharedClusterOptions extends SharedServer {
  logger: SharedStateLogger;
  /** How long parts may take to be there when the gateway starts. */
  waitMs: number;
}

/** Pause before parts that are away are looked for again. */
const lookAgainMs = 250;

/**
 * What the gateways of one database share, in a Valkey or Redis cluster: parts of one slot each. A
 * part is away while no server serves its slot, and every other one goes on. Who has a slot is asked
 * of the cluster whenever a part is away.
 */
export class SharedCluster implements SharedParts {
  readonly parts: readonly ClusterPart[];
  private readonly server: SharedServer;
  private readonly logger: SharedStateLogger;
  /** Servers that have slots of parts, by host and port. */
  private readonly nodes = new Map<string, ClusterNode>();
  /** Where servers of the cluster are known to be or to have been, the newest answer. */
  private known: NodeAddress[];
  private looking: Promise<void> | undefined;
  private looksAgain = false;
  private turn = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private toldAway = 0;
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
   * Connects to the servers of a cluster; resolves once every part is there, or some are when the
   * time is over. Throws `SharedStateAwayError` where none is, and `SharedStateUnfitError` where a
   * server refuses the login or evicts keys, and where the URL names a database or there are
   * sentinels.
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

  /** Any server hands it to all others. */
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

  /** Looks for the servers of parts that are away, until none is; one look at a time. */
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
   * Asks one server who has which slots, another one each time: one that was cut off may not know.
   * Where none is connected to, one that is known is from now on.
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

  /** Lets go of servers that have no part. */
  private leaveUnused(slots: SlotMap): void {
    const owners = new Set(this.parts.map(({ slot }) => placeOrNone(slots.ownerOf(slot))));
    for (const [place, node] of this.nodes) {
      if (owners.has(place) || this.parts.some((part) => part.isAt(node))) continue;
      this.nodes.delete(place);
      node.close();
    }
  }

  /** Warns once of parts that are away, and says when all are there again. */
  private tellAway(): void {
    const { awayCount: away } = this;
    if (away === this.toldAway) return;
    this.toldAway = away;
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

  /** Why the servers cannot be used as they are set up. */
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

/** What a failure says, or what caused it. */
function messageOf(failure: unknown): string | undefined {
  if (!(failure instanceof Error)) return undefined;
  return messageOf(failure.cause) ?? failure.message;
}

const defaultPort = 6_379;

/** The server that the URL names. */
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
