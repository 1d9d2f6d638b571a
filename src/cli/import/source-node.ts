import { isObject } from "../../platform/kernel/json/json-members.ts";

/** The outcome for a part of another gateway's file. */
export type Outcome = "imported" | "changed" | "left_out";

/** Names and places that lead to a part. */
export type Path = readonly (string | number)[];

/** What a part reports to its document. */
interface Source {
  /** Marks a part as read, or everything in it. */
  use(path: Path, options?: { whole?: boolean }): void;
  report(path: Path, outcome: Outcome, text: string): void;
}

/** A part of a source document; reading it marks it as read. */
export class SourceNode {
  constructor(
    private readonly source: Source,
    readonly path: Path,
    private readonly value: unknown,
  ) {}

  /** Returns the part under a key; undefined where there is none, or it is null. */
  get(key: string): SourceNode | undefined {
    if (!isObject(this.value)) return undefined;
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
    return isObject(this.value)
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
    return isObject(this.value);
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
