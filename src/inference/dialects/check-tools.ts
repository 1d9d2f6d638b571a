import { isAbsent, isObject, type Fields } from "./check-fields.ts";
import { badRequest } from "./request-fields.ts";

/** What every dialect calls for beside the name of a tool that the caller runs itself. */
type SchemaField = "parameters" | "input_schema";

/**
 * Refuses the definition of a tool that no provider can call by its name or whose schema is none: what is not
 * refused here fails at each provider in turn, with words of its own. `path` names the definition in errors.
 */
export function checkDefinition(
  definition: Fields,
  { path, schema }: { path: () => string; schema: SchemaField },
): void {
  const { name, description, [schema]: parameters } = definition;
  if (typeof name !== "string" || name === "")
    throw badRequest(`${path()}.name`, "is required and must be a string.");
  if (!isAbsent(description) && typeof description !== "string")
    throw badRequest(`${path()}.description`, "must be a string.");
  if (isAbsent(parameters) || isObject(parameters)) return;
  throw badRequest(
    `${path()}.${schema}`,
    "must be an object: the JSON Schema of what the tool takes.",
  );
}

const choiceWords: ReadonlySet<unknown> = new Set(["none", "auto", "required", "any"]);

/** Refuses a `tool_choice` of OpenAI's dialects that is neither one of its words nor an object with a type. */
export function checkChoice(choice: unknown): void {
  if (isAbsent(choice) || choiceWords.has(choice)) return;
  if (!isObject(choice))
    throw badRequest(
      "tool_choice",
      'must be "none", "auto", "required" or an object that names a tool.',
    );
  if (typeof choice.type !== "string")
    throw badRequest("tool_choice.type", "is required and must be a string.");
}
