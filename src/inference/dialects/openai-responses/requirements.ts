import {
  isFilled,
  isSet,
  nestedField,
  numberField,
  openaiThoughts,
  type RequirementReader,
} from "../shared/requirements.ts";

type Body = Readonly<Record<string, unknown>>;

const answerFormat = (body: Body): unknown => nestedField(body, "text", "format");

/** Reads the requirements of requests in the Responses dialect. */
export const requirements: RequirementReader = {
  outputCap: (body) => numberField(body["max_output_tokens"]),
  ...openaiThoughts,
  choices: () => 1,
  needsTools: (body) => isFilled(body["tools"]) || isSet(body["tool_choice"]),
  answerFormat,
  parameter(body, name) {
    if (name === "response_format") return answerFormat(body);
    return name === "max_tokens" ? body["max_output_tokens"] : body[name];
  },
};
