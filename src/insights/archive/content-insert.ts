import { recordInsert } from "../../platform/storage/commit-queue.ts";

/** Prompts and answers that wait for the archive. */
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

/** A text, as far as it is kept. */
export interface KeptText {
  text: string;
  /** Whether the text was longer. */
  isCut: boolean;
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
