import { isLongerThan } from "../../platform/kernel/schema-problems.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { Fields } from "./read-fields.ts";

/** The most characters of a `session_id` (contract: "Size and count bounds"). */
const sessionIdLengthMax = 256;

/**
 * Reads fields that several surfaces share; invalid ones are refused with the surface's own code.
 */
export class FieldReader {
  constructor(
    private readonly body: Fields,
    private readonly code: ErrorCode,
    /** What is before each name in errors, such as `embeddingConfig.`. */
    private readonly prefix = "",
  ) {}

  /** Builds the error for a field, such as `documents[2]`; the message continues after its name. */
  refusal(name: string, message: string): GatewayError {
    const param = this.prefix + name;
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

  /** Returns an integer of at least 1; undefined when it is not set. */
  positive(name: string): number | undefined {
    if (!this.has(name)) return undefined;
    const value = this.body[name];
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
    throw this.refusal(name, "must be an integer of at least 1.");
  }

  /** Returns a boolean; false when it is not set. */
  flag(name: string): boolean {
    if (!this.has(name)) return false;
    const value = this.body[name];
    if (typeof value === "boolean") return value;
    throw this.refusal(name, "must be true or false.");
  }

  /** Refuses a `session_id` that is not a text, or too long. */
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
