import { randomBytes } from "node:crypto";
import { GatewayError } from "../platform/kernel/errors.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import type { Bucket, BucketObject } from "./bucket.ts";
import {
  type ByteRange,
  newObjectKey,
  objectKey,
  openObject,
  sealObject,
  storedRange,
} from "./file-cipher.ts";

/** An encrypted object of a workspace: where it is, and its key, which the vault has sealed. */
export interface StoredObject {
  name: string;
  workspaceId: string;
  sealedKey: string;
  /** The length of the content. */
  bytes: number;
}

/** The part of the vault that seals the keys of objects. */
type ObjectVault = Pick<KeyVault, "sealRecord" | "openRecord" | "learn">;

/** Returns whether a name is one that `write` makes. */
const isOwnName = (name: string): boolean => /^[0-9a-f]{32}$/.test(name);

const placeOf = ({ name, workspaceId }: Pick<StoredObject, "name" | "workspaceId">) => ({
  workspaceId,
  id: name,
  facts: ["object"],
});

/** Options of writing an object. */
interface ObjectLimit {
  /** The most bytes of content. */
  bytesMax: number;
  /** Creates the error for content that is longer. */
  tooLarge(): Error;
}

/**
 * Stores encrypted content in a bucket, streamed both ways. Each object has a key of its own, which
 * is sealed with the data key of its workspace.
 */
export class ObjectStore {
  /** Names of objects that this process writes, or has written without a row so far. */
  readonly unclaimed = new Set<string>();
  /** Receives the errors of deletions that are left to the sweep. */
  readonly onError: (error: unknown) => void;
  private readonly bucket: Bucket;
  private readonly vault: ObjectVault;

  constructor({
    bucket,
    vault,
    onError,
  }: { bucket: Bucket; vault: ObjectVault; onError(error: unknown): void }) {
    this.bucket = bucket;
    this.vault = vault;
    this.onError = onError;
  }

  /** What operators see of the place of all objects. */
  get place(): string {
    return this.bucket.place;
  }

  /**
   * Writes content as it comes. Resolves when it is durable; the caller then claims it with a row,
   * or discards it. Rejects with the error of `pieces`, that of the limit, or `service_unavailable`
   * where the bucket refuses, and leaves nothing.
   */
  async write(
    workspaceId: string,
    pieces: AsyncIterable<Uint8Array>,
    limit: ObjectLimit,
  ): Promise<StoredObject> {
    const name = randomBytes(16).toString("hex");
    const keyBytes = newObjectKey();
    const sealedKey = await this.vault.sealRecord(placeOf({ name, workspaceId }), keyBytes);
    const key = objectKey(keyBytes);
    keyBytes.fill(0);
    const counted = new CountedPieces(pieces, limit);
    this.unclaimed.add(name);
    try {
      await this.bucket.write(name, sealObject(key, counted));
    } catch (error) {
      this.unclaimed.delete(name);
      throw error === counted.failure ? error : this.unavailable(error);
    }
    return { name, workspaceId, sealedKey, bytes: counted.bytes };
  }

  /** Notes that a row names the object. */
  claimed({ name }: StoredObject): void {
    this.unclaimed.delete(name);
  }

  /**
   * Reads a range of the content, all of it unless one is named. Throws `service_unavailable` where
   * the bucket refuses.
   */
  async *read(
    object: StoredObject,
    range: ByteRange = { from: 0, to: object.bytes },
  ): AsyncGenerator<Uint8Array> {
    await this.vault.learn(object.workspaceId);
    const key = objectKey(this.vault.openRecord(placeOf(object), object.sealedKey));
    const stored = this.stored(object.name, storedRange(range, object.bytes));
    yield* openObject(key, { stored, range, contentBytes: object.bytes });
  }

  private async *stored(name: string, range: ByteRange): AsyncGenerator<Uint8Array> {
    try {
      yield* this.bucket.read(name, range);
    } catch (error) {
      throw this.unavailable(error);
    }
  }

  private unavailable(cause: unknown): GatewayError {
    const { code, message } = Object(cause) as { code?: unknown; message?: unknown };
    return new GatewayError(
      "service_unavailable",
      "The storage of files does not answer as it should. Send the request again shortly.",
      {
        cause,
        retryAfterSeconds: 5,
        metadata: { reason: "file_storage" },
        detail: `${this.bucket.place}: ${String(code ?? message)}`,
      },
    );
  }

  /** Deletes an object that is not needed. One that the bucket does not delete now is left to the sweep. */
  discard(name: string): Promise<void> {
    return this.remove(name).catch(this.onError);
  }

  /** Deletes an object. Rejects with the error of the bucket. */
  async remove(name: string): Promise<void> {
    try {
      await this.bucket.remove(name);
    } finally {
      this.unclaimed.delete(name);
    }
  }

  /**
   * Lists the objects of all workspaces. Other content of the directory or the bucket is left out,
   * since it is not the gateway's to delete.
   */
  async *list(): AsyncGenerator<BucketObject> {
    for await (const object of this.bucket.list()) if (isOwnName(object.name)) yield object;
  }
}

/** Passes pieces on, counts their bytes, and throws beyond the limit. */
class CountedPieces implements AsyncIterable<Uint8Array> {
  bytes = 0;
  /** What the pieces, or the limit, ended with. */
  failure: unknown;

  constructor(
    private readonly pieces: AsyncIterable<Uint8Array>,
    private readonly limit: ObjectLimit,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of this.pieces) {
        this.bytes += piece.byteLength;
        if (this.bytes > this.limit.bytesMax) throw this.limit.tooLarge();
        yield piece;
      }
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}
