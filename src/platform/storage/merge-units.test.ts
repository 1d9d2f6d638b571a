import { expect, test } from "bun:test";
import fc from "fast-check";
import type { PackedUnit, SqlValue } from "./commit-queue.ts";
import { mergeUnits } from "./merge-units.ts";

test("mergeUnits collects inserts and adds by statement, and merges equal keys", () => {
  const units: PackedUnit[] = [
    [1, 0, ["a"], 1, ["acme", 1], [5, 1]],
    [2, 0, ["b"], 2, ["note"], 1, ["acme", 1], [7, 1], 0, ["x"], [1]],
    [0, 1, ["acme", 2], [9, 1]],
  ];
  const { inserts, adds } = mergeUnits(units);
  expect(inserts[0]).toEqual([["a"], ["b"]]);
  expect(inserts[2]).toEqual([["note"]]);
  expect([...adds[1]!.values()]).toEqual([
    { key: ["acme", 1], sums: [12, 2] },
    { key: ["acme", 2], sums: [9, 1] },
  ]);
  expect([...adds[0]!.values()]).toEqual([{ key: ["x"], sums: [1] }]);
});

test("mergeUnits keeps keys apart that only look alike", () => {
  const keys: SqlValue[][] = [["1", "2"], [1, 2], ["1,2"], ['1","2'], ["1", 2]];
  const { adds } = mergeUnits(keys.map((key) => [0, 0, key, [1]] satisfies PackedUnit));
  expect([...adds[0]!.values()].map(({ key }) => key)).toEqual(keys);
});

test("mergeUnits computes exact sums and does not change the units", () => {
  const integer = fc.integer({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("a", "b"), integer), { minLength: 1 }),
      (growths) => {
        const units = growths.map(([key, amount]) => [0, 0, [key], [amount]] satisfies PackedUnit);
        const { adds } = mergeUnits(units);
        for (const { key, sums } of adds[0]!.values()) {
          const expected = growths
            .filter(([name]) => name === key[0])
            .reduce((sum, [, amount]) => sum + BigInt(amount), 0n);
          expect(BigInt(sums[0] ?? 0)).toBe(expected);
        }
        expect(units.map((unit) => unit[3])).toEqual(growths.map(([, amount]) => [amount]));
      },
    ),
  );
});
