import { z, type ZodType } from "zod";
import {
  closestName,
  knownKeys,
  problemIn,
  problemText,
} from "../../platform/kernel/schema-problems.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";

/** Returns the path of a field as callers write it, such as `messages[2].content`. */
const fieldPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === "number"
        ? `${text}[${part}]`
        : text === ""
          ? String(part)
          : `${text}.${String(part)}`,
    "",
  );

/**
 * Returns the message for an unknown name: the name that was most likely meant, or else all that
 * exist.
 */
function unknownName(
  name: string,
  { known, kind }: { known: readonly string[]; kind: "field" | "parameter" },
): string {
  const closest = closestName(name, known);
  if (closest !== undefined) return `is not a ${kind} of this request; did you mean ${closest}?`;
  if (known.length === 0) return `is not a ${kind} of this request, which takes none.`;
  return `is not a ${kind} of this request; it takes ${known.join(", ")}.`;
}

/** Returns whether a schema refuses fields that it does not name. */
export const isStrictObject = (schema: ZodType | undefined): schema is z.ZodObject =>
  schema instanceof z.ZodObject &&
  schema.def.error === undefined &&
  (schema.def.catchall === undefined || schema.def.catchall instanceof z.ZodNever);

/**
 * Refuses fields that an object schema does not name, before anything else is checked: a misspelt
 * field would otherwise be ignored silently, or reported as another one that is missing. Schemas
 * that handle other fields themselves are left to do so.
 */
export function refuseUnknownFields(
  schema: ZodType,
  value: Readonly<Record<string, unknown>>,
): void {
  if (!isStrictObject(schema)) return;
  const known = Object.keys(schema.shape);
  const name = Object.keys(value).find((field) => !known.includes(field));
  if (name === undefined) return;
  throw badField(name, `${unknownName(name, { known, kind: "field" })}`);
}

/** The parameter by which Azure's clients name a version, on every request. */
const versionParameter = "api-version";

/**
 * Refuses query parameters that an endpoint does not take, and zero bytes in others, which Postgres
 * would answer as a mistake of the gateway.
 */
export function refuseUnknownParameters(schema: ZodType | undefined, query: URLSearchParams): void {
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  for (const [name, value] of query) {
    if (known.includes(name) && value.includes("\0"))
      throw badField(name, "must not hold a zero byte");
    if (known.includes(name) || name === versionParameter) continue;
    throw badField(name, `${unknownName(name, { known, kind: "parameter" })}`);
  }
}

/** Returns whether a message is Zod's own, which does not say what would be accepted. */
const isDefaultText = (message: string): boolean =>
  message.startsWith("Unrecognized key") || message === "Invalid input";

/**
 * Returns the problem and its place. An unknown field is reported with the field that was most
 * likely meant.
 */
function problemOf(schema: ZodType, issue: z.core.$ZodIssue): { param: string; message: string } {
  if (issue.code === "invalid_union" && isDefaultText(issue.message)) {
    const { path, message } = problemIn(issue);
    return { param: fieldPath(path), message };
  }
  if (issue.code !== "unrecognized_keys")
    return { param: fieldPath(issue.path), message: issue.message };
  const name = issue.keys[0] ?? "";
  const known = knownKeys(schema, issue.path);
  const message =
    isDefaultText(issue.message) || closestName(name, known) !== undefined
      ? unknownName(name, { known, kind: "field" })
      : issue.message;
  return { param: fieldPath([...issue.path, name]), message };
}

/** A problem with its field in front, unless its words begin with the field. */
const withField = (param: string, message: string): string =>
  message.startsWith(`${param} `) ? message : `${param}: ${message}`;

/**
 * Returns the value as the schema yields it. The first problem is answered as a 400 with the
 * field's name.
 */
export function checkBody<Body>(schema: ZodType<Body>, value: unknown): Body {
  const result = schema.safeParse(value, { error: problemText });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const { param, message } =
    issue === undefined
      ? { param: "", message: "it does not fit its schema" }
      : problemOf(schema, issue);
  throw new GatewayError(
    "bad_request",
    param === "" ? `The body is not valid: ${message}` : withField(param, message),
    {
      ...(param === "" ? {} : { param }),
    },
  );
}
