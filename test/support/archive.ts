import {
  type Archive,
  type ArchiveSettings,
  openArchive,
} from "../../src/insights/archive/open-archive.ts";
import { archivingCommits } from "../../src/insights/archive/outbox-add.ts";
import type { GenerationRecord } from "../../src/insights/generation-record.ts";
import { type Clock, systemClock } from "../../src/platform/kernel/clock.ts";
import { createMasterKeys, KeyVault } from "../../src/platform/vault/key-vault.ts";
import type { DataKeyStore, WrappedDataKey } from "../../src/platform/vault/data-key-store.ts";
import type { Storage } from "../../src/platform/storage/storage.ts";
import { withTables } from "../../src/platform/storage/with-tables.ts";
import { createMetrics } from "../../src/platform/telemetry/metrics.ts";
import { type InsightTables, openInsightStorage, settledUnit } from "./generation-records.ts";

/** A database whose records are archived. */
export interface ArchivedStorage {
  storage: Storage<InsightTables>;
  archive: Archive;
  /** Commits records as settlements do. */
  settle(...records: readonly GenerationRecord[]): Promise<void>;
  close(): Promise<void>;
}

/** Returns what a gateway exposes of its archive. */
export function archiveScrape({ archive }: ArchivedStorage): Promise<string> {
  const metrics = createMetrics();
  metrics.watchArchive(() => ({ ...archive.figures, contents: archive.contents.figures }));
  return metrics.text();
}

/** A vault whose data keys are in memory. */
export function openTestVault(): Promise<KeyVault> {
  const rows: WrappedDataKey[] = [];
  const store: Pick<DataKeyStore, "loadAll" | "find" | "insert"> = {
    loadAll: () => Promise.resolve(rows),
    find: (workspaceId) => Promise.resolve(rows.find((row) => row.workspaceId === workspaceId)),
    insert: (row) => Promise.resolve(void rows.push(row)),
  };
  return KeyVault.open({
    store: store as DataKeyStore,
    masterKeys: createMasterKeys({ current: new Uint8Array(32).fill(7), previous: [] }),
    clock: systemClock,
  });
}

/** Opens a database and its archive, as gateways do; nothing is archived by itself. */
export async function openArchived(options: {
  url: string;
  archiveUrl: string;
  reads?: ArchiveSettings["reads"];
  keepDays?: number;
  severalGateways?: boolean;
  closedWorkspaces?: readonly string[];
  contentsSince?: ReadonlyMap<string, number>;
  contentBudgetCharacters?: number;
  onContentsDropped?(contents: number): void;
  clock?: Clock;
}): Promise<ArchivedStorage> {
  const { url, severalGateways = false, clock = systemClock } = options;
  const storage = await openInsightStorage(url, { severalGateways });
  const commits = archivingCommits(storage.commits);
  const archive = openArchive({
    settings: {
      url: options.archiveUrl,
      reads: options.reads ?? "older",
      keepDays: options.keepDays,
      contentDays: 7,
    },
    database: withTables(storage.database),
    reads: withTables(storage.database),
    commits,
    kind: storage.kind,
    clock,
    certificates: [],
    ports: {
      generationDays: 90,
      closedWorkspaces: () => Promise.resolve(options.closedWorkspaces ?? []),
      isLeader: undefined,
      contentsSince: () => Promise.resolve(options.contentsSince ?? new Map()),
      contentVault: await openTestVault(),
      contentBudgetCharacters: options.contentBudgetCharacters ?? 1e9,
      onDropped: () => undefined,
      onContentsDropped: (contents) => options.onContentsDropped?.(contents),
      onError: () => undefined,
    },
  });
  return {
    storage,
    archive,
    settle: async (...records) =>
      void (await Promise.all(records.map((record) => commits.commit(settledUnit(record))))),
    async close() {
      await archive.stop();
      await storage.close();
    },
  };
}
