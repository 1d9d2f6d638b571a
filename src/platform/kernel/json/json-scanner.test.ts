import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type JsonBounds, JsonScanner, isDeeperThan } from "./json-scanner.ts";

const bounds: JsonBounds = { levels: 4, members: 3, entries: 3, numbers: 5 };
const scan = (text: string, within = bounds) => new JsonScanner(within).push(Buffer.from(text));

describe("the first exceeded bound of", () => {
  test.each([
    ['{"a":1,"b":2,"c":3}', undefined],
    ['{"a":1,"b":{"c":3,"d":4}}', "members"],
    ['["a","b",{}]', undefined],
    ['["a","b",[["c"]]]', "entries"],
    ["[1,2,3,4,5,6]", undefined],
    ["[1,2,3,[4,5,6,7]]", "numbers"],
    ["[[[[]]]]", undefined],
    ["[[[[[", "levels"],
    [String.raw`{"a:b,[{\"\\":"x\\\"[[[[[:::::,,,,,","c":"\\"}`, undefined],
    [String.raw`["\\","\"","]"]`, undefined],
    [String.raw`["\\","\"","]","d"]`, "entries"],
    ["}}]]{}", undefined],
    ["", undefined],
  ] as const)("%s is %s", (text, passed) => {
    expect(scan(text)).toBe(passed);
    expect(new JsonScanner(bounds).pushText(text)).toBe(passed);
  });
});

/** What a parsed value consists of. */
function countIn(value: unknown, counts: JsonBounds, level = 1): void {
  if (typeof value !== "object" || value === null) return;
  counts.levels = Math.max(counts.levels, level);
  const entries: unknown[] = Object.values(value);
  if (Array.isArray(value)) {
    counts.numbers += Math.max(0, entries.length - 1);
    counts.entries += entries.filter(
      (entry) => typeof entry === "string" || (typeof entry === "object" && entry !== null),
    ).length;
  } else counts.members += entries.length;
  for (const entry of entries) countIn(entry, counts, level + 1);
}

test("counts as a parser would, wherever the bytes are cut, and in a whole text", () => {
  fc.assert(
    fc.property(
      fc.json({ stringUnit: "grapheme" }),
      fc.integer({ min: 1, max: 7 }),
      (text, pieceLength) => {
        const counts: JsonBounds = { levels: 0, members: 0, entries: 0, numbers: 0 };
        countIn(JSON.parse(text), counts);
        const bytes = Buffer.from(text);
        const passedWith = (limits: JsonBounds) => {
          const scanner = new JsonScanner(limits);
          for (let from = 0; from < bytes.length; from += pieceLength) {
            const passed = scanner.push(bytes.subarray(from, from + pieceLength));
            if (passed !== undefined) return passed;
          }
          return undefined;
        };
        const passedAsText = (limits: JsonBounds) => new JsonScanner(limits).pushText(text);
        for (const passed of [passedWith, passedAsText]) {
          expect(passed(counts)).toBeUndefined();
          for (const bound of ["levels", "members", "entries", "numbers"] as const) {
            if (counts[bound] > 0)
              expect(passed({ ...counts, [bound]: counts[bound] - 1 })).toBe(bound);
          }
        }
      },
    ),
  );
});

const arrays = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

test.each([
  [1, 0, false],
  ["text", 0, false],
  [null, 0, false],
  [[], 0, true],
  [[], 1, false],
  [{ a: {} }, 1, true],
  [{ a: {} }, 2, false],
  [{ a: 1, b: [1, { c: [] }] }, 3, true],
  [{ a: 1, b: [1, { c: [] }] }, 4, false],
])("isDeeperThan(%j, %d) returns %p", (value, levels, expected) => {
  expect(isDeeperThan(value, levels)).toBe(expected);
});

test("isDeeperThan measures any depth without a stack overflow", () => {
  expect(isDeeperThan(arrays(300_000), 299_999)).toBe(true);
  expect(isDeeperThan(arrays(300_000), 300_000)).toBe(false);
});
