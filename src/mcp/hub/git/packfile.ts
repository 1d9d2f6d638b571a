import { createHash } from "node:crypto";
import { inflateSync, type InputType, type Zlib } from "node:zlib";

/** The two hash functions by which repositories name their objects. */
export type ObjectFormat = "sha1" | "sha256";

type ObjectType = "commit" | "tree" | "blob" | "tag";

/** An object of a repository. */
export interface GitObject {
  type: ObjectType;
  data: Buffer;
}

/** Objects by their hexadecimal id, computed from their content. */
export type GitObjects = Map<string, GitObject>;

/** Bounds on what a pack unpacks to. Small packs may expand to gigabytes. */
export interface PackLimits {
  objects: number;
  /** The most bytes of one object. */
  objectBytes: number;
  /** The most bytes of all objects together. */
  bytes: number;
}

/**
 * Thrown where a repository cannot be read. The message quotes nothing that the other side sent.
 */
export class GitError extends Error {}

const damaged = (): GitError => new GitError("sent a damaged packfile");
const tooLarge = (): GitError => new GitError("is too large to be read");

const idBytes = { sha1: 20, sha256: 32 } as const;
const typeByNumber: Readonly<Record<number, ObjectType>> = {
  1: "commit",
  2: "tree",
  3: "blob",
  4: "tag",
};
const offsetDelta = 6;
const referenceDelta = 7;

/** Returns the id of an object. */
export const objectId = ({ type, data }: GitObject, format: ObjectFormat): string =>
  createHash(format).update(`${type} ${data.length}\0`).update(data).digest("hex");

/** An object that is stored as its difference from another one. */
interface Delta {
  at: number;
  base: number | string;
  changes: Buffer;
}

const inflatedWithEngine = (
  input: InputType,
  maxOutputLength: number,
): { buffer: Buffer; engine: Zlib } =>
  inflateSync(input, { info: true, maxOutputLength }) as unknown as {
    buffer: Buffer;
    engine: Zlib;
  };

/**
 * Reads a packfile (git, gitformat-pack), versions 2 and 3. Every object's id is computed from its
 * content, so that a forged one cannot replace another. Throws `GitError`.
 */
export function readPack(pack: Buffer, format: ObjectFormat, limits: PackLimits): GitObjects {
  return new PackReader(pack, format, limits).read();
}

class PackReader {
  private readonly end: number;
  private at = 12;
  private bytes = 0;
  private readonly byOffset = new Map<number, GitObject>();
  private readonly byId: GitObjects = new Map();
  private deltas: Delta[] = [];

  constructor(
    private readonly pack: Buffer,
    private readonly format: ObjectFormat,
    private readonly limits: PackLimits,
  ) {
    this.end = pack.length - idBytes[format];
  }

  read(): GitObjects {
    const { pack, format, limits, end } = this;
    if (end < 12 || pack.toString("latin1", 0, 4) !== "PACK") throw damaged();
    if (![2, 3].includes(pack.readUInt32BE(4))) throw damaged();
    const sum = createHash(format).update(pack.subarray(0, end)).digest();
    if (!sum.equals(pack.subarray(end))) throw damaged();
    const count = pack.readUInt32BE(8);
    if (count > limits.objects) throw tooLarge();
    for (let index = 0; index < count; index += 1) this.readEntry();
    if (this.at !== end) throw damaged();
    this.resolveDeltas();
    return this.byId;
  }

  private readEntry(): void {
    const start = this.at;
    const { type, size } = this.readHead();
    if (type === offsetDelta) {
      const base = start - this.readDistance();
      this.deltas.push({ at: start, base, changes: this.inflate(size) });
      return;
    }
    if (type === referenceDelta) {
      const length = idBytes[this.format];
      const base = this.pack.toString("hex", this.at, this.at + length);
      this.at += length;
      this.deltas.push({ at: start, base, changes: this.inflate(size) });
      return;
    }
    const name = typeByNumber[type];
    if (name === undefined) throw damaged();
    this.keep(start, { type: name, data: this.inflate(size) });
  }

  /**
   * Reads the type and unpacked size of an entry: four bits of the size in the first byte, then
   * seven in each.
   */
  private readHead(): { type: number; size: number } {
    const first = this.byte();
    let size = first & 15;
    let unit = 16;
    for (let byte = first; byte & 0x80; unit *= 128) {
      byte = this.byte();
      size += (byte & 0x7f) * unit;
      if (size > this.limits.objectBytes) throw tooLarge();
    }
    return { type: (first >> 4) & 7, size };
  }

  /** Reads how far before an entry its base begins. */
  private readDistance(): number {
    let byte = this.byte();
    let distance = byte & 0x7f;
    while (byte & 0x80) {
      byte = this.byte();
      distance = (distance + 1) * 128 + (byte & 0x7f);
      if (distance > this.end) throw damaged();
    }
    return distance;
  }

  private byte(): number {
    if (this.at >= this.end) throw damaged();
    return this.pack[this.at++] ?? 0;
  }

  /** Unpacks the data at the current position, which has to have exactly the declared size. */
  private inflate(size: number): Buffer {
    this.count(size);
    let unpacked: { buffer: Buffer; engine: Zlib };
    try {
      unpacked = inflatedWithEngine(this.pack.subarray(this.at, this.end), Math.max(size, 1));
    } catch {
      throw damaged();
    }
    const { buffer, engine } = unpacked;
    if (buffer.length !== size) throw damaged();
    this.at += engine.bytesWritten;
    return buffer;
  }

  private count(bytes: number): void {
    this.bytes += bytes;
    if (bytes > this.limits.objectBytes || this.bytes > this.limits.bytes) throw tooLarge();
  }

  private keep(at: number, object: GitObject): void {
    this.byOffset.set(at, object);
    this.byId.set(objectId(object, this.format), object);
  }

  /** Builds the objects that were sent as differences, each once its base exists. */
  private resolveDeltas(): void {
    while (this.deltas.length > 0) {
      const waiting: Delta[] = [];
      for (const delta of this.deltas) {
        const { base } = delta;
        const object = typeof base === "number" ? this.byOffset.get(base) : this.byId.get(base);
        if (object === undefined) waiting.push(delta);
        else this.keep(delta.at, { type: object.type, data: this.apply(object.data, delta) });
      }
      if (waiting.length === this.deltas.length) throw damaged();
      this.deltas = waiting;
    }
  }

  private apply(base: Buffer, { changes }: Delta): Buffer {
    const reader = { at: 0 };
    if (readSize(changes, reader) !== base.length) throw damaged();
    const size = readSize(changes, reader);
    this.count(size);
    const result = Buffer.alloc(size);
    let written = 0;
    while (reader.at < changes.length) {
      const piece = readPiece(changes, reader, base);
      if (written + piece.length > size) throw damaged();
      piece.copy(result, written);
      written += piece.length;
    }
    if (written !== size) throw damaged();
    return result;
  }
}

function nextByte(from: Buffer, reader: { at: number }): number {
  const byte = from[reader.at++];
  if (byte === undefined) throw damaged();
  return byte;
}

function readSize(from: Buffer, reader: { at: number }): number {
  let size = 0;
  for (let unit = 1; ; unit *= 128) {
    const byte = nextByte(from, reader);
    size += (byte & 0x7f) * unit;
    if (size > 0xffffffff) throw tooLarge();
    if (!(byte & 0x80)) return size;
  }
}

/** Reads the next piece of a delta's result: a part of the base, or bytes of its own. */
function readPiece(changes: Buffer, reader: { at: number }, base: Buffer): Buffer {
  const code = nextByte(changes, reader);
  if (code === 0) throw damaged();
  if (!(code & 0x80)) {
    const end = reader.at + code;
    if (end > changes.length) throw damaged();
    const piece = changes.subarray(reader.at, end);
    reader.at = end;
    return piece;
  }
  const numberOf = (bits: readonly number[]): number =>
    bits.reduce(
      (sum, bit, index) => (code & bit ? sum + nextByte(changes, reader) * 256 ** index : sum),
      0,
    );
  const offset = numberOf([1, 2, 4, 8]);
  const length = numberOf([16, 32, 64]) || 0x10000;
  if (offset + length > base.length) throw damaged();
  return base.subarray(offset, offset + length);
}
