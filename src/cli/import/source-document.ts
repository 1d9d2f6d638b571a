import { readFileSync } from "node:fs";
import {
  isCollection,
  isMap as isYamlMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  type Document,
} from "yaml";
import { CommandError } from "../terminal.ts";

/** The outcome for a part of another gateway's file. */
export type Outcome = "imported" | "changed" | "left_out";

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

/** Names and places that lead to a part. */
export type Path = readonly (string | number)[];

const pathText = (path: Path): string =>
  path
    .map((part, index) =>
      typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`,
    )
    .join("");

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

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
  readonly file: string;
  readonly findings: ImportFinding[] = [];
  private readonly data: unknown;
  private readonly document: Document | undefined;
  private readonly lines = new LineCounter();
  private readonly seen = new Set<string>();
  private readonly settled = new Set<string>();
  private readonly lineIn: ((path: Path) => number | null) | undefined;

  /** Reads and parses a file. Throws `CommandError` where that fails. */
  static read(file: string): SourceDocument {
    return new SourceDocument(file, textOf(file));
  }

  /** Parses a text, or takes a map, with what knows the line of each part if anything does. */
  constructor(
    file: string,
    content: string | Readonly<Record<string, unknown>>,
    lineIn?: (path: Path) => number | null,
  ) {
    this.file = file;
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
    this.seen.add(JSON.stringify(path));
    if (whole) this.settled.add(JSON.stringify(path));
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
        : isMap(value)
          ? Object.entries(value)
          : [];
      const isSection = path.length === 1 && isMap(value);
      if (!isSection && !this.isTouchedBelow(path)) {
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

  private isTouchedBelow(path: Path): boolean {
    if (path.length === 0) return true;
    const prefix = `${JSON.stringify(path).slice(0, -1)},`;
    return [...this.seen].some((seen) => seen.startsWith(prefix));
  }

  private lineOf(path: Path): number | null {
    if (this.lineIn !== undefined) return this.lineIn(path);
    let node: unknown = this.document?.contents;
    let start: number | undefined;
    // A part that was merged in or is behind an alias has the line of what refers to it.
    for (const part of path) {
      const own = isYamlMap(node)
        ? node.items.findLast(({ key }) => isScalar(key) && key.value === part)?.value
        : undefined;
      node = own ?? (isCollection(node) ? node.get(part, true) : undefined);
      if (isNode(node)) start = node.range?.[0] ?? start;
    }
    return start === undefined ? null : this.lines.linePos(start).line;
  }
}

/** A part of a source document; reading it marks it as read. */
export class SourceNode {
  readonly path: Path;
  private readonly source: SourceDocument;
  private readonly value: unknown;

  constructor(source: SourceDocument, path: Path, value: unknown) {
    this.source = source;
    this.path = path;
    this.value = value;
  }

  /** Returns the part under a key; undefined where there is none, or it is null. */
  get(key: string): SourceNode | undefined {
    if (!isMap(this.value)) return undefined;
    const part = this.value[key];
    return part === null || part === undefined
      ? undefined
      : new SourceNode(this.source, [...this.path, key], part);
  }

  /** Returns the entries of a list; none for anything else. */
  items(): SourceNode[] {
    return Array.isArray(this.value)
      ? this.value.map((part, index) => new SourceNode(this.source, [...this.path, index], part))
      : [];
  }

  /** Returns the members of a map; none for anything else. */
  entries(): [key: string, part: SourceNode][] {
    return isMap(this.value)
      ? Object.keys(this.value).flatMap((key): [string, SourceNode][] => {
          const part = this.get(key);
          return part === undefined ? [] : [[key, part]];
        })
      : [];
  }

  isList(): boolean {
    return Array.isArray(this.value);
  }

  isMap(): boolean {
    return isMap(this.value);
  }

  /** Returns the text, where it is one; marks it as read. */
  text(): string | undefined {
    if (typeof this.value !== "string" || this.value === "") return undefined;
    this.source.use(this.path);
    return this.value;
  }

  /** Returns the number, also one that is written as text; marks it as read. */
  number(): number | undefined {
    const value =
      typeof this.value === "string" && this.value.trim() !== "" ? Number(this.value) : this.value;
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    this.source.use(this.path);
    return value;
  }

  /** Returns whether it is true; marks it as read. */
  isTrue(): boolean {
    this.source.use(this.path);
    return this.value === true;
  }

  /** Returns the texts of a list; marks them as read. */
  texts(): string[] {
    return this.items().flatMap((item) => item.text() ?? []);
  }

  /** Returns the whole value; marks everything in it as read. */
  whole(): unknown {
    this.source.use(this.path, { whole: true });
    return this.value;
  }

  /** Reports the outcome for this part. */
  report(outcome: Outcome, text: string): void {
    this.source.report(this.path, outcome, text);
  }
}
