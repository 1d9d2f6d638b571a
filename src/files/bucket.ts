import type { ByteRange } from "./file-cipher.ts";

/** An object in a bucket. */
export interface BucketObject {
  name: string;
  writtenAtMs: number;
}

/**
 * Stores objects by name: a directory, or a bucket of an S3 service. Names are chosen by the
 * gateway: letters, digits and dashes.
 */
export interface Bucket {
  /** What operators see of its place, without credentials. */
  readonly place: string;
  /**
   * Writes an object. Resolves when it is durable. Rejects with the error of `pieces` or of the
   * bucket, and then leaves no object, unless the bucket does not answer.
   */
  write(name: string, pieces: AsyncIterable<Uint8Array>): Promise<void>;
  /** Reads a range of an object as it is consumed. */
  read(name: string, range: ByteRange): AsyncIterable<Uint8Array>;
  /** Deletes an object. Resolves as well where there is none. */
  remove(name: string): Promise<void>;
  /** Lists all objects, in any order. */
  list(): AsyncIterable<BucketObject>;
}
