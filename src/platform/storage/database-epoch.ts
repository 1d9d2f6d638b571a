import { type Kysely, sql } from "kysely";
import { randomBase62 } from "../kernel/ids.ts";
import type { Storage } from "./storage.ts";

/** The facts that gateways on one database agree on, and the last beat of each. */
export interface GatewayTables {
  gateway_facts: { name: string; value: string };
  gateway_beats: { node_id: string; beat: number; at_ms: number };
}

/** Options of an epoch. */
export interface EpochOptions {
  storage: Pick<Storage<never>, "join" | "alone">;
  database: Kysely<GatewayTables>;
  nodeId: string;
  /** Called when the database was set back, and when beats failed. */
  onSetBack(): void;
  onError(error: unknown): void;
}

const beatMs = 1_000;
const forgottenAfterMs = 3_600_000;
const epochName = "epoch";

/** The database's time, since the clocks of gateways may differ by hours. */
export const databaseMs = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/**
 * Identifies the history of a database that gateways share, so that state which they keep
 * elsewhere, such as in Valkey, is discarded with it. The epoch changes with the first gateway that
 * starts; when a gateway misses its own last beat, because a backup was restored or the server took
 * over from one that was ahead of it; and with the timeline of Postgres, which changes with every
 * failover and every point-in-time recovery.
 */
export class DatabaseEpoch {
  /** Whether no other gateway took part when this one joined. */
  isFirst = false;
  private readonly options: EpochOptions;
  private readonly listeners = new Set<() => void>();
  private epoch = "";
  private timeline: string | undefined;
  private readsTimeline = true;
  private beatNumber = 0;
  /** The last beat that was requested. It may have been written even where its answer was lost. */
  private lastAsked = 0;
  private timer: ReturnType<typeof setInterval> | undefined;
  private beating: Promise<void> | undefined;

  private constructor(options: EpochOptions) {
    this.options = options;
  }

  /** Joins the gateways on the database and starts to beat. */
  static async open(options: EpochOptions): Promise<DatabaseEpoch> {
    const epoch = new DatabaseEpoch(options);
    await options.storage.alone(() => epoch.join());
    epoch.timer = setInterval(() => void epoch.beat(), beatMs);
    return epoch;
  }

  /** The current epoch. */
  get id(): string {
    return this.timeline === undefined ? this.epoch : `${this.epoch}-${this.timeline}`;
  }

  /** Calls a listener whenever the epoch has changed. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** Stops beating. The other gateways then know that this one has ended. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.beating;
    const { database, nodeId, onError } = this.options;
    await database
      .deleteFrom("gateway_beats")
      .where("node_id", "=", nodeId)
      .execute()
      .catch(onError);
  }

  /** Checks whether the database still has the same history. */
  beat(): Promise<void> {
    this.beating ??= this.compare()
      .catch((error: unknown) => this.options.onError(error))
      .finally(() => (this.beating = undefined));
    return this.beating;
  }

  private async join(): Promise<void> {
    const { storage } = this.options;
    this.isFirst = await storage.join();
    this.readsTimeline = await this.readTimeline().then(
      () => true,
      () => false,
    );
    if (this.isFirst) await this.begin();
    else await this.writeBeat();
    this.epoch = (await this.readEpoch()) ?? (await this.begin());
    this.timeline = this.readsTimeline ? await this.readTimeline() : undefined;
  }

  private async compare(): Promise<void> {
    const { database, nodeId, onSetBack } = this.options;
    const before = this.id;
    const next = this.lastAsked + 1;
    const { beatNumber, lastAsked } = this;
    this.lastAsked = next;
    const { numUpdatedRows } = await database
      .updateTable("gateway_beats")
      .set({ beat: next, at_ms: databaseMs })
      .where("node_id", "=", nodeId)
      // While the database answers nothing, any beat that was sent may be the last that it wrote.
      .where("beat", ">=", beatNumber)
      .where("beat", "<=", lastAsked)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) {
      onSetBack();
      this.epoch = await this.begin();
    } else {
      this.beatNumber = next;
      this.epoch = (await this.readEpoch()) ?? (await this.begin());
    }
    if (this.readsTimeline) this.timeline = await this.readTimeline();
    if (this.id !== before) for (const listener of this.listeners) listener();
  }

  /** Begins another epoch, in which this gateway beats from the start. */
  private async begin(): Promise<string> {
    const epoch = randomBase62(12);
    await this.options.database
      .insertInto("gateway_facts")
      .values({ name: epochName, value: epoch })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value: epoch }))
      .execute();
    await this.writeBeat();
    return epoch;
  }

  private async writeBeat(): Promise<void> {
    const { database, nodeId } = this.options;
    this.lastAsked += 1;
    const row = { beat: this.lastAsked, at_ms: databaseMs };
    await database
      .insertInto("gateway_beats")
      .values({ node_id: nodeId, ...row })
      .onConflict((conflict) => conflict.column("node_id").doUpdateSet(row))
      .execute();
    this.beatNumber = this.lastAsked;
    await database
      .deleteFrom("gateway_beats")
      .where("at_ms", "<", sql<number>`${databaseMs} - ${forgottenAfterMs}`)
      .execute();
  }

  private async readEpoch(): Promise<string | undefined> {
    const { database } = this.options;
    const row = await database
      .selectFrom("gateway_facts")
      .select("value")
      .where("name", "=", epochName)
      .executeTakeFirst();
    return row?.value;
  }

  /**
   * Reads the timeline of Postgres. Rejects where the server does not report it, as some hosted
   * ones do not.
   */
  private async readTimeline(): Promise<string> {
    const { rows } = await sql<{
      timeline: string;
    }>`select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline`.execute(
      this.options.database,
    );
    const [row] = rows;
    if (row === undefined) throw new Error("the server does not name its timeline");
    return row.timeline;
  }
}
