import type { CanonicalRequest } from "../../canonical/request.ts";
import type { FunctionTool, Tool, ToolChoice } from "../../canonical/tool.ts";
import { asObject, type RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { decodeCache } from "./cache-fields.ts";
import { laterDefinitions } from "./later-tools.ts";
import { extensionsOf } from "./own-fields.ts";

const knownFields = new Set([
  "type",
  "name",
  "description",
  "input_schema",
  "strict",
  "defer_loading",
  "input_examples",
  "cache_control",
]);

type ToolFields = Pick<CanonicalRequest, "tools" | "toolChoice" | "parallelToolCalls">;

/** Tools and how they may be called. */
export function decodeToolFields(body: RequestFields): Partial<ToolFields> {
  const choice = body.nested("tool_choice");
  const oneAtATime = choice?.boolean("disable_parallel_tool_use");
  const later = laterDefinitions(body);
  const tools =
    later.length === 0 ? body.nestedList("tools") : [...(body.nestedList("tools") ?? []), ...later];
  return withoutUndefined<Partial<ToolFields>>({
    tools: tools?.map(decodeTool),
    toolChoice: choice && decodeToolChoice(choice),
    parallelToolCalls: oneAtATime === undefined ? undefined : !oneAtATime,
  });
}

/** A tool of the caller's has a schema and at most the type `custom`; all others are run by the provider. */
function decodeTool(tool: RequestFields): Tool {
  const type = tool.string("type") ?? "";
  if (type === "" || type === "custom") return decodeFunction(tool);
  return { type: "hosted", dialect: "anthropic-messages", value: tool.object };
}

const decodeFunction = (tool: RequestFields): FunctionTool =>
  withoutUndefined<FunctionTool>({
    type: "function",
    name: tool.requiredString("name"),
    description: tool.string("description"),
    parameters: asObject(tool.object.input_schema),
    strict: tool.boolean("strict"),
    deferred: tool.boolean("defer_loading"),
    inputExamples: tool.array("input_examples"),
    cache: decodeCache(tool.object),
    extensions: extensionsOf(tool, knownFields),
  });

function decodeToolChoice(choice: RequestFields): ToolChoice {
  const type = choice.requiredString("type");
  switch (type) {
    case "auto":
    case "none":
      return { type };
    case "any":
      return { type: "required" };
    case "tool":
      return { type: "tool", kind: "function", name: choice.requiredString("name") };
    default:
      return { type: "hosted", dialect: "anthropic-messages", value: choice.object };
  }
}
