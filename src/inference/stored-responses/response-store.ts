import type { Kysely } from "kysely";
import type { CommitQueue } from "../../platform/storage/commit-queue.ts";
import {
  isItemId,
  itemRows,
  responseRow,
  responseUnit,
  type ResponseTables,
} from "./response-rows.ts";
import {
  isResponseId,
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

/** What a response contributes to a conversation. */
export interface Turn {
  id: string;
  inputItems: readonly ResponseItem[];
  record: ResponseRecord;
}

/** Larger responses are written apart: a batch of the commit queue is one text, and settlements wait in it. */
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

/** Stored responses at rest. Every read is within one workspace. */
export class ResponseStore {
  private readonly database: Kysely<ResponseTables>;
  private readonly commits: CommitQueue;
  /** Receives every response that is kept, once it is durable. */
  onKept: (response: NewResponse) => void = () => undefined;

  constructor(options: { database: Kysely<ResponseTables>; commits: CommitQueue }) {
    this.database = options.database;
    this.commits = options.commits;
  }

  /** Keeps a response; resolves when it is durable, rejects when the database refused. */
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

  /** A response of the workspace; undefined when the workspace has none of that id. */
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

  /** The items that a response's own request brought, in their order; undefined when the workspace has no such response. */
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

  /** Deletes a response with its events; false when the workspace has none of that id. */
  async delete(workspaceId: string, id: string): Promise<boolean> {
    if (!isResponseId(id)) return false;
    const { numDeletedRows } = await this.database
      .deleteFrom("stored_responses")
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** A response and those that it continues from, newest first, at most `limit` of them. */
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

  /** Bytes that responses of the workspace have together. */
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

  /** What responses contribute to a conversation, in the order of `ids`; those that are gone are left out. */
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

  /** The response that holds each output item, by item id; the newest one where several do. */
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
   * Deletes at most `limit` responses that are older than a wall time, oldest first, and tells how many
   * went. Ids begin with the time, so the primary key finds them.
   */
  async deleteBefore({ beforeMs, limit }: { beforeMs: number; limit: number }): Promise<number> {
    const oldestKept = `resp_${beforeMs.toString(16).padStart(12, "0")}`;
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
