import type { Kysely, Generated } from "kysely";
import { lowestId } from "../../platform/kernel/ids.ts";
import type {
  CommitQueue,
  CommitUnit,
  InsertStatement,
} from "../../platform/storage/commit-queue.ts";
import {
  isResponseId,
  outputItems,
  type NewResponse,
  type ResponseItem,
  type ResponseRecord,
  type ResponseStatus,
  type StoredResponse,
} from "./stored-response.ts";

/** A response in the past of a conversation, without its content. */
export interface Ancestor {
  id: string;
  previousResponseId: string | null;
  status: ResponseStatus;
  sizeBytes: number;
}

/** A response's contribution to a conversation. */
export interface Turn {
  id: string;
  inputItems: readonly ResponseItem[];
  record: ResponseRecord;
}

/**
 * Bytes above which a response is written separately: a batch of the commit queue is one text, in
 * which settlements wait.
 */
const groupedBytesMax = 64 * 1024;

const headColumns = [
  "id",
  "workspace_id",
  "key_id",
  "created_at_ms",
  "completed_at_ms",
  "status",
  "model",
  "background",
  "previous_response_id",
  "record",
] as const;

/** Stores responses. Every read is within one workspace. */
export class ResponseStore {
  private readonly database: Kysely<ResponseTables>;
  private readonly commits: CommitQueue;
  /** Called with every response that is stored, once it is durable. */
  onKept: (response: NewResponse) => void = () => undefined;

  constructor(options: { database: Kysely<ResponseTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** Stores a response. Resolves when it is durable, rejects when the database refused. */
  async insert(response: NewResponse): Promise<void> {
    const row = responseRow(response);
    const items = itemRows(response);
    if (row.size_bytes + (row.request?.length ?? 0) <= groupedBytesMax) {
      await this.commits.commit(responseUnit(row, items));
      this.onKept(response);
      return;
    }
    await this.database.transaction().execute(async (transaction) => {
      await transaction.insertInto("stored_responses").values(row).execute();
      if (items.length > 0)
        await transaction.insertInto("stored_response_items").values(items).execute();
    });
    this.onKept(response);
  }

  /** Returns a response of the workspace; undefined when the workspace has none with that id. */
  async find(workspaceId: string, id: string): Promise<StoredResponse | undefined> {
    if (!isResponseId(id)) return undefined;
    const row = await this.database
      .selectFrom("stored_responses")
      .select(headColumns)
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    return {
      id: row.id,
      workspaceId: row.workspace_id,
      keyId: row.key_id,
      createdAtMs: row.created_at_ms,
      completedAtMs: row.completed_at_ms,
      status: row.status as ResponseStatus,
      model: row.model,
      background: row.background === 1,
      previousResponseId: row.previous_response_id,
      recordText: row.record,
    };
  }

  /**
   * Returns the items of a response's own request, in order; undefined when the workspace has no
   * such response.
   */
  async inputItems(workspaceId: string, id: string): Promise<readonly ResponseItem[] | undefined> {
    if (!isResponseId(id)) return undefined;
    const row = await this.database
      .selectFrom("stored_responses")
      .select("input_items")
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row === undefined ? undefined : (JSON.parse(row.input_items) as ResponseItem[]);
  }

  /** Deletes a response with its events. Returns false when the workspace has none with that id. */
  async delete(workspaceId: string, id: string): Promise<boolean> {
    if (!isResponseId(id)) return false;
    const { numDeletedRows } = await this.database
      .deleteFrom("stored_responses")
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Returns a response and those that it continues from, newest first, at most `limit` of them. */
  async ancestors(workspaceId: string, id: string, limit: number): Promise<Ancestor[]> {
    if (!isResponseId(id)) return [];
    const rows = await this.database
      .withRecursive("chain(id, previous_response_id, status, size_bytes, depth)", (query) =>
        query
          .selectFrom("stored_responses")
          .select(({ lit }) => [
            "id",
            "previous_response_id",
            "status",
            "size_bytes",
            lit(1).as("depth"),
          ])
          .where("id", "=", id)
          .where("workspace_id", "=", workspaceId)
          .unionAll(
            query
              .selectFrom("chain")
              .innerJoin("stored_responses as earlier", "earlier.id", "chain.previous_response_id")
              .select(({ eb, lit }) => [
                "earlier.id",
                "earlier.previous_response_id",
                "earlier.status",
                "earlier.size_bytes",
                eb("chain.depth", "+", lit(1)).as("depth"),
              ])
              .where("earlier.workspace_id", "=", workspaceId)
              .where("chain.depth", "<", limit),
          ),
      )
      .selectFrom("chain")
      .select(["id", "previous_response_id", "status", "size_bytes"])
      .orderBy("depth")
      .execute();
    return rows.map((row) => ({
      id: row.id,
      previousResponseId: row.previous_response_id,
      status: row.status as ResponseStatus,
      sizeBytes: row.size_bytes,
    }));
  }

  /** Returns the bytes of some of the workspace's responses together. */
  async sizeOf(workspaceId: string, ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const { bytes } = await this.database
      .selectFrom("stored_responses")
      .select(({ fn }) => fn.sum<number | null>("size_bytes").as("bytes"))
      .where("workspace_id", "=", workspaceId)
      .where("id", "in", ids)
      .executeTakeFirstOrThrow();
    return Number(bytes ?? 0);
  }

  /**
   * Returns what responses contribute to a conversation, in the order of `ids`; deleted ones are
   * left out.
   */
  async turns(workspaceId: string, ids: readonly string[]): Promise<Turn[]> {
    if (ids.length === 0) return [];
    const rows = await this.database
      .selectFrom("stored_responses")
      .select(["id", "input_items", "record"])
      .where("workspace_id", "=", workspaceId)
      .where("id", "in", ids)
      .execute();
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.flatMap((id) => {
      const row = byId.get(id);
      if (row === undefined) return [];
      return [
        {
          id,
          inputItems: JSON.parse(row.input_items) as ResponseItem[],
          record: JSON.parse(row.record) as ResponseRecord,
        },
      ];
    });
  }

  /**
   * Returns the response that contains each output item, by item id; the newest one where several
   * do.
   */
  async holdersOf(workspaceId: string, itemIds: readonly string[]): Promise<Map<string, string>> {
    const known = itemIds.filter(isItemId);
    if (known.length === 0) return new Map();
    const rows = await this.database
      .selectFrom("stored_response_items")
      .select(["item_id", "response_id"])
      .where("workspace_id", "=", workspaceId)
      .where("item_id", "in", known)
      .orderBy("response_id")
      .execute();
    return new Map(rows.map((row) => [row.item_id, row.response_id]));
  }

  /**
   * Deletes at most `limit` responses that are older than a wall time, oldest first; returns how
   * many. Ids begin with the time, so the primary key finds them.
   */
  async deleteBefore({ beforeMs, limit }: { beforeMs: number; limit: number }): Promise<number> {
    const oldestKept = lowestId("resp", beforeMs);
    const oldest = await this.database
      .selectFrom("stored_responses")
      .select("id")
      .where("id", "<", oldestKept)
      .orderBy("id")
      .limit(limit)
      .execute();
    const last = oldest.at(-1);
    if (last === undefined) return 0;
    await this.database.deleteFrom("stored_responses").where("id", "<=", last.id).execute();
    return oldest.length;
  }
}

/** The tables of stored responses. */
export interface ResponseTables {
  stored_responses: {
    id: string;
    workspace_id: string;
    key_id: string;
    created_at_ms: number;
    completed_at_ms: number | null;
    status: string;
    model: string;
    background: number;
    previous_response_id: string | null;
    /** The bytes of the record and the input items together. */
    size_bytes: number;
    record: string;
    input_items: string;
    request: string | null;
    /** The preset that a background job's request named. */
    preset_id: string | null;
    /** The number of starts of a background job. */
    runs: Generated<number>;
    /**
     * 1 once a background job may have called a tool that does more than read; null where it has not
     * begun, or at a gateway that does not say so.
     */
    acted: number | null;
  };
  stored_response_items: { workspace_id: string; item_id: string; response_id: string };
  stored_response_events: { response_id: string; last_sequence: number; events: string };
}

type ResponseRow = Omit<ResponseTables["stored_responses"], "runs" | "acted">;
type ItemRow = ResponseTables["stored_response_items"];

const responseColumns = [
  ...headColumns,
  "size_bytes",
  "input_items",
  "request",
  "preset_id",
] as const satisfies readonly (keyof ResponseRow)[];

const itemColumns = [
  "workspace_id",
  "item_id",
  "response_id",
] as const satisfies readonly (keyof ItemRow)[];

const responseInsert: InsertStatement = {
  name: "stored response",
  table: "stored_responses",
  columns: responseColumns,
};
const itemInsert: InsertStatement = {
  name: "stored response item",
  table: "stored_response_items",
  columns: itemColumns,
};

/**
 * Statements for the storage's commit queue. Responses come before their items, which refer to
 * them.
 */
export const storedResponseInserts: readonly InsertStatement[] = [responseInsert, itemInsert];

/**
 * Matches item ids that can be referred to: those that both databases store and compare unchanged.
 */
const itemIdPattern = /^[\x21-\x7e]{1,256}$/;

/** Returns whether an id can be that of a stored item. */
const isItemId = (id: string): boolean => itemIdPattern.test(id);

/**
 * The most output items of one response that can be referred to by id: more than any answer has.
 */
const itemsMax = 1_000;

/** Returns the row of a response. */
function responseRow(response: NewResponse): ResponseRow {
  const record = JSON.stringify(response.record);
  const inputItems = JSON.stringify(response.inputItems);
  return {
    id: response.id,
    workspace_id: response.workspaceId,
    key_id: response.keyId,
    created_at_ms: response.createdAtMs,
    completed_at_ms: response.completedAtMs,
    status: String(response.record["status"]),
    model: String(response.record["model"]),
    background: response.background ? 1 : 0,
    previous_response_id: response.previousResponseId,
    size_bytes: Buffer.byteLength(record) + Buffer.byteLength(inputItems),
    record,
    input_items: inputItems,
    request: response.requestText,
    preset_id: response.presetId ?? null,
  };
}

/**
 * Returns the rows by which the output items of a response are found; a repeated id has one row.
 */
export function itemRows(response: {
  id: string;
  workspaceId: string;
  record: ResponseRecord;
}): ItemRow[] {
  const ids = outputItems(response.record)
    .map(({ id }) => id)
    .filter((id): id is string => typeof id === "string" && isItemId(id));
  return [...new Set(ids)]
    .slice(0, itemsMax)
    .map((id) => ({ workspace_id: response.workspaceId, item_id: id, response_id: response.id }));
}

/** Returns both kinds of rows as one unit of the commit queue. */
const responseUnit = (row: ResponseRow, items: readonly ItemRow[]): CommitUnit => ({
  inserts: [
    { statement: responseInsert, values: responseColumns.map((column) => row[column]) },
    ...items.map((item) => ({
      statement: itemInsert,
      values: itemColumns.map((column) => item[column]),
    })),
  ],
  adds: [],
});
