import { backslash, quote, StringEnds } from "./string-ends.ts";

/** Bounds on the content of a JSON text. */
export interface JsonBounds {
  /** The nesting depth of objects and lists. */
  levels: number;
  /** The members of all objects together. */
  members: number;
  /** The texts, objects and lists in all lists together. */
  entries: number;
  /**
   * The entries of all lists together, including numbers and other constants, which cost little.
   */
  numbers: number;
}

/** The name of a bound that JSON text exceeded. */
export type PassedBound = keyof JsonBounds;
const [comma, colon] = [0x2c, 0x3a];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts the content of JSON text while its bytes arrive, piece by piece: parsing it first would
 * take the time that the bounds are meant to save. Malformed text is left to the parser.
 */
export class JsonScanner {
  private readonly counts: JsonBounds = { levels: 0, members: 0, entries: 0, numbers: 0 };
  /** Whether each open container is a list. */
  private readonly isList: boolean[] = [];
  private readonly strings = new StringEnds();
  private inString = false;

  constructor(private readonly bounds: JsonBounds) {}

  /** Takes the next bytes. Returns the bound that they exceed, if any. */
  push(bytes: Uint8Array): PassedBound | undefined {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.inString) {
        at = this.strings.endIn(bytes, at);
        this.inString = at === bytes.length;
      } else {
        const passed = this.look(bytes[at] ?? 0);
        if (passed !== undefined) return passed;
      }
    }
    return undefined;
  }

  /** Takes a whole text. Returns the bound that it exceeds, if any. */
  pushText(text: string): PassedBound | undefined {
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      const passed = this.look(code);
      if (passed !== undefined) return passed;
      if (code === quote) {
        at = closingQuote(text, at + 1);
        this.inString = false;
      }
    }
    return undefined;
  }

  private look(byte: number): PassedBound | undefined {
    const { isList } = this;
    const inList = isList[isList.length - 1] === true;
    if (byte === quote) {
      this.inString = true;
      return inList ? this.count("entries") : undefined;
    }
    if (byte === comma) return inList ? this.count("numbers") : undefined;
    if (byte === colon) return this.count("members");
    if (byte === openList || byte === openObject) {
      isList.push(byte === openList);
      if (isList.length > this.bounds.levels) return "levels";
      return inList ? this.count("entries") : undefined;
    }
    if (byte === closeList || byte === closeObject) isList.pop();
    return undefined;
  }

  private count(what: PassedBound): PassedBound | undefined {
    this.counts[what] += 1;
    return this.counts[what] > this.bounds[what] ? what : undefined;
  }
}

/** Returns the position of the quote that ends a string of a text, or the end of the text. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashesFrom = at;
    while (slashesFrom > from && text.charCodeAt(slashesFrom - 1) === backslash) slashesFrom -= 1;
    if ((at - slashesFrom) % 2 === 0) return at;
  }
  return text.length;
}

/**
 * Returns whether a parsed JSON value is nested more than `levelsMax` deep. Walks level by level,
 * without recursion, since it is meant for values that would overflow the stack.
 */
export function isDeeperThan(value: unknown, levelsMax: number): boolean {
  let level = containersIn([value]);
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === levelsMax) return true;
    level = level.flatMap((container) =>
      containersIn(Array.isArray(container) ? container : Object.values(container)),
    );
  }
  return false;
}

const containersIn = (values: readonly unknown[]): object[] =>
  values.filter((value): value is object => typeof value === "object" && value !== null);
