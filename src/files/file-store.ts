import { type Kysely, sql, type Transaction } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import { newId } from "../platform/kernel/ids.ts";
import { recordColumns, type RowOf } from "../platform/storage/record-columns.ts";
import type { StoredObject, ObjectStore } from "./object-store.ts";

/** The purposes that callers may give a file, as OpenAI has them. */
export const filePurposes = [
  "assistants",
  "batch",
  "fine-tune",
  "vision",
  "user_data",
  "evals",
] as const;

/** A purpose that a caller gives, or that of what the gateway writes. */
export type FilePurpose = (typeof filePurposes)[number] | "batch_output";

/** A file of a workspace. */
export interface FileRecord {
  /** A `file_` id. */
  id: string;
  workspaceId: string;
  /** The key that uploaded it; null for people who are signed in. */
  keyId: string | null;
  createdAtMs: number;
  expiresAtMs: number | null;
  filename: string;
  mimeType: string;
  purpose: FilePurpose;
  /** Whether the gateway wrote it, and not a caller. */
  isOutput: boolean;
  object: StoredObject;
}

/** What is known of a file before it is stored. */
export type NewFile = Omit<FileRecord, "id" | "createdAtMs" | "object" | "workspaceId">;

/** The tables of files, of the bytes that each workspace stores, and of uploads in parts. */
export interface FileTables {
  files: RowOf<Omit<FileRecord, "object">> & {
    bytes: number;
    object: string;
    sealed_key: string;
    /** The number of batches that still read the file. */
    holds: number;
    deleted_at_ms: number | null;
  };
  file_usage: { workspace_id: string; bytes: number };
  uploads: {
    id: string;
    workspace_id: string;
    key_id: string | null;
    created_at_ms: number;
    expires_at_ms: number;
    filename: string;
    mime_type: string;
    purpose: string;
    bytes: number;
    received_bytes: number;
    file_expires_s: number | null;
    status: string;
    file_id: string | null;
  };
  upload_parts: {
    id: string;
    upload_id: string;
    workspace_id: string;
    bytes: number;
    object: string;
    sealed_key: string;
  };
  /** Copies that providers store. */
  provider_files: {
    /** 24 hexadecimal digits, which are part of the copy's name at the provider. */
    id: string;
    workspace_id: string;
    file_id: string;
    provider: string;
    /** The id of the workspace's own provider key; `platform` for the platform's credential. */
    account: string;
    /** What the provider's requests name it by; null until its upload was answered. */
    upstream_id: string | null;
    created_at_ms: number;
    used_at_ms: number;
    expires_at_ms: number;
  };
}

/** A page of a list of files. */
export interface FilePage {
  files: FileRecord[];
  hasMore: boolean;
}

/** Which files of a workspace to list. */
export interface FileQuery {
  workspaceId: string;
  limit: number;
  order: "asc" | "desc";
  /** The id behind which the page begins. */
  after?: string | undefined;
  /** The id before which the page ends; the page then holds the files just before it. */
  before?: string | undefined;
  purpose?: string | undefined;
  ids?: readonly string[] | undefined;
}

/** The storage of a workspace. */
export interface Quota {
  workspaceId: string;
  bytesMax: number;
}

/** Rolls the transaction of a file back that is not to be added. */
class NotAddedError extends Error {}

/** Stores the files of workspaces. Every lookup names the workspace. */
export class FileStore {
  private readonly database: Kysely<FileTables>;
  private readonly objects: ObjectStore;
  private readonly clock: Clock;
  private readonly onDeleted: () => void;

  constructor(parts: {
    database: Kysely<FileTables>;
    objects: ObjectStore;
    clock: Clock;
    /** Called when a file was deleted, or has expired. */
    onDeleted?: () => void;
  }) {
    this.database = parts.database;
    this.objects = parts.objects;
    this.clock = parts.clock;
    this.onDeleted = parts.onDeleted ?? (() => undefined);
  }

  /**
   * Makes a stored object a file. Returns undefined where the workspace's storage is full, or
   * `alongside` refuses, which runs in the same transaction; the object is then deleted. A file that
   * `isHeldOnly` is in no list, and is deleted with the hold that a batch has on it.
   */
  async add(
    object: StoredObject,
    file: NewFile,
    {
      bytesMax,
      isHeldOnly = false,
      alongside = () => Promise.resolve(true),
    }: {
      bytesMax: number;
      isHeldOnly?: boolean;
      alongside?: (transaction: Transaction<FileTables>, file: FileRecord) => Promise<boolean>;
    },
  ): Promise<FileRecord | undefined> {
    const { workspaceId } = object;
    const createdAtMs = this.clock.nowMs();
    const record: FileRecord = {
      ...file,
      id: newId("file", createdAtMs),
      workspaceId,
      createdAtMs,
      object,
    };
    try {
      await this.database.transaction().execute(async (transaction) => {
        if (!(await alongside(transaction, record))) throw new NotAddedError();
        if (!(await countBytes(transaction, { workspaceId, bytesMax }, object.bytes)))
          throw new NotAddedError();
        const row = {
          ...rowOf(record),
          ...(isHeldOnly && { holds: 1, deleted_at_ms: createdAtMs }),
        };
        await transaction.insertInto("files").values(row).execute();
      });
    } catch (error) {
      await this.objects.discard(object.name);
      if (error instanceof NotAddedError) return undefined;
      throw error;
    }
    this.objects.claimed(object);
    return record;
  }

  /** Returns a file that has not expired. */
  async find(workspaceId: string, id: string): Promise<FileRecord | undefined> {
    const row = await this.database
      .selectFrom("files")
      .selectAll()
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .where("deleted_at_ms", "is", null)
      .executeTakeFirst();
    return row !== undefined && isLive(row, this.clock.nowMs()) ? recordOf(row) : undefined;
  }

  /** Lists the files of a workspace by age. */
  async list({ workspaceId, limit, order, ...asked }: FileQuery): Promise<FilePage> {
    const isBackwards = asked.before !== undefined;
    const descends = (order === "desc") !== isBackwards;
    let query = this.database
      .selectFrom("files")
      .selectAll()
      .where("workspace_id", "=", workspaceId)
      .where("deleted_at_ms", "is", null)
      .where((is) =>
        is.or([is("expires_at_ms", "is", null), is("expires_at_ms", ">", this.clock.nowMs())]),
      );
    const edge = asked.before ?? asked.after;
    if (edge !== undefined) query = query.where("id", descends ? "<" : ">", edge);
    if (asked.purpose !== undefined)
      query = query.where("purpose", "=", asked.purpose as FilePurpose);
    if (asked.ids !== undefined) query = query.where("id", "in", [...asked.ids]);
    const rows = await query
      .orderBy("id", descends ? "desc" : "asc")
      .limit(limit + 1)
      .execute();
    const files = rows.slice(0, limit).map(recordOf);
    return { files: isBackwards ? files.reverse() : files, hasMore: rows.length > limit };
  }

  /**
   * Deletes a file and returns it; undefined where there is none. The bytes go once no batch reads
   * them any more.
   */
  async delete(workspaceId: string, id: string): Promise<FileRecord | undefined> {
    const row = await this.database
      .updateTable("files")
      .set({ deleted_at_ms: this.clock.nowMs() })
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .where("deleted_at_ms", "is", null)
      .returningAll()
      .executeTakeFirst();
    if (row === undefined) return undefined;
    // Bytes that cannot be deleted now are deleted by the sweep.
    await this.purge(id).catch(this.objects.onError);
    this.onDeleted();
    return isLive(row, this.clock.nowMs()) ? recordOf(row) : undefined;
  }

  /** Keeps the bytes of a file while a batch reads them. Returns false where there is no file. */
  async hold(id: string): Promise<boolean> {
    const { numUpdatedRows } = await this.database
      .updateTable("files")
      .set({ holds: sql<number>`holds + 1` })
      .where("id", "=", id)
      .where("deleted_at_ms", "is", null)
      .executeTakeFirstOrThrow();
    return numUpdatedRows > 0n;
  }

  /** Ends a hold, and deletes the bytes where the file was deleted meanwhile. */
  async release(id: string): Promise<void> {
    await this.database
      .updateTable("files")
      .set({ holds: sql<number>`holds - 1` })
      .where("id", "=", id)
      .where("holds", ">", 0)
      .execute();
    await this.purge(id);
  }

  /** Returns a file that a batch holds, although it may have been deleted or have expired. */
  async heldFile(id: string): Promise<FileRecord | undefined> {
    const row = await this.database
      .selectFrom("files")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && recordOf(row);
  }

  /** Marks at most `limit` files that have expired as deleted; returns how many there were. */
  async deleteExpired(limit: number): Promise<number> {
    const nowMs = this.clock.nowMs();
    const expired = this.database
      .selectFrom("files")
      .select("id")
      .where("expires_at_ms", "<=", nowMs)
      .where("deleted_at_ms", "is", null)
      .limit(limit);
    const { numUpdatedRows } = await this.database
      .updateTable("files")
      .set({ deleted_at_ms: nowMs })
      .where("id", "in", expired)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows > 0n) this.onDeleted();
    return Number(numUpdatedRows);
  }

  /**
   * Purges at most `limit` files that are marked as deleted; returns how many there were. Rejects at
   * the first whose bytes are not deleted: each of many would wait as long.
   */
  async purgeDeleted(limit: number): Promise<number> {
    const rows = await this.database
      .selectFrom("files")
      .select("id")
      .where("deleted_at_ms", "is not", null)
      .where("holds", "=", 0)
      .limit(limit)
      .execute();
    for (const { id } of rows) await this.purge(id);
    return rows.length;
  }

  /** Returns the bytes that a workspace stores. */
  async bytesOf(workspaceId: string): Promise<number> {
    const row = await this.database
      .selectFrom("file_usage")
      .select("bytes")
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row?.bytes ?? 0;
  }

  /** Reads a range of a file's content, all of it unless one is named. */
  read(file: FileRecord, range?: { from: number; to: number }): AsyncIterable<Uint8Array> {
    return this.objects.read(file.object, range);
  }

  /** Deletes the row and the bytes of a deleted file that no batch holds. */
  private async purge(id: string): Promise<void> {
    const row = await this.database
      .selectFrom("files")
      .select(["object", "workspace_id", "bytes"])
      .where("id", "=", id)
      .where("deleted_at_ms", "is not", null)
      .where("holds", "=", 0)
      .executeTakeFirst();
    if (row === undefined) return;
    // The bytes go first: a row without bytes is never shown, and is found again by the sweep.
    await this.objects.remove(row.object);
    await this.database.transaction().execute(async (transaction) => {
      const { numDeletedRows } = await transaction
        .deleteFrom("files")
        .where("id", "=", id)
        .executeTakeFirstOrThrow();
      if (numDeletedRows > 0n)
        await countBytes(transaction, { workspaceId: row.workspace_id, bytesMax: 0 }, -row.bytes);
    });
  }
}

/**
 * Counts bytes to a workspace's storage. Returns false, and counts nothing, where they exceed the
 * quota; bytes that are freed are always counted.
 */
export async function countBytes(
  transaction: Transaction<FileTables>,
  { workspaceId, bytesMax }: Quota,
  bytes: number,
): Promise<boolean> {
  await transaction
    .insertInto("file_usage")
    .values({ workspace_id: workspaceId, bytes: 0 })
    .onConflict((conflict) => conflict.column("workspace_id").doNothing())
    .execute();
  let change = transaction
    .updateTable("file_usage")
    .set({ bytes: sql<number>`bytes + ${bytes}` })
    .where("workspace_id", "=", workspaceId);
  if (bytes > 0) change = change.where("bytes", "<=", bytesMax - bytes);
  const { numUpdatedRows } = await change.executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

const isLive = ({ expires_at_ms }: FileTables["files"], nowMs: number): boolean =>
  expires_at_ms === null || expires_at_ms > nowMs;

const columns = recordColumns<Omit<FileRecord, "object">>({
  id: "plain",
  workspaceId: "plain",
  keyId: "plain",
  createdAtMs: "plain",
  expiresAtMs: "plain",
  filename: "plain",
  mimeType: "plain",
  purpose: "plain",
  isOutput: "flag",
});

const rowOf = ({ object, ...file }: FileRecord): FileTables["files"] => ({
  ...columns.rowOf(file),
  bytes: object.bytes,
  object: object.name,
  sealed_key: object.sealedKey,
  holds: 0,
  deleted_at_ms: null,
});

const recordOf = (row: FileTables["files"]): FileRecord => ({
  ...columns.fromRow(row),
  object: {
    name: row.object,
    workspaceId: row.workspace_id,
    sealedKey: row.sealed_key,
    bytes: row.bytes,
  },
});
