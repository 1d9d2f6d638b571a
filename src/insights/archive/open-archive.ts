import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { StorageKind } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { RecordArchive } from "../retention.ts";
import type { UsageTables } from "../usage/usage-rollup.ts";
import { ArchiveClient } from "./archive-client.ts";
import { ArchiveReads } from "./archive-reads.ts";
import type { ContentVault } from "./content-seal.ts";
import { ArchivedContents } from "./archived-contents.ts";
import { Contents } from "./contents.ts";
import { ArchivedUsage } from "./stores/archived-usage.ts";
import { ArchivedFigures } from "./stores/archived-figures.ts";
import { ArchivedSearch } from "./stores/archived-search.ts";
import { ArchivedGenerations } from "./stores/archived-generations.ts";
import { type ArchiveFigures, Archiver } from "./archiver.ts";
import { type ArchivingTables, Outbox } from "./outbox.ts";

/** The operator's settings for the archive. */
export interface ArchiveSettings {
  /** `clickhouse+http(s)://user:password@host:port/database`. */
  url: string;
  /** Whether the archive also answers for records that the row store still has. */
  reads: "older" | "always";
  /** Days for which the archive keeps records; undefined means permanently. */
  keepDays: number | undefined;
  /** Days for which the archive keeps prompts and answers. */
  contentDays: number;
}

/** The parts of the gateway that the archive needs. */
export interface ArchivePorts {
  /** Days for which the row store keeps records. */
  generationDays: number;
  /** Returns the workspaces that were closed permanently. */
  closedWorkspaces(): Promise<readonly string[]>;
  /**
   * Returns whether this gateway, among several on the database, archives; undefined where there is
   * one.
   */
  isLeader: (() => boolean) | undefined;
  /**
   * Returns the workspaces that keep prompts and answers, each with the wall time since which it
   * does.
   */
  contentsSince(): Promise<ReadonlyMap<string, number>>;
  /** Encrypts prompts and answers. */
  contentVault: ContentVault;
  /** Characters of prompts and answers that may wait in the database. */
  contentBudgetCharacters: number;
  onDropped(records: number): void;
  onContentsDropped(contents: number): void;
  onError(error: unknown): void;
}

/** The archive of generation records. */
export interface Archive extends RecordArchive {
  /**
   * The stores of records and usage, which read from the archive what the database no longer has.
   */
  readonly stores: {
    usage: ArchivedUsage;
    search: ArchivedSearch;
    figures: ArchivedFigures;
    generations: ArchivedGenerations;
  };
  /** Prompts and answers of workspaces that keep them. */
  readonly contents: Contents;
  readonly client: ArchiveClient;
  readonly outbox: Outbox;
  readonly archiver: Archiver;
  /** The figures of the archive. */
  readonly figures: Readonly<ArchiveFigures>;
  /** Returns whether it answers now, within two seconds. */
  isUp(): Promise<boolean>;
  start(): void;
  stop(): Promise<void>;
}

/** Options of an archive. */
interface ArchiveOptions {
  settings: ArchiveSettings;
  database: Kysely<ArchivingTables & UsageTables>;
  /** The database that answers lists and sums, which may lag behind. */
  reads: Kysely<ArchivingTables & UsageTables>;
  commits: CommitQueue;
  kind: StorageKind;
  clock: Clock;
  /** Certificates in PEM that are trusted beside the platform's own list. */
  certificates: readonly string[];
  ports: ArchivePorts;
}

/** Builds the store of prompts and answers. */
const contentsOf = (
  { settings, database, commits, clock, ports }: ArchiveOptions,
  client: ArchiveClient,
): Contents =>
  new Contents({
    database: withTables(database),
    commits,
    archived: new ArchivedContents({ client, clock, keepDays: settings.contentDays }),
    clock,
    vault: ports.contentVault,
    keepDays: settings.contentDays,
    budgetCharacters: ports.contentBudgetCharacters,
    keptSince: ports.contentsSince,
    onDropped: ports.onContentsDropped,
    onError: ports.onError,
  });

/** Opens the archive, without waiting for it to answer. */
export function openArchive(options: ArchiveOptions): Archive {
  const { settings, clock, certificates } = options;
  const client = new ArchiveClient({ url: settings.url, certificates });
  const { address, database } = client.target;
  const outbox = new Outbox({
    database: withTables(options.database),
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
    commits: options.commits,
    kind: options.kind,
    border,
  };
  return {
    stores: {
      usage: new ArchivedUsage({ ...parts, database: withTables(options.reads) }),
      search: new ArchivedSearch({ ...parts, database: withTables(options.reads) }),
      figures: new ArchivedFigures({ ...parts, database: withTables(options.reads) }),
      generations: new ArchivedGenerations({ ...parts, database: withTables(options.database) }),
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
      await Promise.all([contents.stop(), archiver.stop()]);
      await client.close();
    },
  };
}
