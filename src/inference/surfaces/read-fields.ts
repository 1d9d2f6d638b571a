import { badField, GatewayError } from "../../platform/kernel/errors.ts";

/** The members of an unchecked JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the value as a list; undefined where it is none. */
export const listOf = (value: unknown): readonly unknown[] | undefined =>
  Array.isArray(value) ? value : undefined;

/** Returns whether a field counts as not sent. */
export const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || value === "";

/** Returns the text of a field; undefined where it is absent. Throws `bad_request`. */
export function textIn(body: Fields, name: string): string | undefined {
  const value = body[name];
  if (isAbsent(value)) return undefined;
  if (typeof value === "string") return value;
  throw badField(name, "must be a string.");
}

/** Returns a flag, which forms write as text; false where it is absent. Throws `bad_request`. */
export function flagIn(body: Fields, name: string): boolean {
  const value = body[name];
  if (isAbsent(value) || value === false || value === "false") return false;
  if (value === true || value === "true") return true;
  throw badField(name, "must be true or false.");
}

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
