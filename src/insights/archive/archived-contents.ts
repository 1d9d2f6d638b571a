import { type Clock, dayMs } from "../../platform/kernel/clock.ts";
import type { ArchiveClient } from "./archive-client.ts";
import { archivedId, prepareTable } from "./archive-tables.ts";
import {
  type Content,
  contentOf,
  type ContentQuery,
  type ContentTables,
  type ReadRow,
} from "./content-insert.ts";

type Row = ContentTables["content_outbox"];
type ArchivedRow = Omit<ReadRow, "generation_id" | "workspace_id">;

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

/** Prompts and answers in a table of the archive, with a retention of its own. */
export class ArchivedContents {
  private isPrepared = false;

  constructor(
    private readonly options: { client: ArchiveClient; clock: Clock; keepDays: number },
  ) {}

  /** Creates the table, or gives it its retention. Rejects with `ArchiveUnavailableError`. */
  async prepare(): Promise<void> {
    const { client, keepDays } = this.options;
    if (this.isPrepared) return;
    const create = createContents(keepDays);
    await prepareTable(client, { table: contentsTable, create, keepDays });
    this.isPrepared = true;
  }

  /** Makes the next `prepare` look at the table again. */
  forget(): void {
    this.isPrepared = false;
  }

  /**
   * Inserts the rows of a batch, once however often it is repeated. Rejects with
   * `ArchiveUnavailableError`.
   */
  insert(rows: readonly Row[], batch: string): Promise<void> {
    return this.options.client.insert(contentsTable, {
      rows: rows.map(archivedContent),
      token: batch,
    });
  }

  /** Finds a content as it was sealed. Rejects with `ArchiveUnavailableError`. */
  async find(query: ContentQuery): Promise<Content | undefined> {
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

  /** Deletes contents from before their workspace kept any, or of workspaces that keep none. */
  async erase(kept: ReadonlyMap<string, number>): Promise<void> {
    const { client } = this.options;
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
}

const archivedContent = ({
  batch: _batch,
  size: _size,
  generation_id: id,
  ...row
}: Row): object => ({
  ...row,
  id: archivedId(id),
});
