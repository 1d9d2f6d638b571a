import { dayMs } from "../clock.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

/** The most time zones that are kept at a time, since callers choose their names. */
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

/** Returns the offset of a zone from UTC at a moment, in milliseconds. */
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

/** Returns the day of a moment in a zone, counted from the epoch. */
export const zonedDayOf = (zone: string, atMs: number): number =>
  Math.floor((atMs + offsetMs(zone, atMs)) / dayMs);

/**
 * Returns the first moment of a zone's day. Where the clocks skip midnight, that is the moment after
 * the change, and where they show midnight twice, the first one.
 */
export function startOfZonedDay(zone: string, day: number): number {
  const midnightMs = day * dayMs;
  const guessMs = midnightMs - offsetMs(zone, midnightMs);
  // Where the clocks change between the guess and midnight, the second lookup has the right offset.
  const startMs = midnightMs - offsetMs(zone, guessMs);
  if (zonedDayOf(zone, startMs) !== day) return guessMs;
  const earlierMs = midnightMs - offsetMs(zone, startMs - 1);
  return earlierMs < startMs && zonedDayOf(zone, earlierMs) === day ? earlierMs : startMs;
}
