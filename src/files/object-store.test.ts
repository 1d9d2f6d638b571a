import { afterAll, describe, expect, spyOn, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { putMigratedSqlite } from "../../test/support/migrated-sqlite.ts";
import { systemClock } from "../platform/kernel/clock.ts";
import { migrations } from "../platform/storage/migrations/index.ts";
import { openStorage } from "../platform/storage/open-storage.ts";
import type { StoredObject } from "./object-store.ts";
import { DirectoryBucket } from "./directory-bucket.ts";
import { segmentBytes } from "./file-cipher.ts";
import { FileStore, type FileTables } from "./file-store.ts";
import { FileSweep } from "./file-sweep.ts";
import { ObjectStore } from "./object-store.ts";
import { type Upload, UploadStore } from "./upload-store.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-objects-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A vault that seals nothing. */
const vault = {
  sealRecord: async (_: unknown, plain: Uint8Array) => Buffer.from(plain).toString("base64"),
  openRecord: (_: unknown, sealed: string) => Buffer.from(sealed, "base64"),
  learn: async () => undefined,
};

const bucket = new DirectoryBucket(directory);
const refusals: unknown[] = [];
const objects = new ObjectStore({ bucket, vault, onError: (error) => refusals.push(error) });

const contentOf = (bytes: number): Buffer =>
  Buffer.from(Uint8Array.from({ length: bytes }, (_, index) => (index * 31) % 251));

async function* inPieces(content: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.byteLength; at += size) yield content.subarray(at, at + size);
}

const limit = { bytesMax: 1e9, tooLarge: () => new Error("too large") };

const write = (content: Buffer, size = 1000): Promise<StoredObject> =>
  objects.write("ws_1", inPieces(content, size), limit);

async function read(object: StoredObject, range?: { from: number; to: number }): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of objects.read(object, range)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const pathOf = ({ name }: StoredObject): string => join(directory, name.slice(-2), name);

describe("an object", () => {
  const sizes = [0, 1, segmentBytes - 1, segmentBytes, segmentBytes + 1, 3 * segmentBytes];
  test.each(sizes)("of %p bytes is read as it was written", async (bytes) => {
    for (const size of [777, segmentBytes, 200_000]) {
      const content = contentOf(bytes);
      const object = await write(content, size);
      expect(object.bytes).toBe(bytes);
      expect((await read(object)).equals(content)).toBe(true);
      await objects.remove(object.name);
    }
  });

  test("is read in ranges over segments", async () => {
    const content = contentOf(3 * segmentBytes + 10);
    const object = await write(content);
    const edges = [0, 1, segmentBytes - 1, segmentBytes, 2 * segmentBytes, content.byteLength];
    for (const from of edges)
      for (const to of edges)
        if (from < to)
          expect((await read(object, { from, to })).equals(content.subarray(from, to))).toBe(true);
    await objects.remove(object.name);
  });

  test.each([
    ["a changed byte", (stored: Buffer) => void (stored[70_000] = (stored[70_000] ?? 0) ^ 1)],
    ["segments in another order", (stored: Buffer) => stored.copy(stored, 0, 65_552, 131_104)],
  ])("with %s is refused", async (_, damage) => {
    const object = await write(contentOf(3 * segmentBytes));
    const stored = readFileSync(pathOf(object));
    damage(stored);
    writeFileSync(pathOf(object), stored);
    await expect(read(object)).rejects.toThrow();
  });

  test.each([1, 16, 65_552])("that lacks its last %p bytes is refused", async (missing) => {
    const object = await write(contentOf(2 * segmentBytes));
    const stored = readFileSync(pathOf(object));
    writeFileSync(pathOf(object), stored.subarray(0, stored.byteLength - missing));
    await expect(read(object)).rejects.toThrow();
  });

  test("leaves nothing where its content fails, or is too long", async () => {
    for (const shelf of readdirSync(directory))
      rmSync(join(directory, shelf), { recursive: true, force: true });
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield contentOf(100_000);
      throw new Error("the client left");
    }
    await expect(objects.write("ws_1", failing(), limit)).rejects.toThrow("the client left");
    const short = { ...limit, bytesMax: 10 };
    await expect(objects.write("ws_1", inPieces(contentOf(11), 4), short)).rejects.toThrow(
      "too large",
    );
    const left: string[] = [];
    for await (const { name } of objects.list()) left.push(name);
    expect(left).toEqual([]);
  });

  test("is listed alone, without what others keep in the directory or the bucket", async () => {
    const object = await write(contentOf(1));
    mkdirSync(join(directory, "reports"));
    writeFileSync(join(directory, "reports", "2026.pdf"), "not a file of the gateway");
    const names: string[] = [];
    for await (const { name } of objects.list()) names.push(name);
    expect(names).toEqual([object.name]);
    await objects.remove(object.name);
    rmSync(join(directory, "reports"), { recursive: true });
  });

  test("that the disk takes only a part of is refused", () => {
    const script = `
      import { DirectoryBucket } from ${JSON.stringify(join(import.meta.dirname, "directory-bucket.ts"))};
      const pieces = async function* () { yield Buffer.alloc(2_000_000); };
      const written = new DirectoryBucket(${JSON.stringify(directory)}).write("cut", pieces());
      console.log(await written.then(() => "written", ({ code }) => code));
    `;
    // A file may have 1,000 blocks, and the system's signal about it is ignored, as on a full disk.
    const limited = `trap "" XFSZ; ulimit -f 1000; exec "$0" -e "$1"`;
    const { stdout } = Bun.spawnSync(["sh", "-c", limited, process.execPath, script]);
    expect(stdout.toString().trim()).toBe("EFBIG");
  });

  test("of a part whose row cannot be written is deleted", async () => {
    const execute = () => Promise.reject(new Error("the database is away"));
    const database = { transaction: () => ({ execute }) } as unknown as Kysely<FileTables>;
    const files = new FileStore({ database, objects, clock: systemClock });
    const uploads = new UploadStore({ database, objects, files, clock: systemClock });
    const object = await write(contentOf(1));
    const upload = { id: "upload_1", workspaceId: "ws_1" } as Upload;
    await expect(uploads.addPart(upload, object, 1e9)).rejects.toThrow("the database is away");
    expect(objects.unclaimed.has(object.name)).toBe(false);
    expect(existsSync(pathOf(object))).toBe(false);
  });

  test("that cannot be deleted now is left to the sweep", async () => {
    const object = await write(contentOf(1));
    expect(objects.unclaimed.has(object.name)).toBe(true);
    const remove = spyOn(bucket, "remove").mockRejectedValue(new Error("the bucket is away"));
    await expect(objects.remove(object.name)).rejects.toThrow("the bucket is away");
    await objects.discard(object.name);
    expect(refusals).toEqual([new Error("the bucket is away")]);
    remove.mockRestore();
    expect(objects.unclaimed.has(object.name)).toBe(false);
    await objects.remove(object.name);
  });
});

test("a sweep of a large bucket ends at its next step once the gateway stops", async () => {
  const listing = Promise.withResolvers<void>();
  const large = {
    unclaimed: { has: () => true },
    async *list() {
      for (let index = 0; ; index += 1) {
        listing.resolve();
        await new Promise((resolve) => void setImmediate(resolve));
        yield { name: String(index), writtenAtMs: 0 };
      }
    },
  };
  const sweep = new FileSweep({
    database: {} as Kysely<FileTables>,
    files: {
      deleteExpired: async () => 0,
      purgeDeleted: async () => 0,
    } as unknown as FileStore,
    uploads: { sweep: async () => undefined } as unknown as UploadStore,
    objects: large as unknown as ObjectStore,
    clock: systemClock,
    isLeader: undefined,
    onSwept: () => undefined,
    onError: () => undefined,
  });
  sweep.start();
  await listing.promise;
  await sweep.stop();
});

test("storage that deletes nothing is asked once for many files, and later for all", async () => {
  const storage = await openStorage<FileTables>({
    url: await putMigratedSqlite(directory),
    durability: "process",
    migrations,
    commitStatements: { inserts: [], adds: [] },
  });
  const { database } = storage;
  const clock = new FakeClock();
  const files = new FileStore({ database, objects, clock });
  const uploads = new UploadStore({ database, objects, files, clock });
  const fields = {
    keyId: null,
    filename: "night.jsonl",
    mimeType: "application/jsonl",
    purpose: "batch",
  } as const;
  const upload = await uploads.begin({
    ...fields,
    workspaceId: "ws_1",
    bytes: 3,
    fileExpiresSeconds: null,
  });
  const stored: StoredObject[] = [];
  for (let index = 0; index < 3; index += 1) {
    const [file, part] = [await write(contentOf(1)), await write(contentOf(1))];
    stored.push(file, part);
    const expires = { isOutput: false, expiresAtMs: clock.nowMs() + 1 };
    await files.add(file, { ...fields, ...expires }, { bytesMax: 100 });
    await uploads.addPart(upload, part, 100);
  }
  clock.advance(1);
  const sweep = new FileSweep({
    database,
    files,
    uploads,
    objects,
    clock,
    isLeader: undefined,
    onSwept: () => undefined,
    onError: () => undefined,
  });
  const remove = spyOn(bucket, "remove").mockRejectedValue(new Error("the bucket is away"));
  expect(await sweep.sweep().catch(String)).toBe("Error: the bucket is away");
  expect(await uploads.cancel(upload)).toBe(true);
  expect(remove).toHaveBeenCalledTimes(2);
  remove.mockRestore();
  await sweep.sweep();
  expect(stored.filter((object) => existsSync(pathOf(object)))).toEqual([]);
  expect(await files.bytesOf("ws_1")).toBe(0);
  await storage.close();
});
