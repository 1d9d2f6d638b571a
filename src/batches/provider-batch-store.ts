import type { Kysely } from "kysely";
import type { ProviderJob } from "../inference/pipeline/batches/provider-batches.ts";
import type { BatchTables } from "./batch.ts";

/**
 * Where the lines of a batch run: `here`, or in a batch of a provider, which is being submitted,
 * runs, or was asked to end.
 */
type PlaceState = "here" | "submitting" | "running" | "cancelling";

/** The place where a batch's lines run. */
export interface BatchPlace {
  batchId: string;
  state: PlaceState;
  /** Why the lines run here; null where a provider runs them. */
  reason: string | null;
  /** The slug of the provider that runs the lines, or ran some of them. */
  provider: string | null;
  /** The provider's batch; null until it was taken. */
  job: ProviderJob | null;
  /** The held file with the requests as the provider was sent them. */
  inputFileId: string | null;
  /** The key to charge, as it was when the batch was handed over. */
  key: string | null;
  submittedAtMs: number;
  nextPollMs: number;
  tries: number;
}

/** Stores where the lines of batches run. */
export class ProviderBatchStore {
  private readonly database: Kysely<BatchTables>;

  constructor(database: Kysely<BatchTables>) {
    this.database = database;
  }

  /** Returns where a batch's lines run; undefined while that is not decided. */
  async find(batchId: string): Promise<BatchPlace | undefined> {
    return (await this.some([batchId])).get(batchId);
  }

  /** Returns where the lines of some batches run. */
  async some(batchIds: readonly string[]): Promise<ReadonlyMap<string, BatchPlace>> {
    if (batchIds.length === 0) return new Map();
    const rows = await this.database
      .selectFrom("provider_batches")
      .selectAll()
      .where("batch_id", "in", [...batchIds])
      .execute();
    return new Map(rows.map((row) => [row.batch_id, placeOf(row)]));
  }

  /** Stores where the lines of a batch run, in place of what was known. */
  async put({ job, ...place }: BatchPlace): Promise<void> {
    const row = {
      batch_id: place.batchId,
      state: place.state,
      reason: place.reason,
      provider: place.provider,
      upstream_id: job?.id ?? null,
      upstream_file: job?.file ?? null,
      input_file_id: place.inputFileId,
      key: place.key,
      submitted_at_ms: place.submittedAtMs,
      next_poll_ms: place.nextPollMs,
      tries: place.tries,
    };
    await this.database
      .insertInto("provider_batches")
      .values(row)
      .onConflict((conflict) => conflict.column("batch_id").doUpdateSet(row))
      .execute();
  }
}

const placeOf = (row: BatchTables["provider_batches"]): BatchPlace => ({
  batchId: row.batch_id,
  state: row.state as PlaceState,
  reason: row.reason,
  provider: row.provider,
  job: row.upstream_id === null ? null : { id: row.upstream_id, file: row.upstream_file },
  inputFileId: row.input_file_id,
  key: row.key,
  submittedAtMs: row.submitted_at_ms ?? 0,
  nextPollMs: row.next_poll_ms,
  tries: row.tries,
});
