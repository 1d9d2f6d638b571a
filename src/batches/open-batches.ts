import type { Kysely } from "kysely";
import type { Files } from "../files/open-files.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import type { CommitQueue } from "../platform/storage/commit-queue.ts";
import type { StorageKind } from "../platform/storage/storage.ts";
import { openStatuses, type Batch, type BatchTables } from "./batch.ts";
import { BatchClock } from "./batch-clock.ts";
import type { BatchRunnerParts } from "./batch-parts.ts";
import { BatchRunner } from "./batch-runner.ts";
import { type BatchRecipients, BatchWatchers, type WatcherParts } from "./batch-watchers.ts";
import { ProviderBatchStore } from "./providers/provider-batch-store.ts";
import { BatchStore, type NewBatch } from "./batch-store.ts";
import { leaseTimeOf } from "./lease-time.ts";
import { LeftOvers } from "./left-overs.ts";
import { LineStore } from "./line-store.ts";
import { type BatchVault, newResultKey } from "./result-seal.ts";

/** Where the lines of a batch run. */
export interface BatchFacts {
  /** The slug of the provider whose own batch runs them, or ran them; null where they run here. */
  provider: string | null;
  /** Why they run here, where a provider's batch was considered. */
  note: string | null;
  /** The failures so far, by HTTP status; absent for a batch that has ended. */
  failures?: Record<string, number>;
  /** What is reserved for the lines that a provider runs, in nano-USD. */
  reservedNano: bigint;
}

/** The batches of workspaces, ready to start. */
export interface Batches {
  store: BatchStore;
  runner: BatchRunner;
  /** Returns where the lines of some batches run, and what is reserved for them. */
  factsOf(batches: readonly Batch[]): Promise<ReadonlyMap<string, BatchFacts>>;
  watchers: BatchWatchers;
  /** Stores a batch, whose input has to be held, and has it validated. */
  create(
    asked: NewBatch,
    recipients: BatchRecipients,
  ): Promise<{ batch: Batch; webhookSecret: string | null }>;
}

/** Opens the batches of workspaces. Nothing is started. */
export function openBatches({
  database,
  commits,
  kind,
  nodeId,
  files,
  notices,
  ...parts
}: Omit<
  BatchRunnerParts,
  "batches" | "lines" | "files" | "objects" | "beforeLook" | "afterLook"
> & {
  notices: Omit<WatcherParts, "database" | "batches" | "clock">;
  database: Kysely<BatchTables>;
  commits: CommitQueue;
  kind: StorageKind;
  nodeId: string;
  files: Files;
  vault: BatchVault;
  clock: Clock;
}): Batches {
  const leaseTime = leaseTimeOf(parts.clock, parts);
  const clock = new BatchClock(parts.clock, database, leaseTime);
  const place = { database, clock, nodeId, leaseTime };
  const store = new BatchStore({ ...place, kind });
  const lines = new LineStore({ ...place, commits });
  const providerBatches = new ProviderBatchStore(database);
  const { store: fileStore, objects } = files;
  const watchers = new BatchWatchers({ ...notices, database, batches: store, clock });
  const leftOvers = new LeftOvers({ database, lines, clock });
  const runner = new BatchRunner({
    ...parts,
    clock,
    batches: store,
    lines,
    files: fileStore,
    objects,
    beforeLook: () => (parts.isShared ? clock.read() : Promise.resolve()),
    async afterLook() {
      await watchers.sendNotices();
      await leftOvers.sweep();
    },
  });
  return {
    store,
    runner,
    factsOf: (some) =>
      factsOf({ lines, providerBatches, usesProviders: parts.provider !== undefined }, some),
    watchers,
    async create(asked, recipients) {
      let webhookSecret: string | null = null;
      const seal = newResultKey(parts.vault, asked.workspaceId);
      const batch = await store.create(asked, seal, async (transaction, made) => {
        webhookSecret = await watchers.watch(made, recipients, transaction);
      });
      runner.wake();
      return { batch, webhookSecret };
    },
  };
}

/** Returns where the lines of some batches run, and what is reserved for them. */
async function factsOf(
  {
    lines,
    providerBatches,
    usesProviders,
  }: { lines: LineStore; providerBatches: ProviderBatchStore; usesProviders: boolean },
  some: readonly Batch[],
): Promise<ReadonlyMap<string, BatchFacts>> {
  const known = await providerBatches.some(some.map(({ id }) => id));
  // Where batches of providers are turned off, lines that were handed over run here.
  const places = new Map([...known].filter(([, { state }]) => usesProviders || state !== "away"));
  const away = [...places.values()].filter(({ state }) => state !== "here");
  const reserved = await lines.reserved(away.map(({ batchId }) => batchId));
  const facts = new Map<string, BatchFacts>();
  for (const { id, status } of some) {
    const { provider = null, reason: note = null } = places.get(id) ?? {};
    const isOpen = openStatuses.some((open) => open === status);
    facts.set(id, {
      provider,
      note,
      reservedNano: reserved.get(id) ?? 0n,
      ...(isOpen && { failures: await lines.failures(id) }),
    });
  }
  return facts;
}
