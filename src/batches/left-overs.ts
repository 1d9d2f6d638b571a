import { type Kysely, sql } from "kysely";
import type { FileTables } from "../files/file-store.ts";
import { type Clock, hourMs, minuteMs } from "../platform/kernel/clock.ts";
import { openStatuses, type BatchTables } from "./batch.ts";
import type { LineStore } from "./line-store.ts";
import { withTables } from "../platform/storage/with-tables.ts";

/** Milliseconds between two sweeps, and since the deletion of a file whose holds are looked at. */
const sweepEveryMs = hourMs;

/** Milliseconds from the start to the first sweep, which no start waits for. */
const firstSweepMs = minuteMs;

/** Batches whose lines are deleted in one sweep. */
const batchesMax = 1_000;

/**
 * Deletes what was left by a gateway that was killed, or whose database failed, between the end of a
 * batch and the deletion of what the batch used: its lines and results, and its holds on deleted
 * files, whose bytes would count to the workspace for ever.
 */
export class LeftOvers {
  private readonly database: Kysely<BatchTables & Pick<FileTables, "files">>;
  private readonly lines: LineStore;
  private readonly clock: Clock;
  private nextMs: number;

  constructor(parts: { database: Kysely<BatchTables>; lines: LineStore; clock: Clock }) {
    this.database = withTables<Pick<FileTables, "files">>(parts.database);
    this.lines = parts.lines;
    this.clock = parts.clock;
    this.nextMs = this.clock.monotonicMs() + firstSweepMs;
  }

  /** Sweeps a minute after the start and then once an hour, however often it is called. */
  async sweep(): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + sweepEveryMs;
    await this.dropLines();
    await this.endHolds();
  }

  /** Deletes the lines and results of batches that have ended. */
  private async dropLines(): Promise<void> {
    const ended = await this.database
      .selectFrom("batches")
      .select("id")
      .where("status", "not in", [...openStatuses])
      .where((is) =>
        is.or([
          is.exists(
            is
              .selectFrom("batch_lines")
              .select("line")
              .whereRef("batch_lines.batch_id", "=", "batches.id"),
          ),
          is.exists(
            is
              .selectFrom("batch_results")
              .select("line")
              .whereRef("batch_results.batch_id", "=", "batches.id"),
          ),
        ]),
      )
      .limit(batchesMax)
      .execute();
    for (const { id } of ended) await this.lines.drop(id);
  }

  /**
   * Ends the holds on files that were deleted while no batch of their workspace is open that may
   * read them. A batch is created soon after its hold, and no hold is taken on a deleted file.
   */
  private async endHolds(): Promise<void> {
    await this.database
      .updateTable("files")
      .set({ holds: 0 })
      .where("holds", ">", 0)
      .where("deleted_at_ms", "<", this.clock.nowMs() - sweepEveryMs)
      .where((is) =>
        is.not(
          is.exists(
            is
              .selectFrom("batches")
              .select("batches.id")
              .whereRef("batches.workspace_id", "=", "files.workspace_id")
              .where("batches.status", "in", [...openStatuses])
              .where("batches.created_at_ms", "<=", sql<number>`files.deleted_at_ms + ${hourMs}`),
          ),
        ),
      )
      .execute();
  }
}
