import { GatewayError } from "../../platform/kernel/errors.ts";

/** The members of an unchecked JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the members of a value; none where it is not an object. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** Returns whether a value is a JSON object, and not an array. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the value as a list; undefined where it is none. */
export const listOf = (value: unknown): readonly unknown[] | undefined =>
  Array.isArray(value) ? value : undefined;

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === "";

/** Throws `missing_required_fields` that names every one of these fields that the body lacks. */
export function requireFields(body: Fields, names: readonly string[]): void {
  const missing = names.filter((name) => isAbsent(body[name]));
  const [first] = missing;
  if (first === undefined) return;
  throw new GatewayError("missing_required_fields", `The body must have ${missing.join(", ")}.`, {
    param: first,
    metadata: { missing_fields: missing },
  });
}

/** Members of requests for pictures and sound that the gateway reads, and providers do not know. */
export const gatewayMembers: readonly string[] = [
  "model",
  "models",
  "provider",
  "preset",
  "route",
  "plugins",
  "trace",
  "metadata",
  "session_id",
  "require_params",
  "min_context",
];
