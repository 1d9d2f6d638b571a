import { expect, test } from "bun:test";
import { processorsHere } from "./control-group.ts";

test.each([
  ["no quota", "max 100000\n", 8, 8],
  ["a quota below the cores", "250000 100000\n", 8, 2],
  ["a quota of less than one", "50000 100000\n", 8, 1],
  ["a quota above the cores", "1600000 100000\n", 8, 8],
  ["an empty quota file", "", 4, 4],
] as const)("processes: auto with %s", (_, quota, cores, expected) => {
  expect(processorsHere(cores, () => quota)).toBe(expected);
});

test("processes: auto without control groups", () => {
  const missing = (): string => {
    throw new Error("ENOENT");
  };
  expect(processorsHere(3, missing)).toBe(3);
});
