import { z } from "zod";
import { closestName } from "../lib/closest-name.ts";
import { knownKeys } from "../lib/known-keys.ts";
import type { ConfigurationProblem } from "./configuration-error.ts";
import { gotText, pathText } from "./show-value.ts";
import type { YamlSource } from "./yaml-source.ts";

type Issue = z.core.$ZodIssue;

interface SchemaProblem {
  path: PropertyKey[];
  message: string;
  /** The key itself is wrong, not its value. */
  ofKey?: boolean;
}

export interface CheckedSource {
  schema: z.ZodType;
  source: YamlSource;
  file: string;
}

/** What a schema has against a file's data, each with its place in the file. */
export function schemaProblems(
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
  const value = valueAt(context.data, issue.path);
  if (issue.code === "invalid_type" && value === undefined)
    return [{ path: issue.path, message: "is required" }];
  return [{ path: issue.path, message: `${expectation(issue)}${gotText(value, issue.path)}` }];
}

function unknownKeyText(key: string, known: readonly string[]): string {
  const closest = closestName(key, known);
  return closest === undefined ? "unknown key" : `unknown key; did you mean "${closest}"?`;
}

/** The alternative that the value resembles speaks for the union; when it resembles none, all do. */
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

/** Zod's own words, from "expected" on. */
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
