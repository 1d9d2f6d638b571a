import { isLongerThan } from "../../platform/kernel/schema-problems.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";

/** Members of a JSON object that was not checked yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** The members of a value; none where it is no object. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** Whether a value is a JSON object, and no array. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The list that a value is; undefined where it is none. */
export const listOf = (value: unknown): readonly unknown[] | undefined =>
  Array.isArray(value) ? value : undefined;

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === "";

/** Throws `missing_required_fields` that names every one of these fields that the body has not. */
export function requireFields(body: Fields, names: readonly string[]): void {
  const missing = names.filter((name) => isAbsent(body[name]));
  const [first] = missing;
  if (first === undefined) return;
  throw new GatewayError("missing_required_fields", `The body must have ${missing.join(", ")}.`, {
    param: first,
    metadata: { missing_fields: missing },
  });
}

/** Characters that a `session_id` may have (contract: "Size and count bounds"). */
const sessionIdLengthMax = 256;

/**
 * Reads fields that several surfaces have; what is wrong is refused with the surface's own code.
 */
export class FieldReader {
  private readonly code: ErrorCode;
  private readonly body: Fields;

  constructor(body: Fields, code: ErrorCode) {
    this.body = body;
    this.code = code;
  }

  /** The error for a field, such as `documents[2]`; the message goes on from its name. */
  refusal(param: string, message: string): GatewayError {
    return new GatewayError(this.code, `${param} ${message}`, { param });
  }

  text(name: string): string {
    const value = this.body[name];
    if (typeof value !== "string") throw this.refusal(name, "must be a string.");
    return value;
  }

  optionalText(name: string): string | undefined {
    return this.has(name) ? this.text(name) : undefined;
  }

  /** An integer of at least 1; undefined when it is not set. */
  positive(name: string): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.body[name];
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
    throw this.refusal(name, "must be an integer of at least 1.");
  }

  /** A boolean; false when it is not set. */
  flag(name: string): boolean {
    if (!this.has(name)) return false;
    const value = this.body[name];
    if (typeof value === "boolean") return value;
    throw this.refusal(name, "must be true or false.");
  }

  /** Refuses a `session_id` that is no text or too long. */
  checkSession(): void {
    const session = this.optionalText("session_id");
    if (session !== undefined && isLongerThan(session, sessionIdLengthMax)) {
      throw this.refusal("session_id", `may have at most ${sessionIdLengthMax} characters.`);
    }
  }

  private has(name: string): boolean {
    return this.body[name] !== undefined && this.body[name] !== null;
  }
}
