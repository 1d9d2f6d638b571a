import { jest } from "bun:test";
import { systemClock } from "../../src/platform/kernel/clock.ts";

/**
 * Replaces the timers of this process until `jest.useRealTimers`. The lived time of the process is
 * read first, so that its beats are not among them: they would never come again, and a commit of a
 * later test would be sent again for ever.
 */
export function useFakeTimers(): void {
  systemClock.livedMs();
  jest.useFakeTimers();
}
