import type { JsonObject } from "../../canonical/json.ts";
import type {
  AllowedTool,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
  ToolKind,
} from "../../canonical/tool.ts";
import { objectSchema } from "../object-schema.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { wrappedDescription, wrappedParameters } from "../wrapped-tool.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";

/** Everything about tools; without tools left, nothing about choosing among them either. */
export function encodeToolFields(state: EncodeState): JsonObject {
  const { toolChoice, parallelToolCalls, legacyFunctions } = state.request;
  const tools = offeredTools(state);
  const wire = tools.flatMap((tool) =>
    encodeTool(tool, state.at(`tools[${state.request.tools?.indexOf(tool) ?? 0}]`)),
  );
  if (wire.length === 0) return {};
  if (legacyFunctions === true) return encodeLegacy(wire, toolChoice);
  return withoutUndefined<JsonObject>({
    tools: wire,
    tool_choice: toolChoice && encodeToolChoice(toolChoice, state),
    parallel_tool_calls: toolChoice?.type === "none" ? undefined : parallelToolCalls,
  });
}

/** `allowed_tools` is OpenAI's alone; for others the tools that are not allowed are left out. */
function offeredTools(state: EncodeState): readonly Tool[] {
  const { tools = [], toolChoice } = state.request;
  if (toolChoice?.type !== "allowed" || state.sameDialect) return tools;
  state.lose(
    "tool_choice.allowed_tools",
    "sent as a shorter list of tools, which a prompt cache notices",
  );
  return tools.filter(
    (tool) =>
      tool.type !== "hosted" &&
      toolChoice.tools.some((allowed) => allowed.type === tool.type && allowed.name === tool.name),
  );
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place)];
    case "custom":
      return [
        place.state.namer.wraps({ kind: "custom" })
          ? wrapCustom(tool, place.state)
          : encodeCustom(tool, place),
      ];
    case "hosted":
      if (tool.dialect === "openai-chat") return [tool.value];
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

function encodeFunction(tool: FunctionTool, place: EncodePlace): JsonObject {
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("chat tools have no such field");
  return {
    type: "function",
    function: withoutUndefined<JsonObject>({
      name: place.state.namer.wireName({ ...tool, kind: "function" }),
      description: tool.description,
      parameters: objectSchema(tool.parameters),
      strict: tool.strict,
    }),
    ...place.state.cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  };
}

const encodeCustom = (tool: CustomTool, place: EncodePlace): JsonObject => ({
  type: "custom",
  custom: withoutUndefined<JsonObject>({
    name: place.state.namer.wireName({ ...tool, kind: "custom" }),
    description: tool.description,
    format: encodeFormat(tool.format),
  }),
  ...place.state.cacheFields(tool.cache),
  ...place.extensionFields(tool.extensions),
});

function encodeFormat(format: CustomTool["format"]): JsonObject | undefined {
  if (format?.type !== "grammar") return format && { type: format.type };
  return { type: "grammar", grammar: { syntax: format.syntax, definition: format.definition } };
}

/** A custom tool for upstreams that know functions alone; the grammar becomes advice. */
function wrapCustom(tool: CustomTool, state: EncodeState): JsonObject {
  const description = wrappedDescription(tool, () =>
    state.lose(`tools.${tool.name}.format`, "the grammar is described, not enforced"),
  );
  return {
    type: "function",
    function: {
      name: state.namer.wireName({ ...tool, kind: "custom" }),
      ...(description !== undefined && { description }),
      parameters: wrappedParameters,
    },
    ...state.cacheFields(tool.cache),
  };
}

function encodeToolChoice(choice: ToolChoice, state: EncodeState): JsonObject | string | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return namedTool(choice, state);
    case "allowed":
      if (!state.sameDialect) return choice.mode;
      return {
        type: "allowed_tools",
        allowed_tools: {
          mode: choice.mode,
          tools: choice.tools.map((tool) => encodeAllowed(tool, state)),
        },
      };
    case "hosted":
      if (choice.dialect === "openai-chat") return choice.value;
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}

function namedTool(
  { kind, name }: { kind: ToolKind; name: string },
  state: EncodeState,
): JsonObject {
  const wire = state.namer.wireName({ kind, name });
  return kind === "custom" && !state.namer.wraps({ kind })
    ? { type: "custom", custom: { name: wire } }
    : { type: "function", function: { name: wire } };
}

const encodeAllowed = (tool: AllowedTool, state: EncodeState): JsonObject =>
  tool.type === "hosted" ? tool.value : namedTool({ kind: tool.type, name: tool.name }, state);

/** The older fields, for clients that still speak them. */
function encodeLegacy(tools: readonly JsonObject[], choice: ToolChoice | undefined): JsonObject {
  return withoutUndefined<JsonObject>({
    functions: tools.map((tool) => tool.function as JsonObject),
    function_call: choice && legacyChoice(choice),
  });
}

function legacyChoice(choice: ToolChoice): JsonObject | string | undefined {
  if (choice.type === "tool") return { name: choice.name };
  return choice.type === "none" || choice.type === "auto" ? choice.type : undefined;
}
