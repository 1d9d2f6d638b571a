import { z } from "zod";
import { countText } from "./count-text.ts";

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

/** Returns a length with the unit that it counts. */
function lengthText(length: number | bigint, origin: string): string {
  if (origin === "string") return countText(length, "character");
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

/**
 * Returns what the alternatives of a union accept, where the value has another type than all of
 * them.
 */
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
 * Returns a schema's problem with a value in plain words, as in "limit: must be at least 0", since
 * Zod's own messages are written for its users. It serves as the option `error` of Zod's `parse`:
 * messages of the schemas themselves take precedence, and undefined leaves an issue to Zod.
 */
export function problemText(issue: Issue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? `is required and must be ${nounOf(issue.expected)}`
        : `must be ${nounOf(issue.expected)}`;
    case "invalid_key":
      return issue.issues[0]?.message;
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

/** A field and its problem. */
interface Problem {
  path: readonly PropertyKey[];
  message: string;
  /**
   * Whether the value has another type than the alternative takes, such as text in place of a
   * number.
   */
  isOtherKind?: boolean;
}

/**
 * Returns the problem of the union's alternative that the value resembles, or of all of them where
 * it resembles none.
 */
export function problemIn(issue: z.core.$ZodIssue): Problem {
  const { path } = issue;
  if (issue.code === "unrecognized_keys")
    return { path: [...path, issue.keys[0] ?? ""], message: "there is no such field" };
  if (issue.code !== "invalid_union")
    return { path, message: issue.message, isOtherKind: issue.code === "invalid_type" };
  const inner = issue.errors.flat().map(problemIn);
  const resembled =
    inner.find((problem) => problem.path.length > 0) ??
    inner.find(({ isOtherKind }) => isOtherKind !== true);
  if (resembled !== undefined)
    return { path: [...path, ...resembled.path], message: resembled.message };
  return { path, message: inner.map(({ message }) => message).join(", or ") };
}

/** Returns the keys that a schema knows at a path, looking through wrappers on the way. */
export function knownKeys(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let level = alternatives(schema);
  for (const part of path)
    level = level.flatMap((candidate) => children(candidate, part)).flatMap(alternatives);
  return level.flatMap((candidate) => {
    if (candidate instanceof z.ZodObject) return Object.keys(candidate.shape);
    const keyType = candidate instanceof z.ZodRecord ? candidate.keyType : undefined;
    return keyType instanceof z.ZodEnum ? keyType.options.map(String) : [];
  });
}

function alternatives(schema: z.core.$ZodType): z.core.$ZodType[] {
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(alternatives);
  if (schema instanceof z.ZodPipe) return [...alternatives(schema.in), ...alternatives(schema.out)];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return alternatives(schema.unwrap());
  if (schema instanceof z.ZodDefault) return alternatives(schema.unwrap());
  return [schema];
}

function children(schema: z.core.$ZodType, part: PropertyKey): z.core.$ZodType[] {
  if (schema instanceof z.ZodArray) return [schema.element];
  if (schema instanceof z.ZodRecord) return [schema.valueType];
  const child =
    schema instanceof z.ZodObject
      ? (schema.shape as Record<PropertyKey, z.core.$ZodType>)[part]
      : undefined;
  return child ? [child] : [];
}

/** Returns the known name that a misspelt one most likely means; undefined when none is close. */
export function closestName(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  // Two swapped letters count as two edits. A name that would have to change altogether was not
  // meant.
  let bestDistance = Math.min(Math.max(2, Math.floor(name.length / 3)) + 1, name.length);
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** Returns the insertions, deletions and replacements between two words (Levenshtein distance). */
function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}

/**
 * Returns whether a text has more than `most` characters. One beyond the first 65,536 code points
 * counts once, although it counts twice in `length`.
 */
export function isLongerThan(text: string, most: number): boolean {
  if (text.length <= most) return false;
  return text.length > 2 * most || Array.from(text).length > most;
}
