import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLParseError,
} from "yaml";
import type { ConfigurationProblem } from "./configuration-error.ts";
import { type Environment, expandReferences } from "./expand-references.ts";
import { pathText } from "./show-value.ts";

/** Position in a file, counted from 1. */
export interface SourcePosition {
  line: number;
  column: number;
}

/** A YAML file as plain data, and where each part of it stands. */
export interface YamlSource {
  /** Undefined when the text is no YAML. */
  data: unknown;
  problems: ConfigurationProblem[];
  /** Position of the value at a path, or of the nearest part around it that is there. */
  positionOf(path: readonly PropertyKey[], options?: { ofKey?: boolean }): SourcePosition;
}

export interface YamlOptions {
  /** Name of the file in messages. */
  file: string;
  environment: Environment;
}

/** A file within reason has a few dozen aliases; thousands are an accident or an attack. */
const maxAliasCount = 1_000;

/** Reads one YAML document; references to the environment are expanded and empty keys count as absent. */
export function readYaml(text: string, { file, environment }: YamlOptions): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
    merge: true,
  });
  const positionAt = (offset: number): SourcePosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const positionOf: YamlSource["positionOf"] = (path, options) =>
    positionAt(offsetOf(document, path, options?.ofKey ?? false));
  const problems = independentErrors(document).map(({ message, pos }) => ({
    key: "",
    message,
    file,
    ...positionAt(pos[0]),
  }));
  if (problems.length > 0) return { data: undefined, problems, positionOf };
  for (const { path, offset, missing } of expandScalars(document, environment)) {
    const message = `the environment variable ${missing} is not set; set it, or give a default as \${${missing}:-value}`;
    problems.push({ key: pathText(path), message, file, ...positionAt(offset) });
  }
  try {
    return { data: withoutEmpty(document.toJS({ maxAliasCount })), problems, positionOf };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return {
      data: undefined,
      problems: [...problems, { key: "", message, file, line: 1, column: 1 }],
      positionOf,
    };
  }
}

/** After the first error of syntax the parser only stumbles on; keys that stand twice are errors of their own. */
function independentErrors({ errors }: Document.Parsed): YAMLParseError[] {
  const first = errors.find(({ code }) => code !== "DUPLICATE_KEY");
  return errors.filter((error) => error === first || error.code === "DUPLICATE_KEY");
}

interface MissingReference {
  path: PropertyKey[];
  offset: number;
  missing: string;
}

function expandScalars(document: Document, environment: Environment): MissingReference[] {
  const missing: MissingReference[] = [];
  visit(document, {
    Scalar(key, node, ancestors) {
      if (key === "key" || typeof node.value !== "string") return undefined;
      const expansion = expandReferences(node.value, environment);
      if ("text" in expansion) {
        node.value = expansion.text;
        return undefined;
      }
      node.value = null;
      const path = pathOf(ancestors, node);
      // A provider without a key is a provider for callers who bring their own.
      if (path.at(-1) !== "api_key")
        missing.push({ path, offset: node.range?.[0] ?? 0, missing: expansion.missing });
      return undefined;
    },
  });
  return missing;
}

function pathOf(ancestors: readonly unknown[], leaf: Scalar): PropertyKey[] {
  const path: PropertyKey[] = [];
  ancestors.forEach((ancestor, index) => {
    if (isPair(ancestor)) path.push(keyText(ancestor));
    else if (isSeq(ancestor)) path.push(ancestor.items.indexOf(ancestors[index + 1] ?? leaf));
  });
  return path;
}

const keyText = ({ key }: Pair): string => String(isScalar(key) ? key.value : key);

function offsetOf(document: Document, path: readonly PropertyKey[], ofKey: boolean): number {
  let node: unknown = document.contents;
  let offset = rangeStart(node) ?? 0;
  for (const [index, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item) === String(part));
      if (!pair) return offset;
      node = pair.value;
      const wantsKey =
        (ofKey && index === path.length - 1) || !isScalar(node) || node.value === null;
      offset = (wantsKey ? undefined : rangeStart(node)) ?? rangeStart(pair.key) ?? offset;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      offset = rangeStart(node) ?? offset;
    }
  }
  return offset;
}

function rangeStart(node: unknown): number | undefined {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node)
    ? node.range?.[0]
    : undefined;
}

/** `providers:` with everything under it commented out means no providers, not a wrong type. */
function withoutEmpty(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(withoutEmpty);
  if (typeof data !== "object" || data === null) return data;
  const kept = Object.entries(data).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutEmpty(value)]));
}
