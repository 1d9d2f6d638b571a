import { expect, test } from "bun:test";
import { LivedTime } from "./clock.ts";

test("LivedTime follows the clock, and skips the time before a late beat", () => {
  let nowMs = 0;
  const time = new LivedTime(() => nowMs);
  const passes = (milliseconds: number): number => {
    nowMs += milliseconds;
    return time.nowMs();
  };
  expect(passes(250)).toBe(250);
  time.beat();
  expect(passes(400)).toBe(650);
  time.beat();
  // The late beat changes nothing of what was read before it.
  expect(passes(8_000)).toBe(1_150);
  time.beat();
  expect(time.nowMs()).toBe(1_150);
  expect(passes(250)).toBe(1_400);
});
