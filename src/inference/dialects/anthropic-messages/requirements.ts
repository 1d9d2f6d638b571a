import {
  isFilled,
  isSet,
  nestedField,
  numberField,
  type DeclaredParameter,
  type RequirementReader,
} from "../shared/requirements.ts";

type Body = Readonly<Record<string, unknown>>;

const answerFormat = (body: Body): unknown => nestedField(body, "output_config", "format");

/** Parameters that Messages names differently from chat. */
const otherNames: Partial<Record<DeclaredParameter, (body: Body) => unknown>> = {
  stop: (body) => body["stop_sequences"],
  response_format: answerFormat,
  reasoning_effort: (body) => nestedField(body, "output_config", "effort"),
  reasoning: (body) => body["thinking"],
  // Every Messages request has a cap, so it does not show that the caller cares about one.
  max_tokens: () => undefined,
};

/**
 * Reads the requirements of Messages requests. Each has an output cap, and agents send the same
 * large number to every model, so a cap that no route allows is lowered.
 */
export const requirements: RequirementReader = {
  outputCap: (body) => numberField(body["max_tokens"]),
  thinks: (body) =>
    "thinking" in body ? nestedField(body, "thinking", "type") !== "disabled" : undefined,
  // Clients of Messages count reasoning within the cap.
  thoughtTokens: () => undefined,
  thoughtBudget: (body) => numberField(nestedField(body, "thinking", "budget_tokens")),
  choices: () => 1,
  needsTools: (body) => isFilled(body["tools"]) || isSet(body["tool_choice"]),
  answerFormat,
  parameter: (body, name) => {
    const other = otherNames[name];
    return other === undefined ? body[name] : other(body);
  },
};
