import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";

/** The file beside a database that holds what its open transaction has not committed yet. */
export const journalPath = (databasePath: string): string => `${databasePath}.commits`;

/** What tells the journal's records of one transaction from those of every other, in whatever copy of the database. */
export const newMark = (): string => randomBytes(8).toString("hex");

/** The journal's size; it never grows, so that nothing but the record itself has to reach the disk. */
const journalBytes = 256 * 1024;

const newline = 0x0a;
const checksumDigits = 8;

/**
 * Records of batches, one line each: the mark of the transaction that they belong to, a checksum, the batch as JSON. A record
 * counts only while the database holds its mark, so that the commit of the transaction strikes out all of them at once, and
 * the file is written over from its beginning.
 */
export class CommitJournal {
  readonly #file: number;
  readonly #reachesDisk: boolean;
  readonly #bytes = new Uint8Array(journalBytes);
  readonly #encoder = new TextEncoder();
  #mark = "";
  #end = 0;

  /** With `reachesDisk`, a record survives the loss of power once `append` returns; without, the end of the process. */
  constructor(path: string, { reachesDisk }: { reachesDisk: boolean }) {
    this.#reachesDisk = reachesDisk;
    this.#file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const { size } = fstatSync(this.#file);
    if (size < journalBytes) this.#fill(path, size);
  }

  /** Begins anew with another mark; for when a database holds the mark durably. */
  restart(mark: string): void {
    this.#mark = mark;
    this.#end = 0;
  }

  /** Writes a batch down, or returns false where it does not fit. Throws what the system says; the record may then stand or not. */
  append(json: string): boolean {
    const begin = this.#end + this.#mark.length + checksumDigits;
    if (begin + json.length >= journalBytes) return false;
    const { read, written } = this.#encoder.encodeInto(json, this.#bytes.subarray(begin, -1));
    if (read < json.length) return false;
    const checksum = checksumOf(this.#bytes.subarray(begin, begin + written));
    this.#encoder.encodeInto(this.#mark + checksum, this.#bytes.subarray(this.#end));
    this.#bytes[begin + written] = newline;
    const length = begin + written + 1 - this.#end;
    if (writeSync(this.#file, this.#bytes, this.#end, length, this.#end) < length)
      throw shortWrite();
    if (this.#reachesDisk) fdatasyncSync(this.#file);
    this.#end += length;
    return true;
  }

  /** The batches that stand under a mark, in order, up to the first that was not written to its end. */
  read(mark: string): string[] {
    const bytes = Buffer.from(this.#bytes.buffer);
    readSync(this.#file, bytes, 0, journalBytes, 0);
    const batches: string[] = [];
    for (let at = 0; ; ) {
      const begin = at + mark.length + checksumDigits;
      const end = bytes.indexOf(newline, begin);
      if (end === -1) return batches;
      const record = bytes.subarray(begin, end);
      if (bytes.toString("latin1", at, begin) !== mark + checksumOf(record)) return batches;
      batches.push(record.toString());
      at = end + 1;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Gives the file its size, and makes it and its name in the directory last. */
  #fill(path: string, size: number): void {
    writeSync(this.#file, this.#bytes, size, journalBytes - size, size);
    fsyncSync(this.#file);
    const directory = openSync(dirname(path), "r");
    fsyncSync(directory);
    closeSync(directory);
  }
}

const checksumOf = (record: Uint8Array): string =>
  Bun.hash.crc32(record).toString(16).padStart(checksumDigits, "0");

const shortWrite = (): Error =>
  Object.assign(new Error("the journal of commits was not written whole"), { code: "ENOSPC" });
