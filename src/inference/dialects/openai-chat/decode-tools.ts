import type { CanonicalRequest } from "../../canonical/request.ts";
import type {
  AllowedTool,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/tool.ts";
import { decodeCache } from "../decode-openai-fields.ts";
import { badRequest, RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

const knownToolFields = new Set([
  "type",
  "function",
  "custom",
  "cache_control",
  "prompt_cache_breakpoint",
]);

type ToolFields = Pick<
  CanonicalRequest,
  "tools" | "toolChoice" | "parallelToolCalls" | "legacyFunctions"
>;

/** Tools and how they may be called, from today's fields or from the older `functions`. */
export function decodeToolFields(body: RequestFields): Partial<ToolFields> {
  const legacy = body.nestedList("functions");
  if (legacy !== undefined && body.array("tools") === undefined) {
    return withoutUndefined<Partial<ToolFields>>({
      tools: legacy.map((definition) => decodeFunction(definition)),
      toolChoice: decodeFunctionCall(body),
      legacyFunctions: true,
    });
  }
  return withoutUndefined<Partial<ToolFields>>({
    tools: body.nestedList("tools")?.map(decodeTool),
    toolChoice: decodeToolChoice(body),
    parallelToolCalls: body.boolean("parallel_tool_calls"),
  });
}

function decodeTool(tool: RequestFields): Tool {
  const type = tool.requiredString("type");
  const definition = type === "function" || type === "custom" ? tool.nested(type) : undefined;
  const cache = decodeCache(tool);
  if (type === "function" && definition !== undefined) return decodeFunction(definition, tool);
  if (type === "custom" && definition !== undefined) return decodeCustom(definition, tool);
  if (type === "function" || type === "custom")
    throw badRequest(tool.pathOf(type), "is required: the tool's name and what it takes.");
  return { type: "hosted", dialect: "openai-chat", value: tool.object, ...(cache && { cache }) };
}

const decodeFunction = (definition: RequestFields, tool?: RequestFields): FunctionTool =>
  withoutUndefined<FunctionTool>({
    type: "function",
    name: definition.requiredString("name"),
    description: definition.string("description"),
    parameters: definition.objectField("parameters"),
    strict: definition.boolean("strict"),
    cache: tool && decodeCache(tool),
    extensions: tool?.unknown("openai-chat", knownToolFields),
  });

function decodeCustom(definition: RequestFields, tool: RequestFields): CustomTool {
  return withoutUndefined<CustomTool>({
    type: "custom",
    name: definition.requiredString("name"),
    description: definition.string("description"),
    format: decodeFormat(definition.nested("format")),
    cache: decodeCache(tool),
    extensions: tool.unknown("openai-chat", knownToolFields),
  });
}

function decodeFormat(format: RequestFields | undefined): CustomTool["format"] {
  if (format === undefined) return undefined;
  if (format.requiredString("type") !== "grammar") return { type: "text" };
  const grammar = format.nested("grammar");
  if (grammar === undefined)
    throw badRequest(
      format.pathOf("grammar"),
      'is required: {"syntax": "lark", "definition": "..."}.',
    );
  return {
    type: "grammar",
    syntax: grammar.requiredString("syntax"),
    definition: grammar.requiredString("definition"),
  };
}

function decodeToolChoice(body: RequestFields): ToolChoice | undefined {
  const value = body.object.tool_choice;
  if (value === undefined || value === null) return undefined;
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  // Anthropic's word for `required`, which several clients send to chat as well.
  if (value === "any") return { type: "required" };
  if (typeof value === "string") {
    throw badRequest(
      "tool_choice",
      'must be "none", "auto", "required" or an object that names a tool.',
    );
  }
  return decodeChoiceObject(new RequestFields(value, "tool_choice"));
}

function decodeChoiceObject(choice: RequestFields): ToolChoice {
  const type = choice.requiredString("type");
  switch (type) {
    case "auto":
    case "none":
    case "required":
      return { type };
    case "function":
    case "custom": {
      const named = choice.nested(type);
      if (named === undefined)
        throw badRequest(choice.pathOf(type), 'is required: {"name": "..."}.');
      return { type: "tool", kind: type, name: named.requiredString("name") };
    }
    case "allowed_tools":
      return decodeAllowed(choice);
    default:
      return { type: "hosted", dialect: "openai-chat", value: choice.object };
  }
}

function decodeAllowed(choice: RequestFields): ToolChoice {
  const allowed = choice.nested("allowed_tools");
  const tools = allowed?.nestedList("tools");
  if (allowed === undefined || tools === undefined) {
    throw badRequest(
      choice.pathOf("allowed_tools"),
      'is required: {"mode": "auto", "tools": [...]}.',
    );
  }
  const mode = allowed.requiredString("mode");
  if (mode !== "auto" && mode !== "required")
    throw badRequest(allowed.pathOf("mode"), "must be auto or required.");
  return { type: "allowed", mode, tools: tools.map(decodeAllowedTool) };
}

function decodeAllowedTool(tool: RequestFields): AllowedTool {
  const type = tool.requiredString("type");
  const named = type === "function" || type === "custom" ? tool.nested(type) : undefined;
  return named !== undefined && (type === "function" || type === "custom")
    ? { type, name: named.requiredString("name") }
    : { type: "hosted", value: tool.object };
}

/** `function_call`, the older form of `tool_choice`. */
function decodeFunctionCall(body: RequestFields): ToolChoice | undefined {
  const value = body.object.function_call;
  if (value === undefined || value === null) return undefined;
  if (value === "auto" || value === "none") return { type: value };
  if (typeof value === "string")
    throw badRequest("function_call", 'must be "none", "auto" or {"name": "..."}.');
  return {
    type: "tool",
    kind: "function",
    name: new RequestFields(value, "function_call").requiredString("name"),
  };
}
