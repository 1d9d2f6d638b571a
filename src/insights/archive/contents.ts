import type { Kysely } from "kysely";
import { type Clock, dayMs, minuteMs } from "../../platform/kernel/clock.ts";
import { timeOrderedHex } from "../../platform/kernel/ids.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { ArchivedContents } from "./archived-contents.ts";
import {
  type Content,
  contentOf,
  type ContentQuery,
  contentRow,
  type ContentTables,
} from "./content-insert.ts";
import { type ContentVault, openContent, sealContent } from "./content-seal.ts";

/** Contents of one insert, and their characters; a longer content is inserted alone. */
const batchContents = 32;
const batchCharacters = 16 * 1024 * 1024;
/** The most characters of contents that wait in memory for their commit. */
const pendingCharactersMax = 64 * 1024 * 1024;
/** Milliseconds between searches for contents that no workspace keeps any more. */
const upkeepEveryMs = minuteMs;
/** Contents that one statement drops. */
const dropStepRows = 1_000;

/** Options of keeping prompts and answers. */
interface ContentsOptions {
  database: Kysely<ContentTables>;
  commits: CommitQueue;
  /** Where they go from the database; undefined keeps them there. */
  archived: ArchivedContents | undefined;
  /** Encrypts them before anything is written. */
  vault: ContentVault;
  clock: Clock;
  /** Days for which they are kept. */
  keepDays: number;
  /** The most characters that the database holds. */
  budgetCharacters: number;
  /** Returns the workspaces that keep contents, each with the wall time since which it does. */
  keptSince(): Promise<ReadonlyMap<string, number>>;
  /** Called with the number of contents that were dropped early. */
  onDropped(contents: number): void;
  onError(error: unknown): void;
}

/** A content with files, which is read when its turn comes. */
export interface LateContent {
  /** The characters of it that are in memory until then. */
  characters: number;
  read(): Promise<Content>;
}

/** Contents in numbers, for metrics. */
interface ContentFigures {
  /** Those that are in the database. */
  waiting: number;
  /** Those that this gateway has archived, and those that were lost or given up before. */
  archived: number;
  dropped: number;
}

/**
 * Prompts and answers of workspaces that keep them, for some days. They stay in the database, or
 * pass through it into the archive where there is one.
 */
export class Contents {
  readonly figures: ContentFigures = { waiting: 0, archived: 0, dropped: 0 };
  /** Contents that are being encrypted, and not yet with the commits. */
  private readonly sealing = new Set<Promise<void>>();
  private pendingCharacters = 0;
  /** Resolves when no content is being read. */
  private reading: Promise<void> = Promise.resolve();
  /** Of those that were dropped, the ones that were reported. */
  private reportedCount = 0;
  private upkeptMs = -Infinity;
  private stopped = false;
  private erasing: Promise<void> = Promise.resolve();
  /** Ends with the last round that was asked for. */
  private rounds: Promise<void> = Promise.resolve();

  constructor(private readonly options: ContentsOptions) {}

  /** How long contents are kept, in days. */
  get keepDays(): number {
    return this.options.keepDays;
  }

  /** Puts a content into the database. Never waits; what cannot be written now is counted as lost. */
  write(content: Content): void {
    const size = content.request.text.length + content.answer.text.length;
    if (this.takes(size)) void this.awaited(this.sealed(content, size));
  }

  /**
   * Puts a content with files into the database, as `write` does. One is read and written after the
   * other, so that the files of many requests are not in memory at once. Resolves once it was read,
   * or is lost; never rejects.
   */
  writeLate({ characters, read }: LateContent): Promise<void> {
    if (!this.takes(characters)) return Promise.resolve();
    this.reading = this.awaited(
      this.reading.then(read).then(
        (content) => this.sealed(content, characters),
        (error: unknown) => {
          this.pendingCharacters -= characters;
          this.lost(error);
        },
      ),
    );
    return this.reading;
  }

  /**
   * Resolves when every content that was written so far is in the database, or lost. Rejects with
   * `StorageUnavailableError` where the database answers nothing.
   */
  async written(): Promise<void> {
    const { commits } = this.options;
    await Promise.all(this.sealing);
    if (commits.pendingCount > 0) await commits.flush();
  }

  /**
   * A workspace's content, from wherever it is. Rejects with `ArchiveUnavailableError`, and where
   * it cannot be decrypted.
   */
  async find(query: ContentQuery): Promise<Content | undefined> {
    const { database, archived } = this.options;
    await this.written();
    const row = await database
      .selectFrom("content_outbox")
      .selectAll()
      .where("generation_id", "=", query.id)
      .where("workspace_id", "=", query.workspaceId)
      .where("created_at_ms", ">=", Math.max(query.sinceMs, archived ? 0 : this.expiredMs()))
      .executeTakeFirst();
    const found = row === undefined ? await archived?.find(query) : contentOf(row);
    return found && openContent(this.options.vault, found);
  }

  /**
   * Archives everything that waits where there is an archive, and does the maintenance that is due.
   * Rejects as its parts do. Rounds take turns, so that each ends with all archived that waited when
   * it was asked for, and not only what no other round was archiving.
   */
  round(): Promise<void> {
    this.rounds = this.rounds.catch(() => undefined).then(() => this.runRound());
    return this.rounds;
  }

  private async runRound(): Promise<void> {
    const { archived, clock } = this.options;
    try {
      if (archived !== undefined) await this.archiveAll(archived);
      if (clock.monotonicMs() - this.upkeptMs < upkeepEveryMs) return;
      this.upkeptMs = clock.monotonicMs();
      await this.erase();
      if (archived === undefined) await this.trim();
    } catch (error) {
      archived?.forget();
      this.upkeptMs = -Infinity;
      throw error;
    }
  }

  /** Takes characters into memory; counts a content as lost where there is no room for them. */
  private takes(characters: number): boolean {
    const { commits } = this.options;
    if (commits.stalled || this.pendingCharacters + characters > pendingCharactersMax) {
      this.figures.dropped += 1;
      return false;
    }
    this.pendingCharacters += characters;
    return true;
  }

  /** Lets reads and the stop wait for a content that is on its way to its commit. */
  private awaited(work: Promise<void>): Promise<void> {
    const sealing = work.finally(() => this.sealing.delete(sealing));
    this.sealing.add(sealing);
    return sealing;
  }

  private lost(error: unknown): void {
    this.figures.dropped += 1;
    this.options.onError(error);
  }

  /** Resolves when a content is encrypted and its commit under way; never rejects. */
  private async sealed(content: Content, size: number): Promise<void> {
    const { commits, vault } = this.options;
    const done = (): void => void (this.pendingCharacters -= size);
    await sealContent(vault, content).then(
      (sealed) => {
        const row = contentRow(sealed);
        void commits
          .commit({ inserts: [row], adds: [] })
          .catch((error: unknown) => this.lost(error))
          .finally(done);
      },
      (error: unknown) => {
        this.lost(error);
        done();
      },
    );
  }

  private async archiveAll(archived: ArchivedContents): Promise<void> {
    await archived.prepare();
    await this.written();
    const undecided = await this.options.database
      .selectFrom("content_outbox")
      .select("batch")
      .distinct()
      .where("batch", "is not", null)
      .orderBy("batch")
      .execute();
    for (const { batch } of undecided) if (batch !== null) await this.archive(archived, batch);
    while (!this.stopped) {
      const batch = await this.settle();
      if (batch === undefined) break;
      await this.archive(archived, batch);
    }
  }

  /**
   * Deletes what no workspace keeps any more: with the archive's next round, or at once where there
   * is none.
   */
  eraseSoon(): void {
    const { archived, onError } = this.options;
    this.upkeptMs = -Infinity;
    if (archived !== undefined) return;
    this.erasing = this.erasing.then(() => this.erase()).catch(onError);
  }

  /**
   * Deletes contents of workspaces that no longer keep them or were closed, those from before they
   * kept them, and those that are too old.
   */
  async erase(): Promise<void> {
    const { database, archived, keptSince } = this.options;
    const kept = await keptSince();
    const waiting = await database
      .selectFrom("content_outbox")
      .select("workspace_id")
      .distinct()
      .execute();
    for (const { workspace_id: id } of waiting)
      await database
        .deleteFrom("content_outbox")
        .where("workspace_id", "=", id)
        .where("created_at_ms", "<", kept.get(id) ?? Number.MAX_SAFE_INTEGER)
        .execute();
    if (archived !== undefined) return archived.erase(kept);
    await database
      .deleteFrom("content_outbox")
      .where("created_at_ms", "<", this.expiredMs())
      .execute();
  }

  /** The wall time before which contents are no longer kept. */
  private expiredMs(): number {
    return this.options.clock.nowMs() - this.options.keepDays * dayMs;
  }

  /**
   * Drops the database's oldest contents until the rest fit into the budget, and reports what was
   * lost.
   */
  async trim(): Promise<void> {
    const { database, budgetCharacters } = this.options;
    for (let isOver = true; isOver && !this.stopped; ) {
      const { size, contents } = await database
        .selectFrom("content_outbox")
        .select(({ fn }) => [
          fn.sum<number | string | null>("size").as("size"),
          fn.countAll<number | string>().as("contents"),
        ])
        .executeTakeFirstOrThrow();
      this.figures.waiting = Number(contents);
      isOver = Number(size) > budgetCharacters && (await this.dropOldest(Number(size))) > 0;
    }
    this.report();
  }

  /** Reports what was lost since the last report. */
  report(): void {
    const dropped = this.figures.dropped - this.reportedCount;
    this.reportedCount = this.figures.dropped;
    if (dropped > 0) this.options.onDropped(dropped);
  }

  /** Begins no batch any more; resolves when the commit of what was written so far is under way. */
  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all([...this.sealing, this.erasing]);
  }

  private async dropOldest(waitingCharacters: number): Promise<number> {
    const { database, budgetCharacters } = this.options;
    const oldest = await database
      .selectFrom("content_outbox")
      .select(["generation_id", "size"])
      .where("batch", "is", null)
      .orderBy("generation_id")
      .limit(dropStepRows)
      .execute();
    let excess = waitingCharacters - budgetCharacters;
    const given = oldest.filter(({ size }) => {
      const isExcess = excess > 0;
      excess -= Number(size);
      return isExcess;
    });
    const last = given.at(-1);
    if (last === undefined) return 0;
    const { numDeletedRows } = await database
      .deleteFrom("content_outbox")
      .where("batch", "is", null)
      .where("generation_id", "<=", last.generation_id)
      .executeTakeFirst();
    this.figures.dropped += Number(numDeletedRows);
    return Number(numDeletedRows);
  }

  private async settle(): Promise<string | undefined> {
    const { database, clock } = this.options;
    const waiting = await database
      .selectFrom("content_outbox")
      .select(["generation_id", "size"])
      .where("batch", "is", null)
      .orderBy("generation_id")
      .limit(batchContents)
      .execute();
    if (waiting.length === 0) return undefined;
    const batch = timeOrderedHex(clock.nowMs());
    let characters = 0;
    const ids = waiting
      .filter(({ size }, index) => (characters += Number(size)) <= batchCharacters || index === 0)
      .map(({ generation_id: id }) => id);
    // What another gateway assigns to its batch at the same time belongs to it.
    const { numUpdatedRows } = await database
      .updateTable("content_outbox")
      .set({ batch })
      .where("batch", "is", null)
      .where("generation_id", "in", ids)
      .executeTakeFirst();
    return numUpdatedRows === 0n ? undefined : batch;
  }

  private async archive(archived: ArchivedContents, batch: string): Promise<void> {
    const { database } = this.options;
    const rows = await database
      .selectFrom("content_outbox")
      .selectAll()
      .where("batch", "=", batch)
      .orderBy("generation_id")
      .execute();
    if (rows.length > 0) await archived.insert(rows, batch);
    await database.deleteFrom("content_outbox").where("batch", "=", batch).execute();
    this.figures.archived += rows.length;
  }
}
