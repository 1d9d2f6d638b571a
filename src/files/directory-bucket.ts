import { type FileHandle, mkdir, open, opendir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Bucket, BucketObject } from "./bucket.ts";
import type { ByteRange } from "./file-cipher.ts";

/** Bytes that are read from the disk at once. */
const readBytes = 256 * 1024;

/** A bucket in a directory, which only the gateway's user can read. */
export class DirectoryBucket implements Bucket {
  readonly place: string;

  constructor(directory: string) {
    this.place = directory;
  }

  async write(name: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    const path = this.pathOf(name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, "wx", 0o600);
    try {
      for await (const piece of pieces) await writeWhole(file, piece);
      await file.datasync();
    } catch (error) {
      await file.close();
      await rm(path, { force: true });
      throw error;
    }
    await file.close();
  }

  async *read(name: string, { from, to }: ByteRange): AsyncGenerator<Uint8Array> {
    const file = await open(this.pathOf(name), "r");
    try {
      for (let position = from; position < to; ) {
        const buffer = Buffer.allocUnsafe(Math.min(readBytes, to - position));
        const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, position);
        if (bytesRead === 0) return;
        position += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.pathOf(name), { force: true });
  }

  async *list(): AsyncGenerator<BucketObject> {
    for await (const shelf of entriesOf(this.place)) {
      for await (const name of entriesOf(join(this.place, shelf))) {
        const facts = await stat(join(this.place, shelf, name)).catch(() => undefined);
        if (facts?.isFile() === true) yield { name, writtenAtMs: facts.mtimeMs };
      }
    }
  }

  /** Objects are spread over directories by the last digits of their names, which are random. */
  private pathOf(name: string): string {
    return join(this.place, name.slice(-2), name);
  }
}

/** Lists the names in a directory; none where it does not exist. */
async function* entriesOf(path: string): AsyncGenerator<string> {
  const directory = await opendir(path).catch(() => undefined);
  if (directory === undefined) return;
  for await (const { name } of directory) yield name;
}

/** Writes all bytes: the system may take a part of them, as on a disk that is nearly full. */
async function writeWhole(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.byteLength; )
    written += (await file.write(bytes, written, bytes.byteLength - written)).bytesWritten;
}
