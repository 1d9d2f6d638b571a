import type { z } from "zod";

type Issue = z.core.$ZodRawIssue;

const nouns: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
  null: "null",
};

const nounOf = (expected: string): string => nouns[expected] ?? expected;

const formats: Readonly<Record<string, string>> = {
  datetime: "a moment such as 2026-11-22T12:00:00Z",
  date: "a date such as 2026-11-22",
  url: "a URL",
  email: "an e-mail address",
  uuid: "a UUID",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
};

/** A length with what it counts. */
function lengthText(length: number | bigint, origin: string): string {
  if (origin === "string") return `${length} character${length === 1 ? "" : "s"}`;
  return `${length} ${length === 1 ? "entry" : "entries"}`;
}

const isSized = (origin: string): boolean => /^(?:string|array|set|map|file)$/.test(origin);

function tooSmall({ origin, minimum, inclusive }: Issue & { code: "too_small" }): string {
  if (isSized(origin))
    return Number(minimum) === 1
      ? "must not be empty"
      : `must have at least ${lengthText(minimum, origin)}`;
  return `must be ${inclusive === false ? "greater than" : "at least"} ${minimum}`;
}

function tooBig({ origin, maximum, inclusive }: Issue & { code: "too_big" }): string {
  if (isSized(origin)) return `must have at most ${lengthText(maximum, origin)}`;
  return `must be ${inclusive === false ? "less than" : "at most"} ${maximum}`;
}

/** What the alternatives of a union take, where the value is of another kind than all of them. */
function union({ errors }: Issue & { code: "invalid_union" }): string | undefined {
  const inner = errors.flat();
  const kinds = inner.flatMap((issue) =>
    issue.code === "invalid_type" && issue.path.length === 0 ? [nounOf(issue.expected)] : [],
  );
  return kinds.length > 0 && kinds.length === inner.length
    ? `must be ${[...new Set(kinds)].join(" or ")}`
    : undefined;
}

/**
 * Says in plain words what a schema has against a value, as in "limit: must be at least 0"; zod's
 * own words are meant for its users. For the option `error` of zod's `parse`: schemas that say
 * something themselves go before it, and undefined leaves an issue to zod.
 */
export function problemText(issue: Issue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? `is required and must be ${nounOf(issue.expected)}`
        : `must be ${nounOf(issue.expected)}`;
    case "too_small":
      return tooSmall(issue);
    case "too_big":
      return tooBig(issue);
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.join(", ")}`;
    case "invalid_format":
      return formats[issue.format] && `must be ${formats[issue.format]}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_union":
      return union(issue);
    default:
      return undefined;
  }
}
