import {
  isFilled,
  isSet,
  numberField,
  openaiThoughts,
  type RequirementReader,
} from "../shared/requirements.ts";
import { capOf } from "../shared/output-cap.ts";

/** Reads the requirements of chat requests, some of whose fields also have an older name. */
export const requirements: RequirementReader = {
  capChoosesRoutes: true,
  outputCap: (body) => capOf((name) => numberField(body[name])),
  ...openaiThoughts,
  choices: (body) => numberField(body["n"]) ?? 1,
  needsTools: (body) =>
    isFilled(body["tools"]) ||
    isSet(body["tool_choice"]) ||
    isFilled(body["functions"]) ||
    isSet(body["function_call"]),
  answerFormat: (body) => body["response_format"],
  parameter(body, name) {
    if (name === "tools") return body["tools"] ?? body["functions"];
    return name === "tool_choice" ? (body["tool_choice"] ?? body["function_call"]) : body[name];
  },
};
