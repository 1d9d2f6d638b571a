/**
 * The position of one top-level member of an object in its JSON text. All positions are string
 * indexes.
 */
export interface Member {
  /** The name, with escapes resolved. */
  key: string;
  /** The index of the name's opening quote. */
  keyStart: number;
  /** The index of the value's first character. */
  valueStart: number;
  /** The index after the value's last character. */
  valueEnd: number;
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const colon = 0x3a;

/**
 * Finds the top-level members of one JSON object without building its values, in document order and
 * including duplicates. Strings are skipped by searching for their end, so long ones cost little.
 * Throws SyntaxError when the object's own structure is broken. Inside a value only brackets are
 * matched, so text that has to be valid JSON throughout has to be parsed elsewhere.
 */
export function scanMembers(text: string): Member[] {
  const members: Member[] = [];
  const start = skipSpace(text, 0);
  if (text.charCodeAt(start) !== openBrace) throw unexpected(text, start, "an object");
  let position = skipSpace(text, start + 1);
  if (text.charCodeAt(position) !== closeBrace) {
    for (;;) {
      const member = readMember(text, position);
      members.push(member);
      position = skipSpace(text, member.valueEnd);
      if (text.charCodeAt(position) !== comma) break;
      position = skipSpace(text, position + 1);
    }
  }
  if (text.charCodeAt(position) !== closeBrace) throw unexpected(text, position, "a comma or }");
  const end = skipSpace(text, position + 1);
  if (end !== text.length) throw unexpected(text, end, "the end");
  return members;
}

/** Edits of members: the JSON text of a new value, or undefined to remove the member. */
export type MemberEdits = ReadonlyMap<string, string | undefined>;

/**
 * Changes top-level members of one JSON object and leaves every other character as it was. A key
 * maps to the JSON text of its new value (every duplicate is replaced), or to undefined to remove
 * it. Names that the object lacks are appended before its closing brace. Throws SyntaxError as
 * `scanMembers`.
 */
export function editMembers(text: string, edits: MemberEdits): string {
  if (edits.size > namesMax) return editScanned(text, scanMembers(text), edits);
  const names: string[] = [];
  const values: string[] = [];
  for (const [name, value] of edits) {
    if (value === undefined) return editScanned(text, scanMembers(text), edits);
    names.push(name);
    values.push(value);
  }
  return (
    replaceEach(text, names, (index) => values[index] ?? "") ??
    editScanned(text, scanMembers(text), edits)
  );
}

/** Characters from which an edited text is left in parts, since joining them copies all of it. */
const partsCharactersMin = 64 * 1024;

/**
 * Does the same, and returns the new text in parts that follow one another. What is kept of a long
 * text is a view of it, which takes no memory of its own.
 */
export function editInParts(text: string, edits: MemberEdits): readonly string[] {
  if (text.length < partsCharactersMin) return [editMembers(text, edits)];
  const members = scanMembers(text);
  return replacedParts(text, members, edits) ?? rebuiltParts(text, members, edits);
}

/** Joins parts. The engine copies them only once the text is read. */
export function joined(parts: readonly string[]): string {
  let text = "";
  for (const part of parts) text += part;
  return text;
}

/** The most names, since each takes one bit of a number. */
const namesMax = 30;

/**
 * Replaces the values of at most 30 members that each occur once and without escapes, in one pass
 * that allocates only the new text. `valueOf` receives the index of the name and the position of
 * its value. Returns undefined where a member is missing, repeated or escaped. Throws SyntaxError
 * as `scanMembers`.
 */
export function replaceEach(
  text: string,
  names: readonly string[],
  valueOf: (index: number, valueStart: number, valueEnd: number) => string,
): string | undefined {
  let position = skipSpace(text, 0);
  if (text.charCodeAt(position) !== openBrace) throw unexpected(text, position, "an object");
  let edited = "";
  let copiedTo = 0;
  let found = 0;
  do {
    const keyStart = skipSpace(text, position + 1);
    if (text.charCodeAt(keyStart) !== quote) return undefined;
    const keyEnd = endOfString(text, keyStart);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueStart);
    const index = plainIndex(text, { keyStart, keyEnd }, names);
    if (index === escaped) return undefined;
    if (index >= 0) {
      // One bit for each name that was found. A repeated name is left to the general path, which
      // knows which one counts.
      if ((found & (1 << index)) !== 0) return undefined;
      found |= 1 << index;
      edited += text.slice(copiedTo, valueStart) + valueOf(index, valueStart, valueEnd);
      copiedTo = valueEnd;
    }
    if (text.charCodeAt(skipSpace(text, keyEnd)) !== colon) return undefined;
    position = skipSpace(text, valueEnd);
  } while (text.charCodeAt(position) === comma);
  const isWhole =
    text.charCodeAt(position) === closeBrace && skipSpace(text, position + 1) === text.length;
  return isWhole && found === (1 << names.length) - 1 ? edited + text.slice(copiedTo) : undefined;
}

/** Marks a name that contains an escape. */
const escaped = -2;

/** Returns the index of a member's name among the names; -1 for none of them. */
function plainIndex(
  text: string,
  { keyStart, keyEnd }: { keyStart: number; keyEnd: number },
  names: readonly string[],
): number {
  for (let at = keyStart + 1; at < keyEnd; at += 1)
    if (text.charCodeAt(at) === backslash) return escaped;
  const length = keyEnd - keyStart - 2;
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index] ?? "";
    if (name.length === length && text.startsWith(name, keyStart + 1)) return index;
  }
  return -1;
}

/** Does the same for a text whose members were scanned already. */
export function editScanned(text: string, members: readonly Member[], edits: MemberEdits): string {
  return joined(replacedParts(text, members, edits) ?? rebuiltParts(text, members, edits));
}

/**
 * Replaces members that occur once, which is the usual case; undefined when an edit does more than
 * that.
 */
function replacedParts(
  text: string,
  members: readonly Member[],
  edits: MemberEdits,
): string[] | undefined {
  const parts: string[] = [];
  let copiedTo = 0;
  const replaced: string[] = [];
  for (const { key, valueStart, valueEnd } of members) {
    const value = edits.get(key);
    if (value === undefined) {
      if (edits.has(key)) return undefined;
      continue;
    }
    if (replaced.includes(key)) return undefined;
    parts.push(text.slice(copiedTo, valueStart), value);
    copiedTo = valueEnd;
    replaced.push(key);
  }
  if (replaced.length < edits.size) return undefined;
  parts.push(text.slice(copiedTo));
  return parts;
}

function rebuiltParts(text: string, members: readonly Member[], edits: MemberEdits): string[] {
  const missing = new Map(edits);
  for (const member of members) missing.delete(member.key);
  const firstKey = members[0]?.keyStart;
  const last = members[members.length - 1];
  const bodyStart = firstKey ?? text.indexOf("{") + 1;
  const bodyEnd = last?.valueEnd ?? bodyStart;
  const parts = keptParts(text, members, edits);
  for (const [key, value] of missing) {
    if (value === undefined) continue;
    parts.push(`${parts.length === 0 ? "" : ","}${JSON.stringify(key)}:${value}`);
  }
  return [text.slice(0, bodyStart), ...parts, text.slice(bodyEnd)];
}

/**
 * Returns the members that stay, each with the separator that preceded it, so that spacing is kept.
 */
function keptParts(text: string, members: readonly Member[], edits: MemberEdits): string[] {
  const parts: string[] = [];
  let previousEnd = 0;
  for (const member of members) {
    const value = edits.get(member.key);
    if (value !== undefined || !edits.has(member.key)) {
      if (parts.length > 0) parts.push(text.slice(previousEnd, member.keyStart));
      if (value === undefined) parts.push(text.slice(member.keyStart, member.valueEnd));
      else parts.push(text.slice(member.keyStart, member.valueStart), value);
    }
    previousEnd = member.valueEnd;
  }
  return parts;
}

function readMember(text: string, keyStart: number): Member {
  if (text.charCodeAt(keyStart) !== quote) throw unexpected(text, keyStart, "a member name");
  const keyEnd = endOfString(text, keyStart);
  const colonAt = skipSpace(text, keyEnd);
  if (text.charCodeAt(colonAt) !== colon) throw unexpected(text, colonAt, "a colon");
  const valueStart = skipSpace(text, colonAt + 1);
  return {
    key: readKey(text, keyStart, keyEnd),
    keyStart,
    valueStart,
    valueEnd: endOfValue(text, valueStart),
  };
}

function readKey(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1);
  return raw.includes("\\") ? (JSON.parse(text.slice(start, end)) as string) : raw;
}

function endOfValue(text: string, start: number): number {
  const code = text.charCodeAt(start);
  if (code === quote) return endOfString(text, start);
  if (code === openBrace || code === openBracket) return endOfNested(text, start);
  const end = endOfScalar(text, start);
  if (end === start) throw unexpected(text, start, "a value");
  return end;
}

/**
 * Returns the index after the closing quote. A quote closes unless it is preceded by an odd run of
 * backslashes.
 */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end > 0 && text.charCodeAt(end - 1) === backslash && isEscaped(text, end))
    end = text.indexOf('"', end + 1);
  if (end < 0) throw new SyntaxError(`string at position ${start} of the JSON text is not closed`);
  return end + 1;
}

function isEscaped(text: string, position: number): boolean {
  let run = position - 1;
  while (text.charCodeAt(run) === backslash) run -= 1;
  return (position - run) % 2 === 0;
}

/**
 * Returns the index after the bracket that closes the array or object. Brackets have to match, at
 * any depth.
 */
function endOfNested(text: string, start: number): number {
  const expected: number[] = [];
  for (let position = start; position < text.length; position += 1) {
    const code = text.charCodeAt(position);
    if (code === quote) {
      position = endOfString(text, position) - 1;
    } else if (code === openBrace || code === openBracket) {
      expected.push(code + 2);
    } else if (code === closeBrace || code === closeBracket) {
      if (expected.pop() !== code) throw unexpected(text, position, "the matching bracket");
      if (expected.length === 0) return position + 1;
    }
  }
  throw new SyntaxError(`bracket at position ${start} of the JSON text is not closed`);
}

function endOfScalar(text: string, start: number): number {
  let position = start;
  while (position < text.length) {
    const code = text.charCodeAt(position);
    if (
      code === comma ||
      code === closeBrace ||
      code === closeBracket ||
      code <= 0x20 ||
      code === quote
    )
      break;
    position += 1;
  }
  return position;
}

/** Skips the four kinds of JSON white space (RFC 8259, 2). */
function skipSpace(text: string, start: number): number {
  let position = start;
  for (;;) {
    const code = text.charCodeAt(position);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return position;
    position += 1;
  }
}

function unexpected(text: string, position: number, wanted: string): SyntaxError {
  const found = position < text.length ? JSON.stringify(text[position]) : "the end of the text";
  return new SyntaxError(
    `expected ${wanted} at position ${position} of the JSON text, found ${found}`,
  );
}

/**
 * Returns the JSON text of one member's value; undefined where the object has no such member, or it
 * is null.
 */
export function memberText(text: string, key: string): string | undefined {
  const member = scanMembers(text).findLast((each) => each.key === key);
  const value = member === undefined ? undefined : text.slice(member.valueStart, member.valueEnd);
  return value === "null" ? undefined : value;
}

/** The members of an unchecked JSON object. */
export type JsonFields = Readonly<Record<string, unknown>>;

/** Returns whether a value is a JSON object, and not an array. */
export const isObject = (value: unknown): value is JsonFields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the members of a value; none where it is not an object. */
export const fieldsOf = (value: unknown): JsonFields => (isObject(value) ? value : {});

/** Returns the entries of a value; none where it is not a list. */
export const entriesOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : [];
