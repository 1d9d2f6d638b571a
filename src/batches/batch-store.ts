import { type Kysely, sql } from "kysely";
import type { AnswerTokens } from "../inference/dialects/answer-tokens.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { newId } from "../platform/kernel/ids.ts";
import { recordColumns } from "../platform/storage/record-columns.ts";
import type { StorageKind } from "../platform/storage/storage.ts";
import {
  openStatuses,
  type Batch,
  type BatchForm,
  type BatchStatus,
  type BatchTables,
  type InputProblem,
} from "./batch.ts";
import type { LeaseTime } from "./lease-time.ts";

/** What a caller asks for with a batch. */
export type NewBatch = Pick<
  Batch,
  | "workspaceId"
  | "keyId"
  | "form"
  | "endpoint"
  | "completionWindow"
  | "inputFileId"
  | "outputExpiresSeconds"
  | "metadata"
> & {
  windowMs: number;
  /** The number of its lines, where it is known before they are checked. */
  total?: number;
};

/** Which batches of a workspace to list, newest first. */
export interface BatchQuery {
  workspaceId: string;
  /** Absent lists those of both forms. */
  form?: BatchForm | undefined;
  limit: number;
  after?: string | undefined;
  before?: string | undefined;
}

/** How long a gateway's work on a batch or a line is protected without a sign of life. */
export const leaseMs = 30_000;

/** The most batches of a workspace that have not ended, and those that are read at once. */
const openMax = 1_000;

/** Distinguishes the locks of batches from others that have two numbers. */
const lockClass = 0x6261_7463;

/** Stores batches. Callers' lookups name the workspace. */
export class BatchStore {
  private readonly database: Kysely<BatchTables>;
  private readonly clock: Clock;
  private readonly nodeId: string;
  private readonly leaseTime: LeaseTime;
  private readonly kind: StorageKind;

  constructor(parts: {
    database: Kysely<BatchTables>;
    clock: Clock;
    nodeId: string;
    leaseTime: LeaseTime;
    kind: StorageKind;
  }) {
    this.kind = parts.kind;
    this.database = parts.database;
    this.clock = parts.clock;
    this.nodeId = parts.nodeId;
    this.leaseTime = parts.leaseTime;
  }

  /**
   * Stores a batch that is to be validated. `seal` seals the key of its results; `alongside` runs in
   * the same transaction. Throws `GatewayError` where the workspace has as many open as it may.
   */
  async create(
    asked: NewBatch,
    seal: (id: string) => Promise<string>,
    alongside: (transaction: Kysely<BatchTables>, batch: Batch) => Promise<void> = async () =>
      undefined,
  ): Promise<Batch> {
    const createdAtMs = this.clock.nowMs();
    const id = newId("batch", createdAtMs);
    const row: BatchTables["batches"] = {
      id,
      workspace_id: asked.workspaceId,
      key_id: asked.keyId,
      form: asked.form,
      endpoint: asked.endpoint,
      completion_window: asked.completionWindow,
      status: "validating",
      created_at_ms: createdAtMs,
      expires_at_ms: createdAtMs + asked.windowMs,
      in_progress_at_ms: null,
      finalizing_at_ms: null,
      ended_at_ms: null,
      cancelling_at_ms: null,
      input_file_id: asked.inputFileId,
      output_file_id: null,
      error_file_id: null,
      output_expires_s: asked.outputExpiresSeconds,
      total: asked.total ?? 0,
      completed: 0,
      failed: 0,
      cost_nano: 0,
      problems: null,
      metadata: asked.metadata === null ? null : JSON.stringify(asked.metadata),
      usage: null,
      failures: null,
      pause_note: null,
      paused_until_ms: 0,
      sealed_key: await seal(id),
      leased_by: null,
      leased_until_ms: 0,
    };
    const batch = batchOf(row);
    await this.database.transaction().execute(async (transaction) => {
      await this.refuseMany(asked.workspaceId, transaction);
      await transaction.insertInto("batches").values(row).execute();
      await alongside(transaction, batch);
    });
    return batch;
  }

  /** Returns a batch of a workspace, in one form alone where one is named. */
  async find(workspaceId: string, id: string, form?: BatchForm): Promise<Batch | undefined> {
    const row = await this.database
      .selectFrom("batches")
      .selectAll()
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row === undefined || (form !== undefined && row.form !== form)
      ? undefined
      : batchOf(row);
  }

  /** Returns a batch for the work on it. */
  async get(id: string): Promise<Batch | undefined> {
    const row = await this.database
      .selectFrom("batches")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && batchOf(row);
  }

  /** Lists the batches of a workspace, newest first. */
  async list({
    workspaceId,
    form,
    limit,
    after,
    before,
  }: BatchQuery): Promise<{ batches: Batch[]; hasMore: boolean }> {
    const isBackwards = before !== undefined;
    const edge = before ?? after;
    let query = this.database
      .selectFrom("batches")
      .selectAll()
      .where("workspace_id", "=", workspaceId);
    if (form !== undefined) query = query.where("form", "=", form);
    if (edge !== undefined) query = query.where("id", isBackwards ? ">" : "<", edge);
    const rows = await query
      .orderBy("id", isBackwards ? "asc" : "desc")
      .limit(limit + 1)
      .execute();
    const batches = rows.slice(0, limit).map(batchOf);
    return { batches: isBackwards ? batches.reverse() : batches, hasMore: rows.length > limit };
  }

  /** Returns the batches on which something is to be done, oldest first. */
  async open(): Promise<Batch[]> {
    const batches: Batch[] = [];
    for (let after = ""; ; ) {
      const rows = await this.database
        .selectFrom("batches")
        .selectAll()
        .where("status", "in", [...openStatuses])
        .where("id", ">", after)
        .orderBy("id")
        .limit(openMax)
        .execute();
      batches.push(...rows.map(batchOf));
      const last = rows.at(-1);
      if (last === undefined || rows.length < openMax) return batches;
      after = last.id;
    }
  }

  /**
   * Each open batch is looked at every second, so that the others wait for a workspace with many.
   * Creations of one workspace count one after the other, as SQLite's transactions do anyway.
   */
  private async refuseMany(workspaceId: string, transaction: Kysely<BatchTables>): Promise<void> {
    if (this.kind === "postgres")
      await sql`select pg_advisory_xact_lock(${sql.lit(lockClass)}, hashtext(${workspaceId}))`.execute(
        transaction,
      );
    const { open } = await transaction
      .selectFrom("batches")
      .select(sql<number | string>`count(*)`.as("open"))
      .where("workspace_id", "=", workspaceId)
      .where("status", "in", [...openStatuses])
      .executeTakeFirstOrThrow();
    if (Number(open) < openMax) return;
    throw new GatewayError(
      "rate_limit_exceeded",
      `This workspace has ${openMax} batches that have not ended. Wait for one, or cancel it.`,
      { retryAfterSeconds: 60, metadata: { limit_batches: openMax } },
    );
  }

  /**
   * Takes or renews the work on a batch as a whole: its validation, or writing its results. Returns
   * false where another gateway has it.
   */
  async lease(id: string): Promise<boolean> {
    const now = this.leaseTime();
    const { numUpdatedRows } = await this.database
      .updateTable("batches")
      .set({ leased_by: this.nodeId, leased_until_ms: sql<number>`${now} + ${leaseMs}` })
      .where("id", "=", id)
      .where((is) =>
        is.or([
          is("leased_by", "is", null),
          is("leased_by", "=", this.nodeId),
          is("leased_until_ms", "<", now),
        ]),
      )
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Releases the work on a batch. */
  async release(id: string): Promise<void> {
    await this.database
      .updateTable("batches")
      .set({ leased_by: null, leased_until_ms: 0 })
      .where("id", "=", id)
      .where("leased_by", "=", this.nodeId)
      .execute();
  }

  /** Releases everything that an earlier process on this database had leased. */
  async releaseAll(): Promise<void> {
    await this.database
      .updateTable("batches")
      .set({ leased_by: null, leased_until_ms: 0 })
      .where("leased_by", "is not", null)
      .execute();
  }

  /** Changes a batch from one of these statuses. Returns false where it has another one by now. */
  async change(
    id: string,
    from: readonly BatchStatus[],
    change: Partial<{
      status: BatchStatus;
      inProgressAtMs: number;
      finalizingAtMs: number;
      endedAtMs: number;
      cancellingAtMs: number;
      total: number;
      problems: readonly InputProblem[];
      usage: AnswerTokens;
      failures: Record<string, number>;
    }>,
  ): Promise<boolean> {
    const { problems, usage, failures, status, total } = change;
    const { numUpdatedRows } = await this.database
      .updateTable("batches")
      .set({
        ...(status !== undefined && { status }),
        ...(total !== undefined && { total }),
        ...(change.inProgressAtMs !== undefined && { in_progress_at_ms: change.inProgressAtMs }),
        ...(change.finalizingAtMs !== undefined && { finalizing_at_ms: change.finalizingAtMs }),
        ...(change.endedAtMs !== undefined && { ended_at_ms: change.endedAtMs }),
        ...(change.cancellingAtMs !== undefined && { cancelling_at_ms: change.cancellingAtMs }),
        ...(problems !== undefined && { problems: JSON.stringify(problems) }),
        ...(failures !== undefined && { failures: JSON.stringify(failures) }),
        ...(usage !== undefined && { usage: JSON.stringify(usage) }),
      })
      .where("id", "=", id)
      .where("status", "in", [...from])
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Notes why no line of a batch runs until a time; null notes that lines run again. */
  async pause(id: string, note: string | null, untilMs: number): Promise<void> {
    await this.database
      .updateTable("batches")
      .set({ pause_note: note, paused_until_ms: untilMs })
      .where("id", "=", id)
      .execute();
  }

  /**
   * Deletes a batch that has ended, with lines and results that a killed gateway has left. Returns
   * false where there is none.
   */
  async delete(id: string): Promise<boolean> {
    return this.database.transaction().execute(async (transaction) => {
      const { numDeletedRows } = await transaction
        .deleteFrom("batches")
        .where("id", "=", id)
        .where("status", "not in", [...openStatuses])
        .executeTakeFirstOrThrow();
      if (numDeletedRows === 0n) return false;
      for (const table of ["batch_results", "batch_lines"] as const)
        await transaction.deleteFrom(table).where("batch_id", "=", id).execute();
      return true;
    });
  }

  /** Counts lines that have results. Part of the transaction that marks them. */
  static async count(
    transaction: Kysely<BatchTables>,
    { id, completed, failed, costNano }: Pick<Batch, "id" | "completed" | "failed" | "costNano">,
  ): Promise<void> {
    await transaction
      .updateTable("batches")
      .set({
        completed: sql<number>`completed + ${completed}`,
        failed: sql<number>`failed + ${failed}`,
        cost_nano: sql<number>`cost_nano + ${costNano}`,
      })
      .where("id", "=", id)
      .execute();
  }
}

const columns = recordColumns<Omit<Batch, "outputExpiresSeconds">>({
  id: "plain",
  workspaceId: "plain",
  keyId: "plain",
  form: "plain",
  endpoint: "plain",
  completionWindow: "plain",
  status: "plain",
  createdAtMs: "plain",
  expiresAtMs: "plain",
  inProgressAtMs: "plain",
  finalizingAtMs: "plain",
  endedAtMs: "plain",
  cancellingAtMs: "plain",
  inputFileId: "plain",
  outputFileId: "plain",
  errorFileId: "plain",
  total: "plain",
  completed: "plain",
  failed: "plain",
  costNano: "plain",
  problems: "json",
  metadata: "json",
  failures: "json",
  usage: "json",
  pauseNote: "plain",
  pausedUntilMs: "plain",
  sealedKey: "plain",
});

const batchOf = (row: BatchTables["batches"]): Batch => ({
  ...columns.fromRow(row),
  outputExpiresSeconds: row.output_expires_s,
});
