import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { Loss } from "../../../canonical/request.ts";
import type { DialectDeviations } from "../../dialect.ts";
import { isReasoningOff } from "../../shared/refused-parameters.ts";
import { asArray, asObject } from "../../shared/wire-fields.ts";
import { plainSchema } from "./plain-schemas.ts";

/** The upstream that a chat body is fitted to. */
export interface FittedUpstream {
  deviations: DialectDeviations;
  /** Whether the catalog says that the model reasons. */
  reasons: boolean;
  upstreamModel: string;
}

/** The members of a body that change for an upstream; undefined removes a member. */
export interface BodyChanges {
  changes: Readonly<Record<string, JsonValue | undefined>>;
  losses: readonly Loss[];
}

/** A body that stays as it is. */
export const unchanged: BodyChanges = { changes: {}, losses: [] };

/** Returns whether an upstream has rules about functions. */
export const hasFunctionRules = (deviations: DialectDeviations): boolean =>
  deviations.unsupportedToolFields !== undefined ||
  deviations.unforcedWhileReasoning !== undefined ||
  deviations.unreasonedFunctions !== undefined ||
  deviations.plainSchemas === true ||
  deviations.unnamedToolChoice === true;

const functionOf = (tool: JsonValue | undefined): JsonObject | undefined =>
  asObject(asObject(tool)?.function);

/** Leaves out members of functions, and parts of their schemas, that the upstream refuses. */
export function plainTools(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const { unsupportedToolFields: fields = [], plainSchemas } = deviations;
  const tools = fields.length > 0 || plainSchemas ? asArray(body.tools) : undefined;
  if (tools === undefined) return unchanged;
  const losses: Loss[] = [];
  const plain = tools.map((tool, index) => {
    const definition = functionOf(tool);
    if (definition === undefined) return tool;
    const fitted = plainDefinition(definition, { fields, plainSchemas: plainSchemas === true });
    if (fitted === definition) return tool;
    for (const field of fields.filter((name) => definition[name] === true))
      losses.push({ field: `tools[${index}].${field}`, reason: "the upstream does not take it" });
    if (fitted.parameters !== definition.parameters)
      losses.push({
        field: `tools[${index}].parameters`,
        reason: "a reference stands alone there, and a tuple is a list",
      });
    return { ...asObject(tool), function: fitted };
  });
  return plain.some((tool, index) => tool !== tools[index])
    ? { changes: { tools: plain }, losses }
    : unchanged;
}

/** Returns a function as the upstream takes it; the same object where nothing has to change. */
function plainDefinition(
  definition: JsonObject,
  { fields, plainSchemas }: { fields: readonly string[]; plainSchemas: boolean },
): JsonObject {
  const kept = fields.some((field) => definition[field] !== undefined)
    ? Object.fromEntries(Object.entries(definition).filter(([name]) => !fields.includes(name)))
    : definition;
  const schema = plainSchemas ? asObject(kept.parameters) : undefined;
  const parameters = schema && plainSchema(schema);
  return parameters === schema ? kept : { ...kept, parameters };
}

/**
 * Turns reasoning off for a forced tool where the model can, and otherwise lets the model choose
 * among the tools.
 */
export function unforcedTool(
  body: JsonObject,
  { deviations: { unforcedWhileReasoning }, reasons, upstreamModel }: FittedUpstream,
): BodyChanges {
  const { tool_choice: choice } = body;
  const isForced = choice === "required" || asObject(choice)?.type === "function";
  if (unforcedWhileReasoning === undefined || !reasons || !isForced || isReasoningOff(body))
    return unchanged;
  if (unforcedWhileReasoning.alwaysReasons.test(upstreamModel))
    return {
      changes: { tool_choice: "auto" },
      losses: [{ field: "tool_choice", reason: "a model that reasons chooses its tools itself" }],
    };
  return {
    changes: { thinking: { type: "disabled" }, reasoning_effort: undefined },
    losses: [
      {
        field: "reasoning",
        reason: "the model cannot think where it is forced to call a tool",
      },
    ],
  };
}

/**
 * Turns reasoning off beside functions for models that reason with them on Responses alone, where
 * the request has to stay on chat: Responses has no several answers.
 */
export function unreasonedFunctions(
  body: JsonObject,
  { deviations: { unreasonedFunctions: models }, upstreamModel }: FittedUpstream,
): BodyChanges {
  if (models?.test(upstreamModel) !== true || isReasoningOff(body)) return unchanged;
  if (asArray(body.tools)?.some((tool) => functionOf(tool) !== undefined) !== true)
    return unchanged;
  return {
    changes: { reasoning_effort: "none" },
    losses: [
      {
        field: "reasoning_effort",
        reason: "the model gives several answers with tools only without reasoning",
      },
    ],
  };
}

/** Offers a named function alone, and requires a call, where the upstream takes no named choice. */
export function unnamedChoice(body: JsonObject, { deviations }: FittedUpstream): BodyChanges {
  const choice = deviations.unnamedToolChoice === true ? asObject(body.tool_choice) : undefined;
  const name = choice?.type === "function" ? asObject(choice.function)?.name : undefined;
  const tools = asArray(body.tools);
  const named = tools?.filter((tool) => functionOf(tool)?.name === name);
  if (name === undefined || tools === undefined || named?.length !== 1) return unchanged;
  return {
    changes: { tool_choice: "required", tools: named },
    losses:
      tools.length === 1
        ? []
        : [{ field: "tool_choice", reason: "sent as a list of the one tool that is required" }],
  };
}
