import { type Kysely, sql } from "kysely";
import type { GatewayNode } from "../endpoints/dependencies.ts";
import { randomBase62 } from "../platform/kernel/ids.ts";
import type { SharedChannel } from "../platform/shared-state/shared-channel.ts";
import { databaseMs, type GatewayTables } from "../platform/storage/database-epoch.ts";

/** The last report of each gateway on the database. */
export interface NodeTables {
  gateway_nodes: { node_id: string; about: string; seen_at_ms: number };
}

/** A gateway as it describes itself. */
export type NodeAbout = Omit<GatewayNode, "id">;

/** Options of the gateway's nodes. */
export interface GatewayNodesOptions {
  database: Kysely<NodeTables & GatewayTables>;
  channel: Pick<SharedChannel, "on" | "publish">;
  nodeId: string;
  about(): NodeAbout;
  /** Called when another gateway asks all of them to reload their configuration. */
  onReload(): void;
  /** Called when the configurations of gateways differ for longer than a reload takes. */
  onDifference(nodes: readonly GatewayNode[]): void;
  onError(error: unknown): void;
}

const reportMs = 2_000;

/** Milliseconds without a report after which a gateway counts as ended. */
const silentMs = 8_000;

const reloadName = "reload";

/**
 * Informs the gateways of one database about each other. Each reports its configuration, and learns
 * from the database, or sooner over Valkey, that all are to reload theirs.
 */
export class GatewayNodes {
  /** The number of different configurations among the live gateways at the last report. */
  configurations = 1;
  private lastReload: string | undefined;
  private seenDifference = "";
  private reportedDifference = "";
  private reporting: Promise<void> | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly options: GatewayNodesOptions) {}

  /** Starts to report. */
  async start(): Promise<void> {
    const { channel, database } = this.options;
    channel.on(reloadName, (word) => this.heardReload(word));
    this.lastReload = await this.readReload();
    await database
      .deleteFrom("gateway_nodes")
      .where("seen_at_ms", "<", sql<number>`${databaseMs} - ${silentMs * 10}`)
      .execute();
    await this.report();
    this.timer = setInterval(
      () => void (this.reporting === undefined ? this.report() : undefined),
      reportMs,
    );
  }

  /** Stops to report; the others forget this gateway at once. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.reporting;
    const { database, nodeId, onError } = this.options;
    await database
      .deleteFrom("gateway_nodes")
      .where("node_id", "=", nodeId)
      .execute()
      .catch(onError);
  }

  /** Returns the live gateways, by name. */
  async list(): Promise<GatewayNode[]> {
    const rows = await this.options.database
      .selectFrom("gateway_nodes")
      .select(["node_id", "about"])
      .where("seen_at_ms", ">", sql<number>`${databaseMs} - ${silentMs}`)
      .execute();
    return rows
      .map(({ node_id: id, about }) => ({ id, ...(JSON.parse(about) as NodeAbout) }))
      .sort((one, other) => (one.name + one.id < other.name + other.id ? -1 : 1));
  }

  /** Makes every other gateway reload its configuration, at once or with its next report. */
  async reloadOthers(): Promise<void> {
    const word = randomBase62(12);
    this.lastReload = word;
    await this.options.database
      .insertInto("gateway_facts")
      .values({ name: reloadName, value: word })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value: word }))
      .execute();
    this.options.channel.publish(reloadName, word);
  }

  /** Reports this gateway's present state, and reads what the others reported. */
  async report(): Promise<void> {
    // A report in progress may have begun before the change that is to be reported.
    await this.reporting;
    await (this.reporting ??= this.exchange()
      .catch((error: unknown) => this.options.onError(error))
      .finally(() => (this.reporting = undefined)));
  }

  private async exchange(): Promise<void> {
    const { database, nodeId } = this.options;
    const row = { about: JSON.stringify(this.options.about()), seen_at_ms: databaseMs };
    await database
      .insertInto("gateway_nodes")
      .values({ node_id: nodeId, ...row })
      .onConflict((conflict) => conflict.column("node_id").doUpdateSet(row))
      .execute();
    const word = await this.readReload();
    if (word !== undefined) this.heardReload(word);
    this.compare(await this.list());
  }

  private heardReload(word: string): void {
    if (word === this.lastReload) return;
    this.lastReload = word;
    this.options.onReload();
  }

  /**
   * Reports a difference that was seen twice in a row: during a reload there is one for a moment.
   */
  private compare(nodes: readonly GatewayNode[]): void {
    const hashes = [...new Set(nodes.map(({ configuration }) => configuration))].sort();
    this.configurations = hashes.length;
    const difference = hashes.length > 1 ? hashes.join(" ") : "";
    const lasts = difference === this.seenDifference;
    this.seenDifference = difference;
    if (!lasts || difference === this.reportedDifference) return;
    this.reportedDifference = difference;
    if (difference !== "") this.options.onDifference(nodes);
  }

  private async readReload(): Promise<string | undefined> {
    const row = await this.options.database
      .selectFrom("gateway_facts")
      .select("value")
      .where("name", "=", reloadName)
      .executeTakeFirst();
    return row?.value;
  }
}
