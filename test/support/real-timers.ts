import { jest } from "bun:test";
import { endBeats } from "../../src/platform/kernel/clock.ts";

/**
 * Ends fake timers. The beats of the process's lived time begin again: an interval that came due
 * meanwhile was armed among the fake timers, and the clock would stand still for all later tests.
 */
export function useRealTimers(): void {
  jest.useRealTimers();
  endBeats();
}
