import { createHash } from "node:crypto";
import { type Kysely, sql, type Transaction } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import { newId } from "../platform/kernel/ids.ts";
import {
  countBytes,
  type FilePurpose,
  type FileRecord,
  type FileStore,
  type FileTables,
} from "./file-store.ts";
import type { ObjectStore, StoredObject } from "./object-store.ts";

/** The states of an upload, as OpenAI has them. */
type UploadStatus = "pending" | "completed" | "cancelled" | "expired";

/** A file that is uploaded in parts. */
export interface Upload {
  /** An `upload_` id. */
  id: string;
  workspaceId: string;
  keyId: string | null;
  createdAtMs: number;
  expiresAtMs: number;
  filename: string;
  mimeType: string;
  purpose: FilePurpose;
  /** The length of the whole file, as its caller declared it. */
  bytes: number;
  /** Seconds for which the file is kept; null permanently. */
  fileExpiresSeconds: number | null;
  status: UploadStatus;
  fileId: string | null;
}

/** How an upload was completed, or why it could not be. */
export type Completion =
  | { ok: true; upload: Upload; file: FileRecord }
  | { ok: false; reason: "not_pending" | "unknown_part" | "wrong_length" | "wrong_md5" | "quota" };

/** The milliseconds within which an upload has to be completed (OpenAI: one hour). */
const uploadMs = 3_600_000;

/** The most bytes of all parts of an upload together, those that are not used included. */
const receivedBytesMax = 8 * 1024 ** 3;

/** Stores uploads and their parts. Every lookup names the workspace. */
export class UploadStore {
  private readonly database: Kysely<FileTables>;
  private readonly objects: ObjectStore;
  private readonly files: FileStore;
  private readonly clock: Clock;

  constructor(parts: {
    database: Kysely<FileTables>;
    objects: ObjectStore;
    files: FileStore;
    clock: Clock;
  }) {
    this.database = parts.database;
    this.objects = parts.objects;
    this.files = parts.files;
    this.clock = parts.clock;
  }

  /** Begins an upload. */
  async begin(
    asked: Omit<Upload, "id" | "createdAtMs" | "expiresAtMs" | "status" | "fileId">,
  ): Promise<Upload> {
    const createdAtMs = this.clock.nowMs();
    const upload: Upload = {
      ...asked,
      id: newId("upload", createdAtMs),
      createdAtMs,
      expiresAtMs: createdAtMs + uploadMs,
      status: "pending",
      fileId: null,
    };
    await this.database
      .insertInto("uploads")
      .values({
        id: upload.id,
        workspace_id: upload.workspaceId,
        key_id: upload.keyId,
        created_at_ms: createdAtMs,
        expires_at_ms: upload.expiresAtMs,
        filename: upload.filename,
        mime_type: upload.mimeType,
        purpose: upload.purpose,
        bytes: upload.bytes,
        received_bytes: 0,
        file_expires_s: upload.fileExpiresSeconds,
        status: "pending",
        file_id: null,
      })
      .execute();
    return upload;
  }

  /** Returns an upload. One that is over time counts as expired, although it is swept later. */
  async find(workspaceId: string, id: string): Promise<Upload | undefined> {
    const row = await this.database
      .selectFrom("uploads")
      .selectAll()
      .where("id", "=", id)
      .where("workspace_id", "=", workspaceId)
      .executeTakeFirst();
    return row && uploadOf(row, this.clock.nowMs());
  }

  /**
   * Adds a stored object as a part, and returns its id. Where the upload is not pending any more or
   * the storage is full, the object is deleted and the reason returned.
   */
  async addPart(
    { id, workspaceId }: Upload,
    object: StoredObject,
    bytesMax: number,
  ): Promise<{ id: string } | { reason: "not_pending" | "quota" }> {
    const partId = newId("part", this.clock.nowMs());
    const { bytes } = object;
    const adding = this.database.transaction().execute(async (transaction) => {
      if (!(await countBytes(transaction, { workspaceId, bytesMax }, bytes))) return "quota";
      const { numUpdatedRows } = await transaction
        .updateTable("uploads")
        .set({ received_bytes: sql<number>`received_bytes + ${bytes}` })
        .where("id", "=", id)
        .where("status", "=", "pending")
        .where("received_bytes", "<=", receivedBytesMax - bytes)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) {
        await countBytes(transaction, { workspaceId, bytesMax }, -bytes);
        return "not_pending";
      }
      await transaction
        .insertInto("upload_parts")
        .values({
          id: partId,
          upload_id: id,
          workspace_id: workspaceId,
          bytes,
          object: object.name,
          sealed_key: object.sealedKey,
        })
        .execute();
      return "ok";
    });
    const added = await adding.catch(async (error: unknown) => {
      await this.objects.discard(object.name);
      throw error;
    });
    if (added === "ok") {
      this.objects.claimed(object);
      return { id: partId };
    }
    await this.objects.discard(object.name);
    return { reason: added };
  }

  /** Makes a file of the named parts, in their order. */
  async complete(
    upload: Upload,
    {
      partIds,
      md5,
      bytesMax,
    }: { partIds: readonly string[]; md5?: string | undefined; bytesMax: number },
  ): Promise<Completion> {
    if (upload.status !== "pending") return { ok: false, reason: "not_pending" };
    const all = await this.partsOf(upload.id);
    const parts = partIds.map((id) => all.get(id));
    if (parts.length === 0 || new Set(partIds).size !== partIds.length || !allFound(parts))
      return { ok: false, reason: "unknown_part" };
    if (sumOf(parts) !== upload.bytes) return { ok: false, reason: "wrong_length" };
    const hash = createHash("md5");
    let object: StoredObject;
    try {
      object = await this.objects.write(upload.workspaceId, this.joined(parts, hash), {
        bytesMax: upload.bytes,
        tooLarge: () => new Error("the parts of an upload are longer than their rows say"),
      });
    } catch (error) {
      // Another request has ended the upload, and deleted the parts while they were read.
      const current = await this.find(upload.workspaceId, upload.id);
      if (current?.status === "pending") throw error;
      return { ok: false, reason: "not_pending" };
    }
    if (md5 !== undefined && hash.digest("hex") !== md5.toLowerCase()) {
      await this.objects.discard(object.name);
      return { ok: false, reason: "wrong_md5" };
    }
    let reason: "not_pending" | "quota" = "quota";
    const file = await this.files.add(object, fileOf(upload, this.clock.nowMs()), {
      bytesMax,
      alongside: async (transaction, { id }) => {
        // Of two requests at once, one makes the file.
        const isEnded = await endUpload(transaction, upload, { status: "completed", file_id: id });
        if (!isEnded) reason = "not_pending";
        return isEnded;
      },
    });
    if (file === undefined) return { ok: false, reason };
    await this.remove([...all.values()]);
    return { ok: true, upload: { ...upload, status: "completed", fileId: file.id }, file };
  }

  /** Cancels a pending upload and deletes its parts. Returns false where it is not pending. */
  cancel(upload: Upload): Promise<boolean> {
    return this.end(upload, "cancelled");
  }

  /** Ends uploads that are over time. */
  async sweep(): Promise<void> {
    const overdue = await this.database
      .selectFrom("uploads")
      .selectAll()
      .where("status", "=", "pending")
      .where("expires_at_ms", "<=", this.clock.nowMs())
      .limit(100)
      .execute();
    for (const row of overdue) await this.end(uploadOf(row, 0), "expired");
  }

  private async partsOf(uploadId: string): Promise<Map<string, StoredObject>> {
    const rows = await this.database
      .selectFrom("upload_parts")
      .selectAll()
      .where("upload_id", "=", uploadId)
      .execute();
    return new Map(
      rows.map((row) => [
        row.id,
        {
          name: row.object,
          workspaceId: row.workspace_id,
          sealedKey: row.sealed_key,
          bytes: row.bytes,
        },
      ]),
    );
  }

  private async *joined(
    parts: readonly StoredObject[],
    hash: { update(bytes: Uint8Array): unknown },
  ): AsyncGenerator<Uint8Array> {
    for (const part of parts) {
      for await (const piece of this.objects.read(part)) {
        hash.update(piece);
        yield piece;
      }
    }
  }

  private async end(upload: Upload, status: "cancelled" | "expired"): Promise<boolean> {
    const parts = await this.partsOf(upload.id);
    const isEnded = await this.database
      .transaction()
      .execute((transaction) => endUpload(transaction, upload, { status }));
    if (isEnded) await this.remove([...parts.values()]);
    return isEnded;
  }

  /** Deletes parts. From the first that is not deleted on, they are left to the sweep. */
  private async remove(parts: readonly StoredObject[]): Promise<void> {
    try {
      for (const { name } of parts) await this.objects.remove(name);
    } catch (error) {
      this.objects.onError(error);
    }
  }
}

/** Ends a pending upload, and deletes the rows of its parts, whose bytes do not count any more. */
async function endUpload(
  transaction: Transaction<FileTables>,
  { id, workspaceId }: Upload,
  change: { status: UploadStatus; file_id?: string },
): Promise<boolean> {
  const { numUpdatedRows } = await transaction
    .updateTable("uploads")
    .set(change)
    .where("id", "=", id)
    .where("status", "=", "pending")
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) return false;
  const parts = await transaction
    .deleteFrom("upload_parts")
    .where("upload_id", "=", id)
    .returning("bytes")
    .execute();
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  await countBytes(transaction, { workspaceId, bytesMax: 0 }, -bytes);
  return true;
}

const allFound = (parts: readonly (StoredObject | undefined)[]): parts is StoredObject[] =>
  parts.every((part) => part !== undefined);

const sumOf = (parts: readonly StoredObject[]): number =>
  parts.reduce((sum, { bytes }) => sum + bytes, 0);

const fileOf = (upload: Upload, nowMs: number) => ({
  keyId: upload.keyId,
  filename: upload.filename,
  mimeType: upload.mimeType,
  purpose: upload.purpose,
  isOutput: false,
  expiresAtMs:
    upload.fileExpiresSeconds === null ? null : nowMs + upload.fileExpiresSeconds * 1_000,
});

const uploadOf = (row: FileTables["uploads"], nowMs: number): Upload => ({
  id: row.id,
  workspaceId: row.workspace_id,
  keyId: row.key_id,
  createdAtMs: row.created_at_ms,
  expiresAtMs: row.expires_at_ms,
  filename: row.filename,
  mimeType: row.mime_type,
  purpose: row.purpose as FilePurpose,
  bytes: row.bytes,
  fileExpiresSeconds: row.file_expires_s,
  status:
    row.status === "pending" && row.expires_at_ms <= nowMs
      ? "expired"
      : (row.status as UploadStatus),
  fileId: row.file_id,
});
