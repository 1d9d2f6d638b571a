import { recordInsert } from "../../platform/storage/commit-queue.ts";
import type { KeptText } from "../../platform/kernel/json/text-keeper.ts";

/** Prompts and answers that are kept here, or wait for the archive. */
export interface ContentTables {
  content_outbox: {
    generation_id: string;
    workspace_id: string;
    key_id: string;
    created_at_ms: number;
    surface: string;
    streamed: number;
    request_cut: number;
    answer_cut: number;
    /** Characters of both columns. */
    size: number;
    /** The insert that a row belongs to; null until that is decided. */
    batch: string | null;
    /** Compressed and encrypted by `sealContent`; in clear only in rows from before it was. */
    request: string;
    answer: string;
  };
}

/** The prompt and the answer of a request, in its client's dialect. */
export interface Content {
  /** A `gen_` id. */
  generationId: string;
  workspaceId: string;
  keyId: string;
  /** When it was kept, in milliseconds of wall time. */
  createdAtMs: number;
  /** The surface's name in records, such as `messages`. */
  surface: string;
  /** Whether the answer is a text of server-sent events. */
  streamed: boolean;
  request: KeptText;
  answer: KeptText;
}

const inserted = recordInsert<ContentTables["content_outbox"], Content>({
  name: "content",
  table: "content_outbox",
  columns: {
    generation_id: ({ generationId }) => generationId,
    workspace_id: ({ workspaceId }) => workspaceId,
    key_id: ({ keyId }) => keyId,
    created_at_ms: ({ createdAtMs }) => createdAtMs,
    surface: ({ surface }) => surface,
    streamed: ({ streamed }) => (streamed ? 1 : 0),
    request_cut: ({ request }) => (request.isCut ? 1 : 0),
    answer_cut: ({ answer }) => (answer.isCut ? 1 : 0),
    size: ({ request, answer }) => request.text.length + answer.text.length,
    batch: () => null,
    request: ({ request }) => request.text,
    answer: ({ answer }) => answer.text,
  },
});

/** The insert of a content into the outbox. */
export const contentInsert = inserted.statement;

/** Returns the row of a content, to be committed. */
export const contentRow = inserted.rowOf;

/** Which content is asked for. */
export interface ContentQuery {
  workspaceId: string;
  /** A `gen_` id. */
  id: string;
  /** The wall time since which the workspace keeps contents; older ones are not returned. */
  sinceMs: number;
}

/** A row as it is read, from the database or from the archive. */
export type ReadRow = Omit<ContentTables["content_outbox"], "batch" | "size">;

/** Returns the content of a row, as it was sealed. */
export const contentOf = (row: ReadRow): Content => ({
  generationId: row.generation_id,
  workspaceId: row.workspace_id,
  keyId: row.key_id,
  createdAtMs: Number(row.created_at_ms),
  surface: row.surface,
  streamed: Number(row.streamed) === 1,
  request: { text: row.request, isCut: Number(row.request_cut) === 1 },
  answer: { text: row.answer, isCut: Number(row.answer_cut) === 1 },
});
