const storageName = "time-zone";

/** The zone that moments are shown in: the chosen one, else the browser's. */
export const timeZone = (): string =>
  localStorage.getItem(storageName) ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Shows moments in another zone from now on; undefined goes back to the browser's. */
export function chooseTimeZone(zone: string | undefined): void {
  if (zone === undefined) localStorage.removeItem(storageName);
  else localStorage.setItem(storageName, zone);
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string, withYear: boolean): Intl.DateTimeFormat {
  const name = `${zone} ${withYear}`;
  const known = formats.get(name);
  if (known !== undefined) return known;
  // A zone that this browser does not know is shown as the browser's own.
  const format = new Intl.DateTimeFormat("en-GB", {
    ...(withYear ? { year: "numeric" } : {}),
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    ...(Intl.supportedValuesOf("timeZone").includes(zone) || zone === "UTC"
      ? { timeZone: zone }
      : {}),
  });
  formats.set(name, format);
  return format;
}

/** A moment in the person's zone, with its year unless it is this one; unknown is a dash. */
export function localTime(iso: string | null | undefined): string {
  if (!iso) return "–";
  const at = new Date(iso);
  return formatOf(timeZone(), at.getUTCFullYear() !== new Date().getUTCFullYear()).format(at);
}

/** The day of a moment in the person's zone. */
export const localDay = (iso: string): string =>
  new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: timeZone() }).format(
    new Date(iso),
  );

/** The time of day of a moment in the person's zone, to the minute. */
export const localClock = (iso: string): string =>
  new Intl.DateTimeFormat("en-GB", { timeStyle: "short", timeZone: timeZone() }).format(
    new Date(iso),
  );

/** The same moment in UTC, for those who compare it with a log. */
export const utc = (iso: string | null | undefined): string =>
  iso ? `${new Date(iso).toISOString().slice(0, 19).replace("T", " ")} UTC` : "";

const zoneNames = new Map<string, string>();

/** The zone's short name at this moment, as column heads have it: `CET`, `GMT+2`. */
export function zoneName(): string {
  const zone = timeZone();
  const name = zoneNames.get(zone) ?? nameOfZone();
  zoneNames.set(zone, name);
  return name;
}

const nameOfZone = (): string =>
  new Intl.DateTimeFormat("en-GB", { timeZoneName: "short", timeZone: timeZone() })
    .formatToParts(new Date())
    .find(({ type }) => type === "timeZoneName")?.value ?? timeZone();

const dayMs = 86_400_000;

/** Ranges by the names that addresses have for them. */
const rangesMs = {
  "1h": dayMs / 24,
  "24h": dayMs,
  "7d": 7 * dayMs,
  "14d": 14 * dayMs,
  "30d": 30 * dayMs,
  "90d": 90 * dayMs,
} as const;
export type RangeName = keyof typeof rangesMs;

/** A range that an address names, or has as two instants. */
export interface RangeSearch {
  range?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** Two instants, the end exclusive. */
export interface Range {
  fromMs: number;
  toMs: number;
}

const isName = (name: string): name is RangeName => Object.hasOwn(rangesMs, name);

/**
 * The instants of a range; relative ones end with the minute of `nowMs`, so that a query has the
 * same key for as long.
 */
export function rangeOf(
  { range, from, to }: RangeSearch,
  fallback: RangeName,
  nowMs = Date.now(),
): Range {
  const [fromMs, toMs] = [Date.parse(from ?? ""), Date.parse(to ?? "")];
  if (fromMs < toMs) return { fromMs, toMs };
  const name = range !== undefined && isName(range) ? range : fallback;
  const endMs = Math.ceil(nowMs / 60_000) * 60_000;
  return { fromMs: endMs - rangesMs[name], toMs: endMs };
}

/** The moment at which the day of a zone that a moment belongs to begins. */
export function dayStart(atMs: number, zone = timeZone()): number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const sinceMidnightMs = (ms: number): number => {
    const parts = format.formatToParts(ms);
    const part = (name: string): number =>
      Number(parts.find(({ type }) => type === name)?.value ?? 0);
    return ((part("hour") * 60 + part("minute")) * 60 + part("second")) * 1_000;
  };
  const wholeMs = Math.floor(atMs / 1_000) * 1_000;
  const guessMs = wholeMs - sinceMidnightMs(wholeMs);
  // On a day when the clocks change the first look is off by as much as they were moved.
  const offMs = sinceMidnightMs(guessMs);
  return offMs === 0 ? guessMs : offMs > dayMs / 2 ? guessMs + dayMs - offMs : guessMs - offMs;
}

/** The range of the same length that ends where this one begins. */
export const rangeBefore = ({ fromMs, toMs }: Range): Range => ({
  fromMs: 2 * fromMs - toMs,
  toMs: fromMs,
});
