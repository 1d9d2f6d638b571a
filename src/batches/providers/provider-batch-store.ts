import type { Kysely } from "kysely";
import type { ProviderJob } from "../../inference/pipeline/batches/provider-batches.ts";
import type { BatchTables } from "../batch.ts";

/** Lines of a batch that one batch of a provider runs. */
export interface ProviderPart {
  /** A text by which the provider's batch is found again. */
  marker: string;
  /** The id of the workspace's own provider key; null for the platform's credential. */
  account: string | null;
  state: "waiting" | "submitting" | "running" | "cancelling" | "ended";
  /** The endpoint of the lines, and the wire name of their model; null where they have several. */
  path: string;
  upstreamModel: string | null;
  /** The first and the last of the lines; those in between with another model are of other parts. */
  firstLine: number;
  lastLine: number;
  requests: number;
  /** Headers of the requests that are sent with the batch. */
  headers: Readonly<Record<string, string>>;
  /** The held file with the requests as the provider is sent them; null once it is released. */
  inputFileId: string | null;
  /** The provider's batch; null until it was taken. */
  job: ProviderJob | null;
  submittedAtMs: number;
  /** Whether the provider has answered any of the lines. */
  hasAnswered: boolean;
}

/** The place where a batch's lines run. */
export interface BatchPlace {
  batchId: string;
  /** `here`, or at a provider, in its batches. */
  state: "here" | "away";
  /** Why lines run here; null where a provider runs all of them. */
  reason: string | null;
  /** The slug of the provider that runs lines, or ran some of them. */
  provider: string | null;
  /** The provider's batches; none where the lines run here. */
  parts: readonly ProviderPart[];
  /** The key to charge, as it was when the batch was handed over. */
  key: string | null;
  nextPollMs: number;
  tries: number;
}

/** Stores where the lines of batches run. */
export class ProviderBatchStore {
  constructor(private readonly database: Kysely<BatchTables>) {}

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

  /** Returns the ids of a provider's batches that belong to batches here. */
  async jobsAt(provider: string): Promise<ReadonlySet<string>> {
    const rows = await this.database
      .selectFrom("provider_batches")
      .selectAll()
      .where("provider", "=", provider)
      .where("state", "=", "away")
      .execute();
    return new Set(rows.flatMap((row) => placeOf(row).parts.flatMap(({ job }) => job?.id ?? [])));
  }

  /** Stores where the lines of a batch run, in place of what was known. */
  async put(place: BatchPlace): Promise<void> {
    const row = {
      batch_id: place.batchId,
      state: place.state,
      reason: place.reason,
      provider: place.provider,
      parts: JSON.stringify(place.parts),
      key: place.key,
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
  state: row.state as BatchPlace["state"],
  reason: row.reason,
  provider: row.provider,
  parts: partsIn(row.parts ?? "[]"),
  key: row.key,
  nextPollMs: row.next_poll_ms,
  tries: row.tries,
});

/** Reads parts; those of earlier releases are the platform's. */
const partsIn = (text: string): ProviderPart[] =>
  (JSON.parse(text) as ProviderPart[]).map((part) => ({ ...part, account: part.account ?? null }));

/** Returns the account of a batch at a provider: all of its parts have the same. */
export const accountOf = ({ parts }: Pick<BatchPlace, "parts">): string | null =>
  parts[0]?.account ?? null;
