import { type Kysely, type RawBuilder, sql } from "kysely";
import type { StorageKind } from "../platform/storage/storage.ts";
import { lowestIdAt, type GenerationTables } from "./generation-record.ts";

/** Records of a time slice, over all workspaces. */
export interface RecordSlice {
  startMs: number;
  rows: number;
  /** Their approximate size in the database, in bytes. */
  bytes: number;
}

/** The records to measure, and the length of slices. */
export interface SlicesQuery {
  workspaceIds: readonly string[];
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  /**
   * The number of digits of the wall time in their ids that the records of a slice have in common.
   */
  digits: number;
  /** Ends the measuring early, which discards the result. */
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
 * The payload and the overflow of a record in SQLite: a record of up to 1,002 bytes stays in the
 * tree; a longer one leaves at least 489 bytes there, and the rest in pages that hold 4,092 bytes
 * each. Beside its texts a record has some 38 bytes, and pages of the tree are about seven eighths
 * full.
 */
const [payload, flowedOver] = ["(length + 38)", "((length + 38 - 489) / 4092)"];

const part = "(489 + (length + 38 - 489) % 4092)";

const sqliteCost = `case when ${payload} <= 1002 then 1.15 * ${payload} when ${part} <= 1002 then 1.15 * ${part} + 4096 * ${flowedOver}
  else 1.15 * 489 + 4096 * (${flowedOver} + 1) end`;

/**
 * The SQL of a record's size in bytes, from the `length` of its texts, as measured (decision 0048).
 */
const costSql: Readonly<Record<StorageKind, string>> = {
  sqlite: sqliteCost,
  // Headers, eight bytes for each number, and the primary key a second time in its index.
  postgres: "1.13 * (length + 190)",
};

const idPrefixLength = "gen_".length;

/** Hexadecimal digits of the wall time at the beginning of every id, after `gen_`. */
export const timeDigits = 12;

/** Returns the length of the slices whose records share this many of these digits. */
export const sliceMsOf = (digits: number): number => 16 ** (timeDigits - digits);

/** Measures the size of generation records in the database. */
export class GenerationSizes {
  private readonly database: Kysely<GenerationTables>;
  private readonly kind: StorageKind;

  constructor({ database, kind }: { database: Kysely<GenerationTables>; kind: StorageKind }) {
    this.database = database;
    this.kind = kind;
  }

  /**
   * Returns an upper bound of the records' size in bytes, which the engine knows without reading
   * them.
   */
  async atMost(): Promise<number> {
    // On SQLite, everything in the file; on Postgres, the monthly partitions including deleted rows
    // whose space is not reused yet.
    const query =
      this.kind === "sqlite"
        ? sql`select (page_count - freelist_count) * page_size as bytes
            from pragma_page_count(), pragma_freelist_count(), pragma_page_size()`
        : sql`select sum(pg_total_relation_size(relid)) as bytes from pg_partition_tree('generations')`;
    const {
      rows: [row],
    } = await (query as RawBuilder<{ bytes: number | string }>).execute(this.database);
    return Number(row?.bytes ?? 0);
  }

  /** Returns the workspaces that have records, found by one step of the primary key for each. */
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

  /** Measures records by time slice, oldest first. Slices without records are left out. */
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

  /**
   * Returns the query of a workspace's next records, summed by the beginning of their ids; a range
   * of the primary key.
   */
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
