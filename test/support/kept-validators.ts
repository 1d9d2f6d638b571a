import type { JsonSchemaType, JsonSchemaValidator } from "@modelcontextprotocol/sdk/validation";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";

/**
 * Checks results of tools as clients of the MCP SDK 1.x do, and compiles a schema once: each such
 * client compiles the schemas of all tools whenever it lists them.
 */
class KeptValidators extends AjvJsonSchemaValidator {
  readonly #kept = new Map<string, JsonSchemaValidator<unknown>>();

  override getValidator<Result>(schema: JsonSchemaType): JsonSchemaValidator<Result> {
    const text = JSON.stringify(schema);
    const kept = this.#kept.get(text) ?? super.getValidator<unknown>(schema);
    this.#kept.set(text, kept);
    return kept as JsonSchemaValidator<Result>;
  }
}

/** The validators of every client of a process. */
export const jsonSchemaValidator = new KeptValidators();
