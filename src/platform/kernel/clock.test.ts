import { expect, test } from "bun:test";
import { livedTimeOf } from "./clock.ts";

test("lived time follows the clock, and skips the time before a late beat", () => {
  let nowMs = 0;
  const time = livedTimeOf(() => nowMs);
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

test("lived time needs no beats once nothing was read for a minute, and counts that time as lived", () => {
  let nowMs = 0;
  const time = livedTimeOf(() => nowMs);
  const beats = (milliseconds: number): boolean => {
    nowMs += milliseconds;
    return time.beat();
  };
  time.nowMs();
  for (let beat = 1; beat < 240; beat += 1) expect(beats(250)).toBe(true);
  expect(beats(250)).toBe(false);
  nowMs += 3_600_000;
  time.resume();
  expect(time.nowMs()).toBe(3_660_000);
  expect(beats(250)).toBe(true);
});
