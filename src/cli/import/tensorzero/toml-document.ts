import { CommandError } from "../../terminal.ts";
import { SourceDocument, textOf } from "../source-document.ts";
import type { Path } from "../source-node.ts";

/** A part of a key: bare, or within quotation marks. */
const keyPart = /\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.?)/y;

/** Returns the parts of a dotted key at the start of a text, and where it ends. */
function dottedKey(text: string): { parts: string[]; end: number } {
  const parts: string[] = [];
  let end = 0;
  for (;;) {
    keyPart.lastIndex = end;
    const [whole, quoted, literal, bare, dot] = keyPart.exec(text) ?? [];
    const part = quoted ?? literal ?? bare;
    if (whole === undefined || part === undefined) return { parts, end };
    parts.push(part);
    end += whole.length;
    if (dot === "") return { parts, end };
  }
}

/** Returns the line of each table and key of a document; what is inside of a value has none. */
function linesOf(text: string): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  const counts = new Map<string, number>();
  let table: Path = [];
  const note = (path: Path, line: number): void => {
    const place = JSON.stringify(path);
    if (!lines.has(place)) lines.set(place, line);
  };
  for (const [index, line] of text.split("\n").entries()) {
    const [head, isList] = line.startsWith("[[")
      ? [line.slice(2), true]
      : [line.trimStart().startsWith("[") ? line.trimStart().slice(1) : undefined, false];
    if (head !== undefined) {
      const { parts, end } = dottedKey(head);
      if (head[end] !== "]") continue;
      const place = JSON.stringify(parts);
      const count = counts.get(place) ?? 0;
      if (isList) counts.set(place, count + 1);
      table = isList ? [...parts, count] : parts;
      note(table, index + 1);
      continue;
    }
    const { parts, end } = dottedKey(line);
    if (parts.length > 0 && line[end] === "=") note([...table, ...parts], index + 1);
  }
  return lines;
}

/** Reads and parses a TOML file. Throws `CommandError` where that fails. */
export function readToml(file: string): SourceDocument {
  const text = textOf(file);
  let data: object;
  try {
    data = Bun.TOML.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(`${file} is no TOML: ${reason}`);
  }
  const lines = linesOf(text);
  return new SourceDocument(file, data as Record<string, unknown>, (path) => {
    for (let length = path.length; length > 0; length -= 1) {
      const line = lines.get(JSON.stringify(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return null;
  });
}
