import { describe, expect, test } from "bun:test";
import { boundaryOf, fieldText, formParts } from "./multipart.ts";

/** Yields pieces that are gone once the next one is asked for, as those of a body are. */
async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) {
    const piece = Uint8Array.from(bytes.subarray(at, at + size));
    yield piece;
    piece.buffer.transfer(0);
  }
}

interface ReadPart {
  name: string;
  filename: string | undefined;
  type: string | undefined;
  content: string;
}

async function read(body: Buffer | string, { boundary = "B", size = 7 } = {}): Promise<ReadPart[]> {
  const parts: ReadPart[] = [];
  for await (const part of formParts(inPieces(Buffer.from(body), size), boundary)) {
    const { name, filename, type } = part;
    const pieces: Uint8Array[] = [];
    for await (const piece of part.content) pieces.push(Uint8Array.from(piece));
    parts.push({ name, filename, type, content: Buffer.concat(pieces).toString("latin1") });
  }
  return parts;
}

const form = (...parts: readonly [head: string, content: string][]): string =>
  `${parts.map(([head, content]) => `--B\r\n${head}\r\n\r\n${content}\r\n`).join("")}--B--\r\n`;

const field = 'Content-Disposition: form-data; name="purpose"';
const file =
  'Content-Disposition: form-data; name="file"; filename="a.bin"\r\nContent-Type: application/x-a';

describe("reading a form", () => {
  test.each([1_000, 5_000, 65_536])("of many times the size of a piece: %p bytes", async (size) => {
    const content = Buffer.alloc(300_001, "\r\n--A-ab\u0000").toString("latin1");
    const [part] = await read(Buffer.from(form([file, content]), "latin1"), { size });
    expect(part?.content === content).toBe(true);
  });

  test.each([1, 2, 3, 7, 64, 10_000])("in pieces of %p bytes", async (size) => {
    expect(await read(form([file, "one\r\ntwo"], [field, "batch"]), { size })).toEqual([
      { name: "file", filename: "a.bin", type: "application/x-a", content: "one\r\ntwo" },
      { name: "purpose", filename: undefined, type: undefined, content: "batch" },
    ]);
  });

  test("keeps every byte of binary content, and the boundary's own text within it", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString("latin1");
    const content = `${bytes}--B\r\n--Bx\r\n--B \r\n-- B\r\n`;
    const body = Buffer.concat([
      Buffer.from(`--B\r\n${file}\r\n\r\n`),
      Buffer.from(`${bytes}--B\r\n--Bx\r\n-- B\r\n`, "latin1"),
      Buffer.from("\r\n--B--\r\n"),
    ]);
    expect(content).toContain("--B");
    for (const size of [1, 5, 300])
      expect((await read(body, { size }))[0]?.content).toBe(`${bytes}--B\r\n--Bx\r\n-- B\r\n`);
  });

  test("accepts an empty file, a preamble, an epilogue and blanks after a boundary", async () => {
    const body = `before\r\n--B  \r\n${file}\r\n\r\n\r\n--B--\r\nafter`;
    expect(await read(body)).toEqual([
      { name: "file", filename: "a.bin", type: "application/x-a", content: "" },
    ]);
  });

  test.each([
    ['filename="a \\"b\\" %22c%22.txt"', 'a "b" "c".txt'],
    ["filename=plain.txt", "plain.txt"],
    ["filename*=UTF-8''na%C3%AFve.txt; filename=\"x\"", "naïve.txt"],
    ['filename="日本.txt"', "日本.txt"],
  ])("reads the file name %s", async (written, filename) => {
    const head = `Content-Disposition: form-data; name="file"; ${written}`;
    expect((await read(form([head, "x"])))[0]?.filename).toBe(filename);
  });

  test("skips the content of parts that are not read", async () => {
    const names: string[] = [];
    for await (const { name } of formParts(
      inPieces(Buffer.from(form([file, "x".repeat(999)], [field, "y"])), 10),
      "B",
    ))
      names.push(name);
    expect(names).toEqual(["file", "purpose"]);
  });

  test.each([
    ["", "ends before its closing boundary"],
    [`--B\r\n${file}\r\n\r\nhalf`, "ends before its closing boundary"],
    ["--B\r\nContent-Disposition: form-data", "within the headers"],
    [`--B\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`, "too long"],
    ["--B\r\nContent-Type: a/b\r\n\r\nx\r\n--B--", "no content-disposition"],
    ["--B\r\nContent-Disposition: form-data; a=b\r\n\r\nx\r\n--B--", "no name"],
  ])("refuses %j", async (body, reason) => {
    await expect(read(body)).rejects.toThrow(reason);
  });

  test("bounds a plain field", async () => {
    for await (const part of formParts(
      inPieces(Buffer.from(form([field, "x".repeat(50)])), 10),
      "B",
    ))
      await expect(fieldText(part, { bytesMax: 20 })).rejects.toThrow("longer than 20 bytes");
  });
});

test.each([
  ["multipart/form-data; boundary=abc", "abc"],
  ['Multipart/Form-Data; charset=utf-8; boundary="a b"', "a b"],
])("the boundary of %s", (type, boundary) => {
  expect(boundaryOf(type)).toBe(boundary);
});

test.each([null, "application/json", "multipart/form-data"])("no boundary in %p", (type) => {
  expect(() => boundaryOf(type)).toThrow("names no boundary");
});
