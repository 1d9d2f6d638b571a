import type { Kysely } from "kysely";
import { dayMs, hourMs, type Clock } from "../platform/kernel/clock.ts";
import type { FileStore, FileTables } from "./file-store.ts";
import type { ObjectStore } from "./object-store.ts";
import type { UploadStore } from "./upload-store.ts";

/** Milliseconds between sweeps of what has expired. */
const expiryEveryMs = 60_000;

/** Names that are looked up at once. */
const namesMax = 500;

/** Expired files that are deleted in one turn. */
const filesMax = 500;

/** The copies of files at providers. Neither rejects. */
export interface SweptCopies {
  /** Deletes those that are not needed any more. */
  sweep(): Promise<void>;
  /** Resolves when a sweep in progress has ended. */
  stop(): Promise<void>;
}

/** The dependencies of sweeping. */
interface FileSweepOptions {
  database: Kysely<FileTables>;
  files: FileStore;
  uploads: UploadStore;
  objects: ObjectStore;
  clock: Clock;
  /**
   * Returns whether this gateway, among several on the database, runs the jobs that run once;
   * absent where there is one.
   */
  isLeader: (() => boolean) | undefined;
  copies?: SweptCopies | undefined;
  onSwept(): void;
  onError(error: unknown): void;
}

/** Deletes files and uploads that have expired, and objects that no row names. */
export class FileSweep {
  private timer: ReturnType<typeof setInterval> | undefined;
  private running: Promise<void> | undefined;
  private orphansAtMs = 0;
  private stopping = false;

  constructor(private readonly options: FileSweepOptions) {}

  /** Sweeps now, and then periodically. */
  start(): void {
    this.begin();
    this.timer = setInterval(() => this.begin(), expiryEveryMs);
  }

  /** Stops, once the next step of a sweep in progress has ended: a bucket may hold millions. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping = true;
    await this.running;
    await this.options.copies?.stop();
  }

  /** Sweeps once: what has expired, and each hour what no row names. */
  async sweep(): Promise<void> {
    const { files, uploads, clock } = this.options;
    while (!this.stopping && (await files.deleteExpired(filesMax)) === filesMax);
    while (!this.stopping && (await files.purgeDeleted(filesMax)) === filesMax);
    await uploads.sweep();
    if (clock.nowMs() - this.orphansAtMs < hourMs) return;
    this.orphansAtMs = clock.nowMs();
    await this.sweepOrphans();
  }

  /**
   * Deletes objects without a row: their process ended before it could write one. Where other
   * gateways may be writing, only objects that are a day old.
   */
  async sweepOrphans(): Promise<void> {
    const { objects, clock, isLeader } = this.options;
    const writtenMaxMs = isLeader === undefined ? Number.POSITIVE_INFINITY : clock.nowMs() - dayMs;
    let names: string[] = [];
    for await (const { name, writtenAtMs } of objects.list()) {
      if (this.stopping) return;
      if (writtenAtMs > writtenMaxMs || objects.unclaimed.has(name)) continue;
      names.push(name);
      if (names.length < namesMax) continue;
      await this.removeUnnamed(names);
      names = [];
    }
    if (names.length > 0) await this.removeUnnamed(names);
  }

  private begin(): void {
    const { isLeader, copies, onSwept, onError } = this.options;
    if (isLeader?.() === false) return;
    // Not awaited: a provider that does not answer holds up nothing else.
    void copies?.sweep();
    this.running ??= this.sweep()
      .then(onSwept, onError)
      .finally(() => (this.running = undefined));
  }

  private async removeUnnamed(names: readonly string[]): Promise<void> {
    const { database, objects } = this.options;
    const named = new Set<string>();
    for (const table of ["files", "upload_parts"] as const) {
      const rows = await database
        .selectFrom(table)
        .select("object")
        .where("object", "in", [...names])
        .execute();
      for (const { object } of rows) named.add(object);
    }
    // An object that was claimed meanwhile is in the rows, since these were read later.
    for (const name of names) if (!named.has(name)) await objects.remove(name);
  }
}
