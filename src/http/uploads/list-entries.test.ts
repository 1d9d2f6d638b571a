import { describe, expect, test } from "bun:test";
import { ListEntries } from "./list-entries.ts";

const bounds = { name: "requests", entryBytesMax: 1_000, restBytesMax: 500, levelsMax: 20 };

function cut(text: string, size = text.length + 1): { entries: unknown[]; rest: unknown } {
  const cutter = new ListEntries(bounds);
  const bytes = Buffer.from(text);
  const entries: unknown[] = [];
  for (let at = 0; at < bytes.length; at += size)
    entries.push(...cutter.push(bytes.subarray(at, at + size)));
  return { entries, rest: cutter.end() };
}

const bodies: unknown[] = [
  { requests: [] },
  { requests: [{ a: 1 }, "two, ]", [3, [4]], null, 5, true] },
  { before: [1, { requests: ["inner"] }], requests: [{ requests: [1, 2] }], after: { x: "ü\\" } },
  { requests: ['"', "\\", '\\"', "[{", "ä]"] },
  { text: '"requests":[1,2]', 'a"requests': [1], requests: ["x"] },
  {},
];

test("entries and everything else are those of the parsed body, wherever its pieces are cut", () => {
  for (const body of bodies)
    for (const text of [JSON.stringify(body), JSON.stringify(body, undefined, 2)])
      for (const size of [1, 2, 3, 7, 64, text.length + 1]) {
        const { requests = [], ...others } = body as { requests?: unknown[] };
        const { entries, rest } = cut(text, size);
        expect(entries).toEqual(requests);
        const { requests: left = [], ...shown } = rest as { requests?: unknown[] };
        expect([left, shown]).toEqual([[], others]);
      }
});

describe("a body is refused", () => {
  test.each([
    ["that is cut off", '{"requests":[{"a":1},{"b"'],
    ["with an entry that is no JSON", '{"requests":[{"a":}]}'],
    ["with an empty entry", '{"requests":[1,,2]}'],
    ["with a comma at the end of its list", '{"requests":[1,]}'],
    ["that is no object", "[1]"],
    [
      "with an entry that is nested too deeply",
      `{"requests":[${"[".repeat(600)}${"]".repeat(600)}]}`,
    ],
    ["with an entry that is too long", `{"requests":["${"x".repeat(1_001)}"]}`],
    ["with too much beside its list", `{"x":"${"x".repeat(501)}"}`],
  ])("%s", (_, text) => {
    for (const size of [1, 100, 10_000]) expect(() => cut(text, size)).toThrow();
  });
});

test("memory is taken once for the longest entry in pieces, and none for those in one piece", () => {
  let reserved = 0;
  const reserve = (bytes: number) => void (reserved += bytes);
  const cutter = new ListEntries({ ...bounds, entryBytesMax: 100_000, reserve });
  const push = (text: string) => [...cutter.push(Buffer.from(text))].length;
  expect(push('{"requests":[')).toBe(0);
  const before = reserved;
  expect([push(`"${"x".repeat(90_000)}",`), reserved]).toEqual([1, before]);
  for (let count = 0; count < 20; count += 1) {
    push(`"${"x".repeat(40_000)}`);
    expect(push(`${"x".repeat(40_000)}",`)).toBe(1);
  }
  push("1]}");
  expect(cutter.end()).toEqual({ requests: [] });
  expect(reserved - before).toBeLessThanOrEqual(100_000);
  const refused = new ListEntries({
    ...bounds,
    entryBytesMax: 100_000,
    reserve(bytes) {
      if (bytes > 50_000) throw new Error("no memory");
    },
  });
  expect(() => [...refused.push(Buffer.from(`{"requests":["${"x".repeat(60_000)}`))]).toThrow(
    "no memory",
  );
});

test("a hundred thousand entries are cut", () => {
  const cutter = new ListEntries({ ...bounds, entryBytesMax: 10_000 });
  const piece = Buffer.from(`${'{"custom_id":"a","params":{"messages":[]}},'.repeat(1_000)}`);
  let count = 0;
  for (const _ of cutter.push(Buffer.from('{"requests":['))) count += 1;
  for (let index = 0; index < 100; index += 1) for (const _ of cutter.push(piece)) count += 1;
  for (const _ of cutter.push(Buffer.from("0]}"))) count += 1;
  expect([count, cutter.end()]).toEqual([100_001, { requests: [] }]);
});
