import { beforeEach, describe, expect, test } from "bun:test";
import { newId, timeOrderedHex } from "./ids.ts";

describe("time-ordered ids", () => {
  const nowMs = 1_764_000_000_000;
  // Another millisecond starts the count at zero, even if other tests made ids.
  beforeEach(() => void timeOrderedHex(0));

  const several = (count: number): string[] =>
    Array.from({ length: count }, () => timeOrderedHex(nowMs));

  test("of the same millisecond sort in creation order", () => {
    const made = several(4_096);
    expect(made).toEqual(made.toSorted());
    expect(made[0]).toStartWith(nowMs.toString(16).padStart(12, "0"));
  });

  test("beyond the counter of a millisecond are unique and sort before the next millisecond", () => {
    const made = several(10_000);
    expect(new Set(made).size).toBe(made.length);
    expect(timeOrderedHex(nowMs + 1) > (made.toSorted().at(-1) ?? "")).toBe(true);
  });

  test("have 32 hexadecimal digits after the prefix, most of them random", () => {
    expect(newId("gen", nowMs)).toMatch(/^gen_[0-9a-f]{32}$/);
    const randoms = several(1_000).map((hex) => hex.slice(15));
    expect(new Set(randoms).size).toBe(1_000);
    // Each digit takes each of its 16 values: a thousand draws miss one with odds of 1e-26.
    for (let digit = 0; digit < 17; digit += 1)
      expect(new Set(randoms.map((hex) => hex[digit])).size).toBe(16);
  });
});
