import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AbortScope } from "../../inference/upstream/abort-scope.ts";
import { UpstreamClient, upstreamTarget } from "../../inference/upstream/upstream-client.ts";
import { systemClock } from "../kernel/clock.ts";
import { Spool, storedPieces } from "./spool.ts";

const directory = mkdtempSync(join(tmpdir(), "spool-"));
afterAll(() => rmSync(directory, { recursive: true }));

const mib = 1024 * 1024;
const bytesOf = (size: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, index) => (index * 31 + (index >> 8)) % 256);

async function* inPieces(bytes: Uint8Array, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.byteLength; start += pieceBytes)
    yield bytes.subarray(start, start + pieceBytes);
}

test.each([0, 1, 1000, mib, mib + 1, 3 * mib + 17])(
  "reads %d bytes as they were written",
  async (size) => {
    const spool = new Spool({ directory, bytesMax: 8 * mib });
    const bytes = bytesOf(size);
    const content = await spool.store(inPieces(bytes, 65_537));
    const read = await Array.fromAsync(storedPieces(content));
    expect(Buffer.concat(read).equals(bytes)).toBe(true);
    expect(await content.read(size - 1, 10)).toHaveLength(Math.min(size, 1));
    expect(spool.usedBytes).toBe(size);
    expect(readdirSync(directory)).toEqual([]);
    await content.close();
    expect(spool.usedBytes).toBe(0);
  },
);

test("refuses what does not fit, and frees it", async () => {
  const spool = new Spool({ directory, bytesMax: 2 * mib });
  const first = await spool.store(inPieces(bytesOf(mib), 65_536));
  const second = spool.store(inPieces(bytesOf(2 * mib), 65_536));
  await expect(second).rejects.toMatchObject({ code: "service_unavailable" });
  expect(spool.usedBytes).toBe(mib);
  await first.close();
});

test("frees what its sender did not finish", async () => {
  const spool = new Spool({ directory, bytesMax: 8 * mib });
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield bytesOf(2 * mib);
    throw new Error("the client left");
  }
  await expect(spool.store(broken())).rejects.toThrow("the client left");
  expect(spool.usedBytes).toBe(0);
});

test("storage that is full refuses an upload, and keeps nothing of it", async () => {
  const spool = new Spool({ directory, bytesMax: 64 * mib });
  const handles: FileHandle[] = [];
  spool.file = async () => {
    const handle = await open("/dev/full", "r+");
    handles.push(handle);
    return handle;
  };
  const pieces = inPieces(bytesOf(3 * mib), 65_536);
  await expect(spool.store(pieces)).rejects.toMatchObject({
    code: "service_unavailable",
    metadata: { reason: "spool_storage" },
  });
  expect([spool.usedBytes, spool.memoryBytes, handles.map(({ fd }) => fd)]).toEqual([0, 0, [-1]]);
});

test("a directory that cannot be made refuses uploads until it can", async () => {
  const place = join(directory, "place");
  writeFileSync(place, "");
  const spool = new Spool({ directory: place, bytesMax: 8 * mib });
  const upload = () => spool.store(inPieces(bytesOf(2 * mib), mib));
  await expect(upload()).rejects.toMatchObject({ code: "service_unavailable" });
  unlinkSync(place);
  await (await upload()).close();
  rmdirSync(place);
  expect(spool.usedBytes).toBe(0);
});

test("only so many uploads wait for room, by the bytes that the platform keeps of them", async () => {
  const spool = new Spool({ directory, bytesMax: 25 * mib });
  const room = await spool.room(25 * mib);
  const waiting = Array.from({ length: 128 }, () => spool.room(25 * mib));
  await expect(spool.room(25 * mib)).rejects.toMatchObject({ code: "service_unavailable" });
  let next = room;
  for (const each of waiting) {
    next.close();
    next = await each;
  }
  next.close();
  expect(spool.usedBytes).toBe(0);
});

test("as many uploads of unknown length wait as of large ones", async () => {
  const spool = new Spool({ directory, bytesMax: mib });
  const room = await spool.room(mib);
  const first = spool.room(mib);
  const waiting = Array.from({ length: 127 }, () => spool.room(0));
  await expect(spool.room(0)).rejects.toMatchObject({ code: "service_unavailable" });
  room.close();
  (await first).close();
  await Promise.all(waiting);
  expect(spool.usedBytes).toBe(0);
});

test("an upload whose client leaves waits for room no longer, and lets others in", async () => {
  const spool = new Spool({ directory, bytesMax: 4 * mib });
  const room = await spool.room(3 * mib);
  const client = new AbortController();
  const large = spool.room(3 * mib, client);
  const small = spool.room(mib);
  client.abort();
  await expect(large).rejects.toMatchObject({ code: "client_closed_request" });
  (await small).close();
  await expect(spool.room(2 * mib, client)).rejects.toMatchObject({
    code: "client_closed_request",
  });
  room.close();
  expect(spool.usedBytes).toBe(0);
});

test("uploads wait for room in the order in which they came, and one that never fits is refused", async () => {
  const spool = new Spool({ directory, bytesMax: 4 * mib });
  await expect(spool.room(4 * mib + 1)).rejects.toMatchObject({ code: "service_unavailable" });
  const room = await spool.room(3 * mib);
  const content = await spool.store(inPieces(bytesOf(2 * mib), 65_536), room);
  expect(spool.usedBytes).toBe(3 * mib);
  const came: string[] = [];
  const large = spool.room(3 * mib).then(() => came.push("large"));
  // It would fit, but another came first.
  const small = spool.room(mib).then(() => came.push("small"));
  room.close();
  expect(spool.usedBytes).toBe(2 * mib);
  await Bun.sleep(0);
  expect(came).toEqual([]);
  await content.close();
  await Promise.all([large, small]);
  expect(came).toEqual(["large", "small"]);
});

test("contents beyond the memory of all are in files from the start", async () => {
  const spool = new Spool({ directory, bytesMax: 64 * mib });
  const bytes = bytesOf(mib);
  const contents = [];
  for (let index = 0; index < 20; index += 1)
    contents.push(await spool.store(inPieces(bytes, 262_144)));
  expect(spool.memoryBytes).toBeLessThanOrEqual(16 * mib);
  for (const content of contents) {
    expect(Buffer.concat(await Array.fromAsync(storedPieces(content))).equals(bytes)).toBe(true);
    await content.close();
  }
  expect([spool.memoryBytes, spool.usedBytes]).toEqual([0, 0]);
});

test("a stored content is sent to a provider between parts of text", async () => {
  const received = Promise.withResolvers<Uint8Array>();
  const server = Bun.serve({
    port: 0,
    fetch: async (request) => {
      received.resolve(new Uint8Array(await request.arrayBuffer()));
      return new Response("{}");
    },
  });
  const client = new UpstreamClient({ clock: systemClock });
  const bytes = bytesOf(6 * mib + 5);
  const content = await new Spool({ directory, bytesMax: 8 * mib }).store(inPieces(bytes, mib));
  const response = await client.send({
    target: upstreamTarget(`http://127.0.0.1:${server.port}/`, {}),
    body: ["begin ü", content, "end"],
    connectTimeoutMs: 2_000,
    timeouts: { firstTokenMs: 10_000, idleMs: 10_000, totalMs: 10_000 },
    abortScope: new AbortScope(undefined, { aborts: false }),
  });
  await response.readText(1_000);
  const expected = Buffer.concat([Buffer.from("begin ü"), bytes, Buffer.from("end")]);
  expect(expected.equals(await received.promise)).toBe(true);
  await content.close();
  client.close();
  await server.stop(true);
});
