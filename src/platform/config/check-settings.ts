import {
  type Document,
  LineCounter,
  type Pair,
  type Scalar,
  type YAMLParseError,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  parseDocument,
  visit,
} from "yaml";
import type { z } from "zod";
import { closestName, knownKeys } from "../kernel/schema-problems.ts";
import { type ConfigurationProblem, gotText, pathText } from "./configuration-error.ts";
import { type ConfigurationWarning, suggestion } from "./configuration-warnings.ts";
import { type Environment, expandReferences } from "./environment-settings.ts";
import { type FileSettings, createFileSchema } from "./file-schema.ts";

/** The inputs of checking a file's text. */
export interface CheckOptions<Provider extends z.ZodType> {
  /** The file's name, as messages show it. */
  file: string;
  /** The directory that relative paths in the file start from. */
  directory: string;
  environment: Environment;
  providerSchema: Provider;
  /** Takes settings that can be used and are probably not what was meant. */
  onWarning?: ((warning: ConfigurationWarning) => void) | undefined;
}

/**
 * Returns the settings in a file's text; undefined when they cannot be used, and then a problem
 * says why.
 */
export function checkSettings<Provider extends z.ZodType>(
  text: string,
  { file, directory, environment, providerSchema, onWarning }: CheckOptions<Provider>,
  problems: ConfigurationProblem[],
): FileSettings<Provider> | undefined {
  const schema = createFileSchema(providerSchema, directory);
  const source = readYaml(text, { file, environment, onWarning });
  const found = [...source.problems];
  const result = source.data === undefined ? undefined : schema.safeParse(source.data ?? {});
  if (result !== undefined) found.push(...duplicateProviders(source, file));
  if (result?.success === false)
    found.push(...schemaProblems(result.error.issues, { schema, source, file }));
  problems.push(...found.sort((one, other) => (one.line ?? 0) - (other.line ?? 0)));
  return result?.data;
}

function duplicateProviders(source: YamlSource, file: string): ConfigurationProblem[] {
  const firstIndexes = new Map<string, number>();
  return providerIds(source.data).flatMap((id, index) => {
    if (id === undefined) return [];
    const first = firstIndexes.get(id);
    if (first === undefined) firstIndexes.set(id, index);
    if (first === undefined) return [];
    const path = ["providers", index, "id"];
    const message = `${JSON.stringify(id)} is already the id of providers[${first}]`;
    return [{ key: pathText(path), message, file, ...source.positionOf(path) }];
  });
}

function providerIds(data: unknown): (string | undefined)[] {
  if (
    typeof data !== "object" ||
    data === null ||
    !("providers" in data) ||
    !Array.isArray(data.providers)
  )
    return [];
  return data.providers.map((entry: unknown) =>
    typeof entry === "object" && entry !== null && "id" in entry && typeof entry.id === "string"
      ? entry.id
      : undefined,
  );
}

type Issue = z.core.$ZodIssue;

interface SchemaProblem {
  path: PropertyKey[];
  message: string;
  /** Whether the key itself is wrong, as opposed to its value. */
  ofKey?: boolean;
}

interface CheckedSource {
  schema: z.ZodType;
  source: YamlSource;
  file: string;
}

/** Returns a schema's problems with a file's data, each with its place in the file. */
function schemaProblems(
  issues: readonly Issue[],
  { schema, source, file }: CheckedSource,
): ConfigurationProblem[] {
  const problems = issues.flatMap((issue) => problemsOf(issue, { schema, data: source.data }));
  return problems.map(({ path, message, ofKey = false }) => ({
    key: pathText(path),
    message,
    file,
    ...source.positionOf(path, { ofKey }),
  }));
}

interface Context {
  schema: z.ZodType;
  data: unknown;
}

function problemsOf(issue: Issue, context: Context): SchemaProblem[] {
  if (issue.code === "unrecognized_keys") {
    const known = knownKeys(context.schema, issue.path);
    return issue.keys.map((key) => ({
      path: [...issue.path, key],
      message: unknownKeyText(key, known),
      ofKey: true,
    }));
  }
  if (issue.code === "invalid_union") return unionProblems(issue, context);
  if (issue.code === "invalid_key") {
    const message = issue.issues.map(expectation).join(" and ");
    return [{ path: issue.path, message: `${message} as its key`, ofKey: true }];
  }
  const value = valueAt(context.data, issue.path);
  if (issue.code === "invalid_type" && value === undefined)
    return [{ path: issue.path, message: "is required" }];
  return [{ path: issue.path, message: `${expectation(issue)}${gotText(value, issue.path)}` }];
}

function unknownKeyText(key: string, known: readonly string[]): string {
  const closest = closestName(key, known);
  return closest === undefined ? "unknown key" : `unknown key; did you mean "${closest}"?`;
}

/**
 * Returns the problems of the union's alternative that the value resembles, or of all of them where
 * it resembles none.
 */
function unionProblems(issue: z.core.$ZodIssueInvalidUnion, context: Context): SchemaProblem[] {
  const resembled = issue.errors.find((alternative) =>
    alternative.some(({ path, code }) => path.length > 0 || code === "unrecognized_keys"),
  );
  if (resembled) {
    return resembled.flatMap((inner) =>
      problemsOf({ ...inner, path: [...issue.path, ...inner.path] }, context),
    );
  }
  const expectations = new Set(
    issue.errors
      .flat()
      .map(expectation)
      .map((text) => text.replace(/^expected /, "")),
  );
  const message =
    expectations.size === 0 ? issue.message : `expected ${[...expectations].join(" or ")}`;
  return [
    {
      path: issue.path,
      message: `${message}${gotText(valueAt(context.data, issue.path), issue.path)}`,
    },
  ];
}

/** Returns Zod's own message, from "expected" on. */
function expectation(issue: Issue): string {
  if (issue.code === "invalid_value")
    return `expected ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
  if (issue.code === "invalid_type" && issue.message.startsWith("Invalid input")) {
    return `expected ${typeNames[issue.expected] ?? issue.expected}`;
  }
  return issue.message.replace(/^[A-Z][a-z ]+: (?=expected)/, "");
}

const typeNames: Record<string, string> = {
  string: "text",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  object: "a map",
  record: "a map",
  array: "a list",
};

function valueAt(data: unknown, path: readonly PropertyKey[]): unknown {
  let value = data;
  for (const part of path) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

/** A position in a file, counted from 1. */
interface SourcePosition {
  line: number;
  column: number;
}

/** A YAML file as plain data, with the position of each part. */
interface YamlSource {
  /** Undefined when the text is not YAML. */
  data: unknown;
  problems: ConfigurationProblem[];
  /** Returns the position of the value at a path, or of the nearest enclosing part that exists. */
  positionOf(path: readonly PropertyKey[], options?: { ofKey?: boolean }): SourcePosition;
}

interface YamlOptions {
  /** The file's name, as messages show it. */
  file: string;
  environment: Environment;
  onWarning: CheckOptions<z.ZodType>["onWarning"];
}

/**
 * The most aliases of a file. A reasonable one has a few dozen; thousands are an accident or an
 * attack.
 */
const maxAliasCount = 1_000;

/**
 * Parses one YAML document. References to the environment are expanded, and empty keys count as
 * absent.
 */
function readYaml(text: string, { file, environment, onWarning }: YamlOptions): YamlSource {
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
  const problems = independentErrors(document).map(({ code, message, pos: [offset] }) => ({
    ...(code === "DUPLICATE_KEY"
      ? { key: pathText(keyPathAt(document, offset)), message: "duplicate key" }
      : { key: "", message: code === "MULTIPLE_DOCS" ? "a second document begins here" : message }),
    file,
    ...positionAt(offset),
  }));
  if (problems.length > 0) return { data: undefined, problems, positionOf };
  for (const { path, offset, missing } of expandScalars(document, environment)) {
    const place = { key: pathText(path), file, ...positionAt(offset) };
    const meant = suggestion(missing, namesIn(environment));
    const unset = `the environment variable ${missing} is not set`;
    // A provider without a key is a provider for callers who bring their own.
    if (path.at(-1) === "api_key")
      onWarning?.({ ...place, message: `${unset}, so that callers bring their own key${meant}` });
    else
      problems.push({
        ...place,
        message: `${unset}; set it, or give a default as \${${missing}:-value}${meant}`,
      });
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

/**
 * Returns the errors worth reporting: the first syntax error, since later ones follow from it, and
 * all duplicate keys.
 */
function independentErrors({ errors }: Document.Parsed): YAMLParseError[] {
  const first = errors.find(({ code }) => code !== "DUPLICATE_KEY");
  return errors.filter((error) => error === first || error.code === "DUPLICATE_KEY");
}

const namesIn = (environment: Environment): string[] =>
  Object.keys(environment).filter((name) => environment[name]);

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
      missing.push({ path, offset: node.range?.[0] ?? 0, missing: expansion.missing });
      return undefined;
    },
  });
  return missing;
}

/** Returns the path of the key at an offset; empty where there is none. */
function keyPathAt(document: Document, offset: number): PropertyKey[] {
  let path: PropertyKey[] = [];
  visit(document, {
    Pair(_, pair, ancestors) {
      if (rangeStart(pair.key) !== offset) return undefined;
      path = [...pathOf(ancestors, pair), keyText(pair)];
      return visit.BREAK;
    },
  });
  return path;
}

function pathOf(ancestors: readonly unknown[], leaf: Scalar | Pair): PropertyKey[] {
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

/**
 * Removes empty values: `providers:` with everything under it commented out means no providers, and
 * not a wrong type.
 */
function withoutEmpty(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(withoutEmpty);
  if (typeof data !== "object" || data === null) return data;
  const kept = Object.entries(data).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutEmpty(value)]));
}
