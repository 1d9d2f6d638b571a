import { dayMs, hourMs } from "../platform/kernel/clock.ts";
import type { UsageLine } from "./usage-store.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

/** Zones that are kept at a time: callers choose their names. */
const zonesMax = 600;

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  if (formats.size >= zonesMax) formats.clear();
  formats.set(zone, format);
  return format;
}

/** Returns whether a text names a time zone of the IANA database. */
export function isTimeZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** Returns how far the clocks of a zone are ahead of UTC at a moment, in milliseconds. */
function offsetMs(zone: string, atMs: number): number {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
  const shownMs = Date.UTC(
    part("year"),
    part("month") - 1,
    part("day"),
    part("hour"),
    part("minute"),
    part("second"),
  );
  return shownMs - Math.floor(atMs / 1_000) * 1_000;
}

/** Returns the day in a zone that a moment belongs to, counted from the epoch. */
const dayOf = (zone: string, atMs: number): number =>
  Math.floor((atMs + offsetMs(zone, atMs)) / dayMs);

/** Returns the moment at which a day of a zone begins. */
function startOf(zone: string, day: number): number {
  const guessMs = day * dayMs - offsetMs(zone, day * dayMs);
  // Where the clocks change between the guess and midnight, the second look has the right offset.
  return day * dayMs - offsetMs(zone, guessMs);
}

/** Returns the date that a day of a zone has, from the moment at which it begins. */
export const zonedDate = (zone: string, startMs: number): string =>
  new Date(dayOf(zone, startMs + hourMs) * dayMs).toISOString().slice(0, 10);

/** Returns the whole days of a zone that a range touches. */
export function zonedRange(
  zone: string,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): { fromMs: number; toMs: number } {
  return {
    fromMs: startOf(zone, dayOf(zone, fromMs)),
    toMs: startOf(zone, dayOf(zone, toMs - 1) + 1),
  };
}

/**
 * Returns the hours of UTC that begin within whole days of a zone. Where midnight cuts an hour, as
 * in zones with half hours, that hour counts for the day in which it begins.
 */
export const hoursWithin = ({ fromMs, toMs }: { fromMs: number; toMs: number }) => ({
  fromMs: Math.ceil(fromMs / hourMs) * hourMs,
  toMs: Math.ceil(toMs / hourMs) * hourMs,
});

const sums = [
  "requests",
  "errors",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "reasoning_tokens",
] as const;

/** Adds lines of hours up to lines of a zone's days, in the order of the days. */
export function byZonedDay(lines: readonly UsageLine[], zone: string): UsageLine[] {
  const days = new Map<number, number>();
  const byGroup = new Map<string, UsageLine>();
  for (const line of lines) {
    const day = days.get(line.startMs) ?? dayOf(zone, line.startMs);
    days.set(line.startMs, day);
    const group = JSON.stringify([day, line.model, line.key_id, line.provider]);
    const sum = byGroup.get(group);
    if (sum === undefined) {
      byGroup.set(group, { ...line, startMs: startOf(zone, day) });
      continue;
    }
    for (const name of sums) sum[name] += line[name];
    sum.costNanoUsd += line.costNanoUsd;
  }
  return [...byGroup.values()].sort((one, other) => one.startMs - other.startMs);
}
