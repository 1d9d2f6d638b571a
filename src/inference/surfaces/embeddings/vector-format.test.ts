import { describe, expect, test } from "bun:test";
import { readVector, toFormat } from "./embedding-request.ts";

/** 1 and -2.5 as 32-bit floats, the lowest byte first. */
const base64 = Buffer.from([0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]).toString("base64");

test("toFormat converts between floats and base64", () => {
  expect(toFormat([1, -2.5], "base64")).toBe(base64);
  expect(toFormat(base64, "float")).toEqual([1, -2.5]);
  expect(toFormat(base64, "base64")).toBe(base64);
  expect(toFormat([0.1], "float")).toEqual([0.1]);
});

test("a float keeps its 32 bits in a round trip", () => {
  const [back] = toFormat(toFormat([0.1, 1e-30], "base64"), "float") as number[];
  expect(back).toBe(Math.fround(0.1));
});

describe("readVector refuses", () => {
  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["an empty list", []],
    ["strings", ["a"]],
    ["null in a list", [1, null]],
    ["invalid base64", "a b"],
    ["an incomplete float", "AAAA"],
    ["an object", {}],
  ])("%s", (_, value) => expect(readVector(value)).toBeUndefined());
});
