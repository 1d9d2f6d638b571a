import { S3Client } from "bun";
import { withinTime } from "../platform/kernel/time/within-time.ts";
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

/** Bytes of a part of a multipart upload: the least that S3 takes. It takes at most 10,000 parts. */
const partBytes = 5 * 1024 * 1024;

/** Milliseconds in which the service takes a part, sends bytes or answers; then it counts as silent. */
const silentAfterMs = 30_000;

/** The service took too long. */
class SilenceError extends Error {}

const silence = Symbol("silence");

/** Resolves with what the service answers. Rejects with `SilenceError` where it is silent. */
async function answered<Answer>(answer: Answer | Promise<Answer>): Promise<Answer> {
  const inTime = await withinTime(silentAfterMs, Promise.resolve(answer), silence);
  if (inTime === silence) throw new SilenceError(`silent for ${silentAfterMs / 1000} s`);
  return inTime;
}

/**
 * A bucket of AWS S3 or of a compatible service, through the platform's own client. Each operation
 * rejects where the service is silent, so that none waits for as long as the client would.
 */
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
        await answered(writer.flush());
        waitingBytes = 0;
      }
      await answered(writer.end());
    } catch (error) {
      const abandoned = this.abandon(name, writer, error);
      // A service that is silent is not waited for again: the sweep removes what it keeps.
      if (!(error instanceof SilenceError)) await abandoned;
      throw error;
    }
  }

  async *read(name: string, { from, to }: ByteRange): AsyncGenerator<Uint8Array> {
    const reader = this.client
      .file(this.prefix + name)
      .slice(from, to)
      .stream()
      .getReader();
    try {
      for (;;) {
        const { done, value } = await answered(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      reader.cancel().catch(() => undefined);
    }
  }

  async remove(name: string): Promise<void> {
    await answered(this.client.delete(this.prefix + name));
  }

  async *list(): AsyncGenerator<BucketObject> {
    let startAfter: string | undefined;
    for (;;) {
      const asked = this.client.list({
        prefix: this.prefix,
        maxKeys: 1_000,
        ...(startAfter !== undefined && { startAfter }),
      });
      const page = await answered(asked);
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
      await answered(writer.end(error instanceof Error ? error : new Error(String(error))));
    } catch {
      // The write has failed already.
    }
    await this.remove(name).catch(() => undefined);
  }
}
