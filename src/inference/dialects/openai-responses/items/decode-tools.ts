import type {
  CanonicalRequest,
  AllowedTool,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../../canonical/request.ts";
import { decodeCache, decodeToolChoice, markerFields } from "../../shared/openai-fields.ts";
import { badRequest, type RequestFields, withoutUndefined } from "../../shared/wire-fields.ts";

const knownFunctionFields = new Set([
  "type",
  "name",
  "description",
  "parameters",
  "strict",
  "defer_loading",
  ...markerFields,
]);
const knownCustomFields = new Set([
  "type",
  "name",
  "description",
  "format",
  "defer_loading",
  ...markerFields,
]);

type ToolFields = Pick<CanonicalRequest, "tools" | "toolChoice" | "parallelToolCalls">;

/**
 * Decodes tools and the choice among them; `loaded` are those that items of the conversation
 * define.
 */
export function decodeToolFields(
  body: RequestFields,
  loaded: readonly Tool[],
): Partial<ToolFields> {
  const named = body.nestedList("tools")?.flatMap((tool) => decodeTool(tool));
  const tools = loaded.length === 0 ? named : [...(named ?? []), ...loaded];
  return withoutUndefined<Partial<ToolFields>>({
    tools,
    toolChoice: decodeToolChoice(body, decodeChoiceObject),
    parallelToolCalls: body.boolean("parallel_tool_calls"),
  });
}

/** Decodes one tool, or those of a namespace. Tools that the provider runs are kept as they are. */
export function decodeTool(tool: RequestFields, namespace?: string): Tool[] {
  switch (tool.requiredString("type")) {
    case "function":
      return [decodeFunction(tool, namespace)];
    case "custom":
      return [decodeCustom(tool, namespace)];
    case "namespace":
      return decodeNamespace(tool);
    default: {
      const cache = decodeCache(tool);
      return [
        {
          type: "hosted",
          dialect: "openai-responses",
          value: tool.object,
          ...(cache && { cache }),
        },
      ];
    }
  }
}

/**
 * Decodes a namespace. Its own description has no equivalent in other dialects, and stays with the
 * first of its tools.
 */
function decodeNamespace(tool: RequestFields): Tool[] {
  const name = tool.requiredString("name");
  const description = tool.string("description");
  const tools = (tool.nestedList("tools") ?? []).flatMap((inner) => decodeTool(inner, name));
  const [first, ...rest] = tools;
  if (first === undefined || first.type === "hosted" || description === undefined) return tools;
  const fields = { ...first.extensions?.fields, namespace_description: description };
  return [{ ...first, extensions: { dialect: "openai-responses", fields } }, ...rest];
}

const decodeFunction = (tool: RequestFields, namespace: string | undefined): FunctionTool =>
  withoutUndefined<FunctionTool>({
    type: "function",
    name: tool.requiredString("name"),
    description: tool.string("description"),
    parameters: tool.objectField("parameters"),
    strict: tool.boolean("strict"),
    deferred: tool.boolean("defer_loading"),
    namespace,
    cache: decodeCache(tool),
    extensions: tool.unknown("openai-responses", knownFunctionFields),
  });

const decodeCustom = (tool: RequestFields, namespace: string | undefined): CustomTool =>
  withoutUndefined<CustomTool>({
    type: "custom",
    name: tool.requiredString("name"),
    description: tool.string("description"),
    format: decodeFormat(tool.nested("format")),
    deferred: tool.boolean("defer_loading"),
    namespace,
    cache: decodeCache(tool),
    extensions: tool.unknown("openai-responses", knownCustomFields),
  });

function decodeFormat(format: RequestFields | undefined): CustomTool["format"] {
  if (format === undefined) return undefined;
  if (format.requiredString("type") !== "grammar") return { type: "text" };
  return {
    type: "grammar",
    syntax: format.requiredString("syntax"),
    definition: format.requiredString("definition"),
  };
}

function decodeChoiceObject(choice: RequestFields): ToolChoice {
  const type = choice.requiredString("type");
  switch (type) {
    case "auto":
    case "none":
    case "required":
      return { type };
    case "function":
    case "custom":
      return { type: "tool", kind: type, name: nameOf(choice, type) };
    case "allowed_tools":
      return decodeAllowed(choice);
    default:
      return { type: "hosted", dialect: "openai-responses", value: choice.object };
  }
}

/** Returns the name in a choice; some clients nest it as chat does. */
const nameOf = (choice: RequestFields, type: string): string =>
  choice.string("name") ?? choice.nested(type)?.string("name") ?? choice.requiredString("name");

function decodeAllowed(choice: RequestFields): ToolChoice {
  const tools = choice.nestedList("tools");
  if (tools === undefined)
    throw badRequest(choice.pathOf("tools"), "is required: the tools that may be called.");
  const mode = choice.string("mode") ?? "auto";
  if (mode !== "auto" && mode !== "required")
    throw badRequest(choice.pathOf("mode"), "must be auto or required.");
  return { type: "allowed", mode, tools: tools.map(decodeAllowedTool) };
}

function decodeAllowedTool(tool: RequestFields): AllowedTool {
  const type = tool.requiredString("type");
  const plain = (type === "function" || type === "custom") && Object.keys(tool.object).length === 2;
  return plain
    ? { type, name: tool.requiredString("name") }
    : { type: "hosted", value: tool.object };
}
