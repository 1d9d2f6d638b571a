import { type Kysely, type RawBuilder, sql } from "kysely";
import type { StorageKind } from "../platform/storage/storage-kind.ts";
import { lowestIdAt, type GenerationTables } from "./generation-store.ts";

/** Records of a stretch of time, over all workspaces. */
export interface RecordSlice {
  startMs: number;
  rows: number;
  /** What they take in the database, about. */
  bytes: number;
}

/** Which records are measured, and in how long slices. */
export interface SlicesQuery {
  workspaceIds: readonly string[];
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  /** How many digits of the wall time in their ids the records of a slice have in common. */
  digits: number;
  /** Ends the measuring early; what comes then is of no use. */
  signal: AbortSignal;
}

/** Records that one statement measures, so that other reads never wait long behind it. */
const measureStepRows = 2_000;

const textColumns = [
  "id",
  "workspace_id",
  "key_id",
  "surface",
  "requested_model",
  "model",
  "provider",
  "upstream_model",
  "upstream_id",
  "status",
  "finish_reason",
  "detail",
] as const;

/**
 * SQLite keeps a record of up to 1,002 bytes in the tree; of a longer one a part of at least 489, and the rest in pages of its own
 * that hold 4,092 each. Beside its texts a record has some 38 bytes; pages of the tree are about seven eighths full.
 */
const [payload, flowedOver] = ["(length + 38)", "((length + 38 - 489) / 4092)"];
const part = "(489 + (length + 38 - 489) % 4092)";
const sqliteCost = `case when ${payload} <= 1002 then 1.15 * ${payload} when ${part} <= 1002 then 1.15 * ${part} + 4096 * ${flowedOver}
  else 1.15 * 489 + 4096 * (${flowedOver} + 1) end`;

/** Bytes that a record takes whose texts have `length`, as it was measured (decision 0048). */
const costSql: Readonly<Record<StorageKind, string>> = {
  sqlite: sqliteCost,
  // Headers, eight bytes a number, and the primary key once more in its index.
  postgres: "1.13 * (length + 190)",
};

const idPrefixLength = "gen_".length;
/** Hexadecimal digits of the wall time at the beginning of every id, after `gen_`. */
export const timeDigits = 12;

/** How long the slices are whose records have so many of these digits in common. */
export const sliceMsOf = (digits: number): number => 16 ** (timeDigits - digits);

/** How much the generation records take in the database. */
export class GenerationSizes {
  private readonly database: Kysely<GenerationTables>;
  private readonly kind: StorageKind;

  constructor({ database, kind }: { database: Kysely<GenerationTables>; kind: StorageKind }) {
    this.database = database;
    this.kind = kind;
  }

  /** Bytes that the records do not exceed, told by the engine without reading any of them. */
  async atMost(): Promise<number> {
    // On SQLite whatever the file holds; on Postgres the table with what was deleted from it and is not used again yet.
    const query =
      this.kind === "sqlite"
        ? sql`select (page_count - freelist_count) * page_size as bytes from pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
        : sql`select pg_total_relation_size('generations') as bytes`;
    const {
      rows: [row],
    } = await (query as RawBuilder<{ bytes: number | string }>).execute(this.database);
    return Number(row?.bytes ?? 0);
  }

  /** Everybody who has records, found by one step of the primary key each. */
  async workspaceIds(): Promise<string[]> {
    const found: string[] = [];
    for (let last = ""; ; ) {
      const next = await this.database
        .selectFrom("generations")
        .select("workspace_id")
        .where("workspace_id", ">", last)
        .orderBy("workspace_id")
        .limit(1)
        .executeTakeFirst();
      if (next === undefined) return found;
      last = next.workspace_id;
      found.push(last);
    }
  }

  /** Measures records by slices of time, oldest first; slices without records are left out. */
  async slices(query: SlicesQuery): Promise<RecordSlice[]> {
    const byStart = new Map<number, RecordSlice>();
    for (const workspaceId of query.workspaceIds) {
      for (let after: string | undefined; ; ) {
        const { rows } = await this.stepSql(workspaceId, { ...query, after }).execute(
          this.database,
        );
        for (const row of rows) add(byStart, row, query.digits);
        if (
          query.signal.aborted ||
          rows.reduce((sum, row) => sum + Number(row.rows), 0) < measureStepRows
        )
          break;
        after = rows.at(-1)?.last;
      }
    }
    return [...byStart.values()].sort((left, right) => left.startMs - right.startMs);
  }

  /** The next records of a workspace, added up by what their ids begin with; a range of the primary key. */
  private stepSql(
    workspaceId: string,
    { fromMs, toMs, digits, after }: SlicesQuery & { after: string | undefined },
  ): RawBuilder<StepRow> {
    const texts = sql.join(
      textColumns.map((name) => sql`coalesce(octet_length(${sql.ref(name)}), 0)`),
      sql` + `,
    );
    const from = after === undefined ? sql`id >= ${lowestIdAt(fromMs)}` : sql`id > ${after}`;
    const slice = sql`substr(id, ${sql.lit(idPrefixLength + 1)}, ${sql.lit(digits)})`;
    return sql<StepRow>`select ${slice} as slice, count(*) as rows, sum(${sql.raw(costSql[this.kind])}) as bytes, max(id) as last from (
      select id, ${texts} as length from generations
      where workspace_id = ${workspaceId} and ${from} and id < ${lowestIdAt(toMs)} order by id limit ${sql.lit(measureStepRows)}
    ) as step group by 1 order by 1`;
  }
}

interface StepRow {
  slice: string;
  rows: number | string;
  bytes: number | string;
  last: string;
}

function add(byStart: Map<number, RecordSlice>, row: StepRow, digits: number): void {
  const startMs = Number.parseInt(row.slice, 16) * sliceMsOf(digits);
  const slice = byStart.get(startMs) ?? { startMs, rows: 0, bytes: 0 };
  slice.rows += Number(row.rows);
  slice.bytes += Number(row.bytes);
  byStart.set(startMs, slice);
}
