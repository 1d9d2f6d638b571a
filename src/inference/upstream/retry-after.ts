/** What an answer with an error says of when to try again. */
export interface RetryHint {
  status: number;
  /** The header's names are in lower case; absent for an error within a stream. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The provider's own words. */
  message: string | null;
  /** The `retryDelay` of Google's `RetryInfo`, such as `39.6s`. */
  retryDelay?: string | null | undefined;
}

/** The longest delay that is passed on, in seconds: a longer one is a mistake, or of no use. */
const delaySecondsMax = 7 * 86_400;

/**
 * Returns the seconds after which a provider may be asked again, as it says in any of the ways that
 * vendors use; undefined where it says nothing. The first that it uses counts.
 */
export function retryAfterSecondsOf(hint: RetryHint): number | undefined {
  const { headers = {}, message, retryDelay } = hint;
  for (const seconds of [
    // Azure and OpenAI, for clients that wait for less than a second.
    Number(headers["retry-after-ms"] ?? Number.NaN) / 1_000,
    retryAfterHeader(headers),
    durationSeconds(retryDelay ?? ""),
    secondsInWords(message ?? ""),
    resetSeconds(hint),
  ]) {
    if (seconds > 0 && seconds <= delaySecondsMax) return Math.ceil(seconds);
  }
  return undefined;
}

/**
 * Returns the delay of `Retry-After`: a number, or a date that is compared with the answer's `Date`
 * (RFC 9110, section 10.2.3).
 */
function retryAfterHeader({
  "retry-after": retryAfter = "",
  date = "",
}: Readonly<Record<string, string>>): number {
  const seconds = Number(retryAfter);
  return Number.isFinite(seconds) ? seconds : (Date.parse(retryAfter) - Date.parse(date)) / 1_000;
}

const unitSeconds: Readonly<Record<string, number>> = {
  d: 86_400,
  h: 3_600,
  m: 60,
  s: 1,
  ms: 0.001,
};

/** Returns the seconds of a duration such as `6m0s`, `1h2m`, `39.6s` or `20ms`; NaN for another text. */
function durationSeconds(text: string): number {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[dhms]))+$/.test(text)) return Number.NaN;
  let seconds = 0;
  for (const [, count, unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g))
    seconds += Number(count) * (unitSeconds[unit] ?? 0);
  return seconds;
}

/**
 * Matches the delay in a vendor's sentence: "Please try again in 1m2.5s" (OpenAI, Groq), "Please
 * retry in 39.6s" (Gemini), "Please retry after 23 seconds" (Azure). Seen 2026-11.
 */
const wordsPattern =
  /(?:try again|retry)(?: in| after) (?:about )?(\d[\d.a-z]*)(?: ?(milliseconds?|seconds?|secs?|minutes?|mins?|hours?))?/i;

function secondsInWords(message: string): number {
  const [, text = "", unit] = wordsPattern.exec(message) ?? [];
  const duration = text.replace(/\.$/, "").toLowerCase();
  if (unit === undefined) return durationSeconds(duration);
  const word = unit.toLowerCase();
  return Number(duration) * (unitSeconds[word.startsWith("milli") ? "ms" : word.charAt(0)] ?? 0);
}

/** Statuses whose rate limit headers say when the limit ends. */
const limitedStatuses: ReadonlySet<number> = new Set([429, 503]);

/**
 * Returns when the limits that are used up end, in the headers of OpenAI and its like
 * (`x-ratelimit-reset-requests: 6m0s`) and Anthropic (`anthropic-ratelimit-tokens-reset`: a date),
 * or in the one header of others: a delay, or a time in seconds or milliseconds since 1970.
 */
function resetSeconds({ status, headers = {} }: RetryHint): number {
  if (!limitedStatuses.has(status)) return Number.NaN;
  const nowMs = Date.parse(headers["date"] ?? "");
  let latest = Number.NaN;
  for (const [name, value] of Object.entries(headers)) {
    const remaining = remainingName(name);
    if (remaining === undefined || Number(headers[remaining] ?? 0) > 0) continue;
    const seconds = resetDelay(value.trim(), nowMs);
    if (!(seconds <= latest)) latest = seconds;
  }
  return latest;
}

/** Returns the header that says what is left of a limit, by that of its reset; undefined for others. */
function remainingName(name: string): string | undefined {
  if (/^x-ratelimit-reset(?:-|$)/.test(name)) return name.replace("-reset", "-remaining");
  return /^anthropic-ratelimit-[a-z-]+-reset$/.test(name)
    ? name.replace(/-reset$/, "-remaining")
    : undefined;
}

function resetDelay(text: string, nowMs: number): number {
  const number = Number(text);
  if (text === "" || Number.isNaN(number)) {
    const duration = durationSeconds(text);
    return Number.isNaN(duration) ? (Date.parse(text) - nowMs) / 1_000 : duration;
  }
  if (number > 1e12) return (number - nowMs) / 1_000;
  return number > 1e9 ? number - nowMs / 1_000 : number;
}
