import { S3Client } from "bun";
import type { Bucket, BucketObject } from "./bucket.ts";
import type { ByteRange } from "./file-cipher.ts";

/** The address and the credentials of a bucket. Absent ones are those of the platform's client. */
export interface S3Place {
  bucket: string;
  /** The names of objects begin with it and a slash; empty for none. */
  prefix: string;
  /** The address of a service other than AWS, such as `http://127.0.0.1:9000`. */
  endpoint?: string | undefined;
  region?: string | undefined;
  accessKeyId?: string | undefined;
  secretAccessKey?: string | undefined;
  sessionToken?: string | undefined;
}

/** Bytes of a part of a multipart upload; S3 takes at least 5 MiB, and at most 10,000 parts. */
const partBytes = 8 * 1024 * 1024;

/** A bucket of AWS S3 or of a compatible service, through the platform's own client. */
export class S3Bucket implements Bucket {
  readonly place: string;
  private readonly client: S3Client;
  private readonly prefix: string;

  constructor({ bucket, prefix, endpoint, region, ...credentials }: S3Place) {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    this.prefix = prefix === "" ? "" : `${prefix}/`;
    this.place = `s3://${bucket}/${prefix}`;
    this.client = new S3Client({
      bucket,
      ...(endpoint !== undefined && { endpoint }),
      ...(region !== undefined && { region }),
      ...(accessKeyId !== undefined && { accessKeyId }),
      ...(secretAccessKey !== undefined && { secretAccessKey }),
      ...(sessionToken !== undefined && { sessionToken }),
    });
  }

  async write(name: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    const writer = this.client
      .file(this.prefix + name)
      .writer({ partSize: partBytes, queueSize: 2 });
    let waitingBytes = 0;
    try {
      for await (const piece of pieces) {
        writer.write(piece);
        waitingBytes += piece.byteLength;
        if (waitingBytes < partBytes) continue;
        // Waits for the parts in flight, so that a fast sender does not fill the memory.
        await writer.flush();
        waitingBytes = 0;
      }
      await writer.end();
    } catch (error) {
      await this.abandon(name, writer, error);
      throw error;
    }
  }

  read(name: string, { from, to }: ByteRange): AsyncIterable<Uint8Array> {
    return this.client
      .file(this.prefix + name)
      .slice(from, to)
      .stream();
  }

  async remove(name: string): Promise<void> {
    await this.client.delete(this.prefix + name);
  }

  async *list(): AsyncGenerator<BucketObject> {
    let startAfter: string | undefined;
    for (;;) {
      const page = await this.client.list({
        prefix: this.prefix,
        maxKeys: 1_000,
        ...(startAfter !== undefined && { startAfter }),
      });
      const objects = page.contents ?? [];
      for (const { key, lastModified } of objects)
        yield {
          name: key.slice(this.prefix.length),
          writtenAtMs: lastModified === undefined ? 0 : Date.parse(lastModified),
        };
      const last = objects.at(-1)?.key;
      if (!page.isTruncated || last === undefined) return;
      startAfter = last;
    }
  }

  /** Ends a write that failed, and removes what may have been written of it. */
  private async abandon(
    name: string,
    writer: { end(error?: Error): number | Promise<number> },
    error: unknown,
  ): Promise<void> {
    try {
      await writer.end(error instanceof Error ? error : new Error(String(error)));
    } catch {
      // The write has failed already.
    }
    await this.remove(name).catch(() => undefined);
  }
}
