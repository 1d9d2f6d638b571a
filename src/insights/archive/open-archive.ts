import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { StorageKind } from "../../platform/storage/storage.ts";
import type { RecordArchive } from "../retention.ts";
import type { UsageTables } from "../usage-rollup.ts";
import { ArchiveClient } from "./archive-client.ts";
import { ArchiveReads } from "./archive-reads.ts";
import { Contents } from "./contents.ts";
import {
  ArchivedFigures,
  ArchivedGenerations,
  ArchivedSearch,
  ArchivedUsage,
} from "./archived-stores.ts";
import { type ArchiveFigures, Archiver } from "./archiver.ts";
import { type ArchivingTables, Outbox } from "./outbox.ts";

/** What the operator settled about the archive. */
export interface ArchiveSettings {
  /** `clickhouse+http(s)://user:password@host:port/database`. */
  url: string;
  /** Whether the archive answers for records that the row store has as well. */
  reads: "older" | "always";
  /** How long the archive keeps records, in days; undefined means for good. */
  keepDays: number | undefined;
  /** How long the archive keeps prompts and answers that workspaces ask to be kept, in days. */
  contentDays: number;
}

/** What the archive needs of the rest of the gateway. */
export interface ArchivePorts {
  /** How long the row store keeps records, in days. */
  generationDays: number;
  /** Workspaces that were closed for good. */
  closedWorkspaces(): Promise<readonly string[]>;
  /** Where several gateways share the database, whether this one archives. */
  isLeader: (() => boolean) | undefined;
  /** Workspaces that ask for prompts and answers to be kept, each with the wall time since when. */
  contentsSince(): Promise<ReadonlyMap<string, number>>;
  /** Characters of prompts and answers that may wait in the database. */
  contentBudgetCharacters: number;
  onDropped(records: number): void;
  onContentsDropped(contents: number): void;
  onError(error: unknown): void;
}

/** The archive of generation records. */
export interface Archive extends RecordArchive {
  /** The stores of records and usage, which read from the archive what the database has not. */
  readonly stores: {
    usage: ArchivedUsage;
    search: ArchivedSearch;
    figures: ArchivedFigures;
    generations: ArchivedGenerations;
  };
  /** Prompts and answers of workspaces that ask for it. */
  readonly contents: Contents;
  readonly client: ArchiveClient;
  readonly outbox: Outbox;
  readonly archiver: Archiver;
  /** The archive in numbers. */
  readonly figures: Readonly<ArchiveFigures>;
  /** Whether it answers now, within two seconds. */
  isUp(): Promise<boolean>;
  start(): void;
  stop(): Promise<void>;
}

/** What an archive is opened with. */
interface ArchiveOptions {
  settings: ArchiveSettings;
  database: Kysely<ArchivingTables & UsageTables>;
  /** Where lists and sums are read, which may be late. */
  reads: Kysely<ArchivingTables & UsageTables>;
  commits: CommitQueue;
  kind: StorageKind;
  clock: Clock;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  certificates: readonly string[];
  ports: ArchivePorts;
}

/** Prompts and answers on their way to the archive. */
const contentsOf = (
  { settings, database, commits, clock, ports }: ArchiveOptions,
  client: ArchiveClient,
): Contents =>
  new Contents({
    database: database.withTables(),
    commits,
    client,
    clock,
    keepDays: settings.contentDays,
    budgetCharacters: ports.contentBudgetCharacters,
    keptSince: ports.contentsSince,
    onDropped: ports.onContentsDropped,
    onError: ports.onError,
  });

/** Opens the archive; that it answers is not waited for. */
export function openArchive(options: ArchiveOptions): Archive {
  const { settings, clock, certificates } = options;
  const client = new ArchiveClient({ url: settings.url, certificates });
  const { address, database } = client.target;
  const outbox = new Outbox({
    database: options.database,
    clock,
    archive: `${address}/${database}`,
  });
  const contents = contentsOf(options, client);
  const archiver = new Archiver({
    ...options.ports,
    contents,
    clock,
    outbox,
    client,
    keepDays: settings.keepDays,
    keepClosedDays: options.ports.generationDays,
  });
  const border = {
    reads: new ArchiveReads(client),
    outbox,
    clock,
    always: settings.reads === "always",
  };
  const parts = {
    database: options.reads.withTables(),
    commits: options.commits,
    kind: options.kind,
    border,
  };
  return {
    stores: {
      usage: new ArchivedUsage(parts),
      search: new ArchivedSearch(parts),
      figures: new ArchivedFigures(parts),
      generations: new ArchivedGenerations({ ...parts, database: options.database.withTables() }),
    },
    contents,
    client,
    outbox,
    archiver,
    figures: archiver.figures,
    async isUp() {
      return (archiver.figures.isUp = await client.isUp());
    },
    oldestWaitingMs: () => outbox.oldestMs(),
    deleting: (beforeMs) => outbox.setRecordsFrom(beforeMs),
    async deleted(beforeMs) {
      archiver.drop(await outbox.giveUpBefore(beforeMs));
    },
    start: () => archiver.start(),
    async stop() {
      contents.stop();
      await archiver.stop();
      await client.close();
    },
  };
}
