import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";
import { describe, expect, test } from "bun:test";
import { objectId, readPack, type GitObject, type PackLimits } from "./packfile.ts";

const limits: PackLimits = { objects: 10, objectBytes: 1_000, bytes: 2_000 };

/** The head of an entry: its type and unpacked size. */
function head(type: number, size: number): Buffer {
  const bytes = [(type << 4) | (size & 15)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(rest & 0x7f);
    bytes[bytes.length - 2] = (bytes.at(-2) ?? 0) | 0x80;
  }
  return Buffer.from(bytes);
}

const entry = (type: number, data: Buffer, { size = data.length, base = Buffer.alloc(0) } = {}) =>
  Buffer.concat([head(type, size), base, deflateSync(data)]);

function packOf(entries: readonly Buffer[], { count = entries.length, version = 2 } = {}): Buffer {
  const start = Buffer.alloc(12);
  start.write("PACK");
  start.writeUInt32BE(version, 4);
  start.writeUInt32BE(count, 8);
  const body = Buffer.concat([start, ...entries]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

const blob = (text: string): GitObject => ({ type: "blob", data: Buffer.from(text) });
const idOf = (object: GitObject): string => objectId(object, "sha1");
const read = (pack: Buffer, own: Partial<PackLimits> = {}) =>
  readPack(pack, "sha1", { ...limits, ...own });

/** A delta: sizes of base and result, then its instructions. */
const delta = (from: number, to: number, ...instructions: number[]): Buffer =>
  Buffer.from([from, to, ...instructions]);

describe("a packfile", () => {
  test("returns objects under their git ids", () => {
    const objects = read(packOf([entry(3, Buffer.from("hello\n")), entry(3, Buffer.alloc(0))]));
    expect([...objects.keys()]).toEqual([
      "ce013625030ba8dba906f756967f9e9ca394464a",
      "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    ]);
  });

  test("resolves deltas by offset and by id, in any order", () => {
    const base = entry(3, Buffer.from("hello\n"));
    const byOffset = entry(6, delta(6, 5, 0x90, 2, 3, 0x61, 0x62, 0x63), {
      base: Buffer.from([base.length]),
    });
    const late = blob("later");
    const byId = entry(7, delta(5, 6, 0x90, 5, 1, 0x21), {
      base: Buffer.from(idOf(late), "hex"),
    });
    const objects = read(packOf([base, byOffset, byId, entry(3, late.data)]));
    expect(objects.get(idOf(blob("heabc")))?.data.toString()).toBe("heabc");
    expect(objects.get(idOf(blob("later!")))?.data.toString()).toBe("later!");
  });

  const hello = Buffer.from("hello\n");
  const sound = packOf([entry(3, hello)]);
  const flipped = Buffer.from(sound);
  flipped[14] = (flipped[14] ?? 0) ^ 1;
  const differing = (changes: Buffer): Buffer =>
    packOf([entry(3, hello), entry(6, changes, { base: Buffer.from([entry(3, hello).length]) })]);

  test.each<[string, Buffer, string]>([
    ["is empty", Buffer.alloc(0), "damaged"],
    ["is not a pack", Buffer.from("<html>".padEnd(64)), "damaged"],
    ["has an unsupported version", packOf([entry(3, hello)], { version: 4 }), "damaged"],
    ["is truncated", sound.subarray(0, -5), "damaged"],
    ["has a wrong checksum", flipped, "damaged"],
    ["declares more objects than it has", packOf([entry(3, hello)], { count: 2 }), "damaged"],
    ["declares fewer objects than it has", packOf([entry(3, hello)], { count: 0 }), "damaged"],
    ["declares too many objects", packOf([], { count: 4_000_000_000 }), "too large"],
    ["has an unknown type", packOf([entry(5, hello)]), "damaged"],
    ["unpacks to too many bytes", packOf([entry(3, Buffer.alloc(900), { size: 6 })]), "damaged"],
    ["unpacks to too few bytes", packOf([entry(3, hello, { size: 700 })]), "damaged"],
    ["has an object of gigabytes", packOf([entry(3, hello, { size: 2 ** 40 })]), "too large"],
    ["has a large object", packOf([entry(3, Buffer.alloc(1_001))]), "too large"],
    [
      "has many objects that exceed the limit together",
      packOf([0, 1, 2].map((fill) => entry(3, Buffer.alloc(900, fill)))),
      "too large",
    ],
    [
      "has a delta against a missing object",
      packOf([entry(7, delta(1, 1, 1, 1), { base: Buffer.alloc(20) })]),
      "damaged",
    ],
    [
      "has a delta against an offset before the pack",
      packOf([entry(6, delta(1, 1), { base: Buffer.from([0xff, 0xff, 0x7f]) })]),
      "damaged",
    ],
    ["has a self-delta", packOf([entry(6, delta(1, 1), { base: Buffer.from([0]) })]), "damaged"],
    ["has a delta that copies past its base", differing(delta(6, 9, 0x90, 9)), "damaged"],
    ["has a delta with too many bytes", differing(delta(6, 5, 0x90, 6)), "damaged"],
    ["has a delta with too few bytes", differing(delta(6, 7, 0x90, 6)), "damaged"],
    ["has a delta with a wrong base size", differing(delta(7, 6, 0x90, 6)), "damaged"],
    ["has a delta that ends within an instruction", differing(delta(6, 6, 5, 1)), "damaged"],
    ["has a delta with an empty instruction", differing(delta(6, 6, 0)), "damaged"],
    ["has a delta that expands too far", differing(delta(6, 0xff, 0xff, 0xff, 0x7f)), "too large"],
  ])("that %s is refused", (_, pack, problem) => {
    expect(() => read(pack)).toThrow(problem);
  });
});
