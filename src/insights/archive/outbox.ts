import { type Kysely, sql } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import { timeOrderedHex } from "../../platform/kernel/ids.ts";
import type { GatewayTables } from "../../platform/storage/database-epoch.ts";
import { lowestIdAt, timeOfId, type GenerationTables } from "../generation-record.ts";
import { archiveFilledName, type OutboxTables } from "./outbox-add.ts";

/** The tables of the outbox, and those that it reads. */
export type ArchivingTables = OutboxTables & GenerationTables & GatewayTables;

/** The records of one insert, and the number of them that were deleted meanwhile. */
export interface OutboxBatch {
  rows: GenerationTables["generations"][];
  missing: number;
}

/** Records that one statement adds to the outbox when a new archive is filled. */
const fillStepRows = 5_000;
const recordsFromName = "records_from_ms";

/**
 * The committed records that are not archived yet. A record leaves the outbox when the archive has
 * taken its batch. The content of a batch is fixed in the database before it is sent, so that a
 * repetition sends the same records under the same name.
 */
export class Outbox {
  private readonly database: Kysely<ArchivingTables>;
  private readonly clock: Clock;
  private readonly archive: string;

  constructor(options: {
    database: Kysely<ArchivingTables>;
    clock: Clock;
    /** The archive's address and database. */
    archive: string;
  }) {
    this.database = options.database;
    this.clock = options.clock;
    this.archive = options.archive;
  }

  /** Returns batches that are not known to be archived, oldest first. */
  async batches(): Promise<string[]> {
    const rows = await this.database
      .selectFrom("archive_outbox")
      .select("batch")
      .distinct()
      .where("batch", "is not", null)
      .orderBy("batch")
      .execute();
    return rows.flatMap(({ batch }) => batch ?? []);
  }

  /**
   * Forms the next batch, of about `limit` records, and returns its name; undefined where none
   * wait.
   */
  async settle(limit: number): Promise<string | undefined> {
    const waiting = await this.database
      .selectFrom("archive_outbox")
      .select("generation_id")
      .where("batch", "is", null)
      .orderBy("generation_id")
      .limit(limit)
      .execute();
    const last = waiting.at(-1);
    if (last === undefined) return undefined;
    const batch = timeOrderedHex(this.clock.nowMs());
    // Another gateway may claim some of them at the same time: each belongs to the first.
    const { numUpdatedRows } = await this.database
      .updateTable("archive_outbox")
      .set({ batch })
      .where("batch", "is", null)
      .where("generation_id", "<=", last.generation_id)
      .executeTakeFirst();
    return numUpdatedRows === 0n ? undefined : batch;
  }

  /** Returns the records of a batch, in the order of their ids. */
  async read(batch: string): Promise<OutboxBatch> {
    const named = await this.database
      .selectFrom("archive_outbox")
      .select(({ fn }) => fn.countAll<number | string>().as("count"))
      .where("batch", "=", batch)
      .executeTakeFirstOrThrow();
    const rows = await this.database
      .selectFrom("archive_outbox")
      .innerJoin("generations", (join) =>
        join
          .onRef("generations.workspace_id", "=", "archive_outbox.workspace_id")
          .onRef("generations.id", "=", "archive_outbox.generation_id"),
      )
      .selectAll("generations")
      .where("archive_outbox.batch", "=", batch)
      .orderBy("generations.id")
      .execute();
    return { rows, missing: Math.max(0, Number(named.count) - rows.length) };
  }

  /** Removes a batch that the archive has taken. */
  async done(batch: string): Promise<void> {
    await this.database.deleteFrom("archive_outbox").where("batch", "=", batch).execute();
  }

  /** Returns the number of records that wait. */
  async count(): Promise<number> {
    const row = await this.database
      .selectFrom("archive_outbox")
      .select(({ fn }) => fn.countAll<number | string>().as("count"))
      .executeTakeFirstOrThrow();
    return Number(row.count);
  }

  /** Returns when the oldest request came whose record waits; undefined where none does. */
  async oldestMs(): Promise<number | undefined> {
    const row = await this.database
      .selectFrom("archive_outbox")
      .select("generation_id")
      .orderBy("generation_id")
      .limit(1)
      .executeTakeFirst();
    return row && timeOfId(row.generation_id);
  }

  /**
   * Returns the wall time before which every committed request is archived; 0 while the archive has
   * not been given the records from before it was configured.
   */
  async archivedBeforeMs(): Promise<number> {
    if (!(await this.isFilled())) return 0;
    return (await this.oldestMs()) ?? this.clock.nowMs();
  }

  /** Drops records whose rows are being deleted before they could be archived; returns how many. */
  async giveUpBefore(beforeMs: number): Promise<number> {
    const { numDeletedRows } = await this.database
      .deleteFrom("archive_outbox")
      .where("batch", "is", null)
      .where("generation_id", "<", lowestIdAt(beforeMs))
      .executeTakeFirst();
    return Number(numDeletedRows);
  }

  /**
   * Returns the wall time from which on the database has all records; 0 before any were deleted.
   */
  async recordsFromMs(): Promise<number> {
    return Number((await this.fact(recordsFromName)) ?? 0);
  }

  /** Notes that records of requests before a wall time are being deleted. */
  async setRecordsFrom(beforeMs: number): Promise<void> {
    if (beforeMs > (await this.recordsFromMs()))
      await this.setFact(recordsFromName, String(beforeMs));
  }

  /**
   * Adds every record of the database to the outbox where an archive is new, or gateways have run
   * without it meanwhile. The archive keeps one of each, however often it is sent.
   */
  async fill(signal: AbortSignal): Promise<void> {
    if (await this.isFilled()) return;
    for (let workspaceId = ""; ; ) {
      const next = await this.database
        .selectFrom("generations")
        .select("workspace_id")
        .where("workspace_id", ">", workspaceId)
        .orderBy("workspace_id")
        .limit(1)
        .executeTakeFirst();
      if (next === undefined) break;
      workspaceId = next.workspace_id;
      await this.fillFrom(workspaceId, signal);
      if (signal.aborted) return;
    }
    await this.setFact(archiveFilledName, this.archive);
  }

  private async isFilled(): Promise<boolean> {
    return (await this.fact(archiveFilledName)) === this.archive;
  }

  private async fillFrom(workspaceId: string, signal: AbortSignal): Promise<void> {
    for (let after = ""; !signal.aborted; ) {
      const rows = await this.database
        .selectFrom("generations")
        .select("id")
        .where("workspace_id", "=", workspaceId)
        .where("id", ">", after)
        .orderBy("id")
        .limit(fillStepRows)
        .execute();
      const last = rows.at(-1);
      if (last === undefined) return;
      await sql`insert into archive_outbox (generation_id, workspace_id, records)
        select id, workspace_id, 1 from generations
        where workspace_id = ${workspaceId} and id > ${after} and id <= ${last.id}
        on conflict do nothing`.execute(this.database);
      after = last.id;
    }
  }

  private async fact(name: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("gateway_facts")
      .select("value")
      .where("name", "=", name)
      .executeTakeFirst();
    return row?.value;
  }

  private async setFact(name: string, value: string): Promise<void> {
    await this.database
      .insertInto("gateway_facts")
      .values({ name, value })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
      .execute();
  }
}
