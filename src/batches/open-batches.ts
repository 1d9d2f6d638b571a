import type { Kysely } from "kysely";
import type { Files } from "../files/open-files.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { Batch, BatchTables } from "./batch.ts";
import { BatchRunner, type BatchRunnerParts } from "./batch-runner.ts";
import { ProviderBatchStore } from "./provider-batch-store.ts";
import { BatchStore, type NewBatch } from "./batch-store.ts";
import { LineStore } from "./line-store.ts";
import { type BatchVault, newResultKey } from "./result-seal.ts";

/** Where the lines of a batch run. */
export interface BatchFacts {
  /** The slug of the provider whose own batch runs them, or ran them; null where they run here. */
  provider: string | null;
  /** Why they run here, where a provider's batch was considered. */
  note: string | null;
  /** What is reserved for the lines that a provider runs, in nano-USD. */
  reservedNano: bigint;
}

/** The batches of workspaces, ready to start. */
export interface Batches {
  store: BatchStore;
  runner: BatchRunner;
  /** Returns where the lines of some batches run, and what is reserved for them. */
  factsOf(batches: readonly Batch[]): Promise<ReadonlyMap<string, BatchFacts>>;
  /** Stores a batch, whose input has to be held, and has it validated. */
  create(asked: NewBatch): Promise<Awaited<ReturnType<BatchStore["create"]>>>;
}

/** Opens the batches of workspaces. Nothing is started. */
export function openBatches({
  database,
  commits,
  nodeId,
  files,
  ...parts
}: Omit<BatchRunnerParts, "batches" | "lines" | "files" | "objects"> & {
  database: Kysely<BatchTables>;
  commits: CommitQueue;
  nodeId: string;
  files: Files;
  vault: BatchVault;
  clock: Clock;
}): Batches {
  const store = new BatchStore({ database, clock: parts.clock, nodeId });
  const lines = new LineStore({ database, commits, clock: parts.clock, nodeId });
  const providerBatches = new ProviderBatchStore(database);
  const { store: fileStore, objects } = files;
  const runner = new BatchRunner({ ...parts, batches: store, lines, files: fileStore, objects });
  return {
    store,
    runner,
    async factsOf(some) {
      const places = await providerBatches.some(some.map(({ id }) => id));
      const away = [...places.values()].filter(({ state }) => state !== "here");
      const reserved = await lines.reserved(away.map(({ batchId }) => batchId));
      return new Map(
        [...places.values()].map(({ batchId, provider, reason }) => [
          batchId,
          { provider, note: reason, reservedNano: reserved.get(batchId) ?? 0n },
        ]),
      );
    },
    async create(asked) {
      const batch = await store.create(asked, newResultKey(parts.vault, asked.workspaceId));
      runner.wake();
      return batch;
    },
  };
}
