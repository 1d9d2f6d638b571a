import type { Kysely } from "kysely";
import type { Files } from "../files/open-files.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { BatchTables } from "./batch.ts";
import { BatchRunner, type BatchRunnerParts } from "./batch-runner.ts";
import { BatchStore, type NewBatch } from "./batch-store.ts";
import { LineStore } from "./line-store.ts";
import { type BatchVault, newResultKey } from "./result-seal.ts";

/** The batches of workspaces, ready to start. */
export interface Batches {
  store: BatchStore;
  runner: BatchRunner;
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
  const { store: fileStore, objects } = files;
  const runner = new BatchRunner({ ...parts, batches: store, lines, files: fileStore, objects });
  return {
    store,
    runner,
    async create(asked) {
      const batch = await store.create(asked, newResultKey(parts.vault, asked.workspaceId));
      runner.wake();
      return batch;
    },
  };
}
