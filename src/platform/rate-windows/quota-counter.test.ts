import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { hourMs, minuteMs } from "../kernel/clock.ts";
import { QuotaCounter, starterWindow } from "./quota-counter.ts";

const burst = (counter: QuotaCounter, count: number): number =>
  Array.from({ length: count }, () => counter.tryAdd("key_1", starterWindow)).filter(Boolean)
    .length;

test("a quota admits exactly 3000 requests in five hours, and frees each after five hours", () => {
  const clock = new FakeClock();
  const counter = new QuotaCounter(clock);
  expect(counter.stateOf("key_1", starterWindow)).toEqual({
    quota: starterWindow,
    remaining: 3000,
    resetSeconds: 0,
  });
  expect(burst(counter, 1000)).toBe(1000);
  clock.advance(3 * hourMs);
  expect(burst(counter, 2500)).toBe(2000);
  expect(counter.stateOf("key_1", starterWindow).remaining).toBe(0);
  clock.advance(2 * hourMs - minuteMs);
  expect(burst(counter, 1)).toBe(0);
  clock.advance(2 * minuteMs);
  expect(burst(counter, 1500)).toBe(1000);
  expect(counter.stateOf("key_2", starterWindow).remaining).toBe(3000);
});

test("the reset is the time at which the oldest request leaves the window", () => {
  const clock = new FakeClock();
  const counter = new QuotaCounter(clock);
  counter.tryAdd("key_1", starterWindow);
  clock.advance(hourMs);
  counter.tryAdd("key_1", starterWindow);
  const { remaining, resetSeconds } = counter.stateOf("key_1", starterWindow);
  expect(remaining).toBe(2998);
  expect(resetSeconds).toBe(4 * 3600);
  clock.advance(resetSeconds * 1000);
  expect(counter.stateOf("key_1", starterWindow).remaining).toBe(2999);
});
