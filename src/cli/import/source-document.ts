import { readFileSync } from "node:fs";
import {
  isCollection,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  type Document,
} from "yaml";
import { CommandError } from "../terminal.ts";
import { type Outcome, type Path, SourceNode } from "./source-node.ts";
import { isObject } from "../../platform/kernel/json/json-members.ts";

/** A line of an import's report. */
export interface ImportFinding {
  file: string;
  /** Counted from 1; null for what has no line, such as a variable of the environment. */
  line: number | null;
  /** A path such as `model_list[0].litellm_params.rpm`. */
  path: string;
  outcome: Outcome;
  text: string;
}

const pathText = (path: Path): string =>
  path
    .map((part, index) =>
      typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`,
    )
    .join("");

/** Returns the text of a file. Throws `CommandError` where it cannot be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new CommandError(`cannot read ${file}`, 2);
  }
}

/**
 * A YAML or JSON file of another gateway, which remembers the parts that were read, so that the
 * others can be reported.
 */
export class SourceDocument {
  readonly findings: ImportFinding[] = [];
  private readonly data: unknown;
  private readonly document: Document | undefined;
  private readonly lines = new LineCounter();
  private readonly seen = new Set<string>();
  /** Parts of which something was read. */
  private readonly touched = new Set<string>();
  private readonly settled = new Set<string>();
  private readonly lineIn: ((path: Path) => number | null) | undefined;

  /** Reads and parses a file. Throws `CommandError` where that fails. */
  static read(file: string): SourceDocument {
    return new SourceDocument(file, textOf(file));
  }

  /** Parses a text, or takes a map, with what knows the line of each part if anything does. */
  constructor(
    readonly file: string,
    content: string | Readonly<Record<string, unknown>>,
    lineIn?: (path: Path) => number | null,
  ) {
    this.lineIn = lineIn;
    if (typeof content !== "string") {
      this.data = content;
      return;
    }
    this.document = parseDocument(content, {
      lineCounter: this.lines,
      prettyErrors: false,
      merge: true,
      uniqueKeys: false,
    });
    const [problem] = this.document.errors;
    if (problem !== undefined) {
      const line = this.lines.linePos(problem.pos[0]).line;
      throw new CommandError(`${file}:${line} is neither YAML nor JSON: ${problem.message}`);
    }
    this.data = this.document.toJS({ maxAliasCount: 1_000 });
    this.reportRepeatedKeys(this.document);
  }

  /** Reports keys that a map has twice: the last one counts, as in the YAML reader of Python. */
  private reportRepeatedKeys(document: Document): void {
    visit(document, {
      Map: (_, map) => {
        const seen = new Set<unknown>();
        for (const { key } of map.items) {
          if (!isScalar(key) || key.value === "<<") continue;
          if (seen.has(key.value)) {
            const start = key.range?.[0] ?? 0;
            const path = String(key.value);
            const { line } = this.lines.linePos(start);
            const text = "is written twice in one place; the last one counts";
            this.findings.push({ file: this.file, line, path, outcome: "changed", text });
          }
          seen.add(key.value);
        }
      },
    });
  }

  get root(): SourceNode {
    return new SourceNode(this, [], this.data);
  }

  /** Marks a part as read; with `whole`, everything in it, too. */
  use(path: Path, { whole = false }: { whole?: boolean } = {}): void {
    const place = JSON.stringify(path);
    if (whole) this.settled.add(place);
    if (this.seen.has(place)) return;
    this.seen.add(place);
    for (let length = 0; length < path.length; length += 1)
      this.touched.add(JSON.stringify(path.slice(0, length)));
  }

  /** Reports the outcome for a part, which counts as read. */
  report(path: Path, outcome: Outcome, text: string): void {
    this.use(path, { whole: outcome === "left_out" });
    this.findings.push({
      file: this.file,
      line: this.lineOf(path),
      path: pathText(path),
      outcome,
      text,
    });
  }

  /** Reports every part that was not read as left out. */
  finish(reasonFor: (path: string) => string): void {
    const walk = (path: Path, value: unknown): void => {
      const place = JSON.stringify(path);
      if (this.settled.has(place) || value === null || value === undefined) return;
      const parts: [string | number, unknown][] = Array.isArray(value)
        ? [...value.entries()]
        : isObject(value)
          ? Object.entries(value)
          : [];
      const isSection = path.length === 1 && isObject(value);
      if (!isSection && path.length > 0 && !this.touched.has(place)) {
        const isEmpty = typeof value === "object" && parts.length === 0;
        if (!isEmpty && !this.seen.has(place))
          this.report(path, "left_out", reasonFor(pathText(path)));
        return;
      }
      for (const [key, part] of parts) walk([...path, key], part);
    };
    walk([], this.data);
  }

  /** Returns the report in the order of lines. */
  inOrder(): ImportFinding[] {
    return this.findings.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
  }

  private lineOf(path: Path): number | null {
    if (this.lineIn !== undefined) return this.lineIn(path);
    let node: unknown = this.document?.contents;
    let start: number | undefined;
    // A part that was merged in or is behind an alias has the line of what refers to it.
    for (const part of path) {
      const own = isMap(node)
        ? node.items.findLast(({ key }) => isScalar(key) && key.value === part)?.value
        : undefined;
      node = own ?? (isCollection(node) ? node.get(part, true) : undefined);
      if (isNode(node)) start = node.range?.[0] ?? start;
    }
    return start === undefined ? null : this.lines.linePos(start).line;
  }
}
