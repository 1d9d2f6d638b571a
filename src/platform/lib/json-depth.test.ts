import { expect, test } from "bun:test";
import { isDeeperThan } from "./json-depth.ts";

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
])("%j is deeper than %d levels: %p", (value, levels, expected) => {
  expect(isDeeperThan(value, levels)).toBe(expected);
});

test("any depth is measured without overflowing the stack", () => {
  expect(isDeeperThan(arrays(300_000), 299_999)).toBe(true);
  expect(isDeeperThan(arrays(300_000), 300_000)).toBe(false);
});
