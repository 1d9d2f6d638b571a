import type { Kysely } from "kysely";
import { type Clock, dayMs, minuteMs } from "../../platform/kernel/clock.ts";
import { timeOrderedHex } from "../../platform/kernel/ids.ts";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import type { ArchiveClient } from "./archive-client.ts";
import { archivedId, prepareTable } from "./archive-tables.ts";
import { type Content, contentRow, type ContentTables } from "./content-insert.ts";
import { type ContentVault, openContent, sealContent } from "./content-seal.ts";

type Row = ContentTables["content_outbox"];

/** The table of prompts and answers. */
const contentsTable = "switchyard_contents";

/** Creates the table. Each day is a partition, so that whole days are dropped when they expire. */
const createContents = (keepDays: number): string => `create table if not exists ${contentsTable} (
  id UInt128 codec(ZSTD(1)),
  created_at_ms Int64 codec(DoubleDelta, LZ4),
  workspace_id LowCardinality(String),
  key_id LowCardinality(String),
  surface LowCardinality(String),
  streamed UInt8,
  request_cut UInt8,
  answer_cut UInt8,
  request String codec(ZSTD(3)),
  answer String codec(ZSTD(3))
)
engine = ReplacingMergeTree
partition by toYYYYMMDD(fromUnixTimestamp64Milli(created_at_ms, 'UTC'))
order by (workspace_id, id)
ttl toDateTime(fromUnixTimestamp64Milli(created_at_ms, 'UTC')) + interval ${keepDays} day
settings non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1`;

/** Contents of one insert: with their full texts some 16 million characters at most. */
const batchContents = 32;
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
  client: ArchiveClient;
  /** Encrypts them before anything is written. */
  vault: ContentVault;
  clock: Clock;
  /** Days for which the archive keeps them. */
  keepDays: number;
  /** The most characters that wait in the database while the archive does not answer. */
  budgetCharacters: number;
  /** Returns the workspaces that keep contents, each with the wall time since which it does. */
  keptSince(): Promise<ReadonlyMap<string, number>>;
  /** Called with the number of contents that were dropped before they were archived. */
  onDropped(contents: number): void;
  onError(error: unknown): void;
}

/** Contents in numbers, for metrics. */
interface ContentFigures {
  /** Those that wait in the outbox. */
  waiting: number;
  /** Those that this gateway has archived, and those that were lost or given up before. */
  archived: number;
  dropped: number;
}

/** Which content is asked for. */
interface ContentQuery {
  workspaceId: string;
  /** A `gen_` id. */
  id: string;
  /** The wall time since which the workspace keeps contents; older ones are not returned. */
  sinceMs: number;
}

/**
 * Prompts and answers of workspaces that keep them. They pass through the database into a table of
 * the archive with a retention of its own.
 */
export class Contents {
  readonly figures: ContentFigures = { waiting: 0, archived: 0, dropped: 0 };
  private readonly options: ContentsOptions;
  /** Contents that are being encrypted, and not yet with the commits. */
  private readonly sealing = new Set<Promise<void>>();
  private pendingCharacters = 0;
  /** Of those that were dropped, the ones that were reported. */
  private reportedCount = 0;
  private upkeptMs = -Infinity;
  private isPrepared = false;
  private stopped = false;

  constructor(options: ContentsOptions) {
    this.options = options;
  }

  /** How long the archive keeps contents, in days. */
  get keepDays(): number {
    return this.options.keepDays;
  }

  /** Puts a content into the outbox. Never waits; what cannot be written now is counted as lost. */
  write(content: Content): void {
    const { commits } = this.options;
    const size = content.request.text.length + content.answer.text.length;
    if (commits.stalled || this.pendingCharacters + size > pendingCharactersMax) {
      this.figures.dropped += 1;
      return;
    }
    this.pendingCharacters += size;
    const sealing = this.sealed(content, size).finally(() => this.sealing.delete(sealing));
    this.sealing.add(sealing);
  }

  /**
   * Resolves when every content that was written so far is in the outbox, or lost. Rejects with
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
    const { database } = this.options;
    await this.written();
    const waiting = await database
      .selectFrom("content_outbox")
      .selectAll()
      .where("generation_id", "=", query.id)
      .where("workspace_id", "=", query.workspaceId)
      .where("created_at_ms", ">=", query.sinceMs)
      .executeTakeFirst();
    const found = waiting === undefined ? await this.findArchived(query) : contentOf(waiting);
    return found && openContent(this.options.vault, found);
  }

  /**
   * Archives everything that waits, and does the maintenance that is due. Rejects as its parts do.
   */
  async round(): Promise<void> {
    try {
      await this.prepare();
      await this.archiveAll();
      const { clock } = this.options;
      if (clock.monotonicMs() - this.upkeptMs < upkeepEveryMs) return;
      this.upkeptMs = clock.monotonicMs();
      await this.erase();
    } catch (error) {
      this.isPrepared = false;
      this.eraseSoon();
      throw error;
    }
  }

  /** Resolves when a content is encrypted and its commit under way; never rejects. */
  private async sealed(content: Content, size: number): Promise<void> {
    const { commits, vault, onError } = this.options;
    const done = (): void => void (this.pendingCharacters -= size);
    const lost = (error: unknown): void => {
      this.figures.dropped += 1;
      onError(error);
    };
    await sealContent(vault, content).then(
      (sealed) => {
        const row = contentRow(sealed);
        void commits
          .commit({ inserts: [row], adds: [] })
          .catch(lost)
          .finally(done);
      },
      (error: unknown) => {
        lost(error);
        done();
      },
    );
  }

  private async prepare(): Promise<void> {
    const { client, keepDays } = this.options;
    if (this.isPrepared) return;
    const create = createContents(keepDays);
    await prepareTable(client, { table: contentsTable, create, keepDays });
    this.isPrepared = true;
  }

  private async archiveAll(): Promise<void> {
    await this.written();
    const undecided = await this.options.database
      .selectFrom("content_outbox")
      .select("batch")
      .distinct()
      .where("batch", "is not", null)
      .orderBy("batch")
      .execute();
    for (const { batch } of undecided) if (batch !== null) await this.archive(batch);
    while (!this.stopped) {
      const batch = await this.settle();
      if (batch === undefined) break;
      await this.archive(batch);
    }
  }

  /** Makes the next round delete what no workspace keeps any more. */
  eraseSoon(): void {
    this.upkeptMs = -Infinity;
  }

  /**
   * Deletes contents of workspaces that no longer keep them or were closed, and those from before
   * they kept them.
   */
  async erase(): Promise<void> {
    const { database, client, keptSince } = this.options;
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
    const due =
      "created_at_ms < toInt64(transform(workspace_id, {ids:Array(String)}, {since:Array(String)}, '9223372036854775807'))";
    // The list must not be empty, and no workspace has this id.
    const parameters = {
      ids: ["", ...kept.keys()],
      since: ["0", ...[...kept.values()].map(String)],
    };
    const [found] = await client.query(
      `select 1 from ${contentsTable} where ${due} limit 1`,
      parameters,
    );
    if (found !== undefined)
      await client.command(`delete from ${contentsTable} where ${due}`, parameters);
  }

  /**
   * Drops the oldest waiting contents until the rest fit into the budget, and reports what was
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
    await Promise.all(this.sealing);
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
      .select("generation_id")
      .where("batch", "is", null)
      .orderBy("generation_id")
      .limit(batchContents)
      .execute();
    if (waiting.length === 0) return undefined;
    const batch = timeOrderedHex(clock.nowMs());
    const ids = waiting.map(({ generation_id: id }) => id);
    // What another gateway assigns to its batch at the same time belongs to it.
    const { numUpdatedRows } = await database
      .updateTable("content_outbox")
      .set({ batch })
      .where("batch", "is", null)
      .where("generation_id", "in", ids)
      .executeTakeFirst();
    return numUpdatedRows === 0n ? undefined : batch;
  }

  private async archive(batch: string): Promise<void> {
    const { database, client } = this.options;
    const rows = await database
      .selectFrom("content_outbox")
      .selectAll()
      .where("batch", "=", batch)
      .orderBy("generation_id")
      .execute();
    if (rows.length > 0)
      await client.insert(contentsTable, { rows: rows.map(archivedContent), token: batch });
    await database.deleteFrom("content_outbox").where("batch", "=", batch).execute();
    this.figures.archived += rows.length;
  }

  private async findArchived(query: ContentQuery): Promise<Content | undefined> {
    const { client, clock, keepDays } = this.options;
    const [row] = await client.query<ArchivedRow>(
      `select created_at_ms, key_id, surface, streamed, request_cut, answer_cut, request, answer
       from ${contentsTable} final where workspace_id = {workspace:String} and id = {id:UInt128}
         and created_at_ms >= {since:Int64}`,
      {
        workspace: query.workspaceId,
        id: archivedId(query.id),
        since: Math.max(query.sinceMs, clock.nowMs() - keepDays * dayMs),
      },
    );
    return row && contentOf({ ...row, generation_id: query.id, workspace_id: query.workspaceId });
  }
}

type ReadRow = Omit<Row, "batch" | "size">;
type ArchivedRow = Omit<ReadRow, "generation_id" | "workspace_id">;

const archivedContent = ({
  batch: _batch,
  size: _size,
  generation_id: id,
  ...row
}: Row): object => ({
  ...row,
  id: archivedId(id),
});

const contentOf = (row: ReadRow): Content => ({
  generationId: row.generation_id,
  workspaceId: row.workspace_id,
  keyId: row.key_id,
  createdAtMs: Number(row.created_at_ms),
  surface: row.surface,
  streamed: Number(row.streamed) === 1,
  request: { text: row.request, isCut: Number(row.request_cut) === 1 },
  answer: { text: row.answer, isCut: Number(row.answer_cut) === 1 },
});
