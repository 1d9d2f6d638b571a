import type { JsonObject } from "../../../canonical/json.ts";
import type { CustomTool, FunctionTool, Tool, ToolChoice } from "../../../canonical/tool.ts";
import type { EncodePlace, EncodeState } from "../../encode-state.ts";
import { withoutUndefined } from "../../wire-fields.ts";
import { wrappedDescription, wrappedParameters } from "../../tools.ts";
import { cacheFields, laterToolNames } from "./own-fields.ts";
import { claudeAbilities } from "../../reasoning-rules.ts";
import { closedSchema, typedObjectSchema } from "../../json-schema.ts";

/** Everything about tools; without tools left, nothing about choosing among them either. */
export function encodeToolFields(state: EncodeState): JsonObject {
  const tools = offeredTools(state);
  const wire = tools.flatMap((tool) =>
    encodeTool(tool, state.at(`tools[${state.request.tools?.indexOf(tool) ?? 0}]`)),
  );
  if (wire.length === 0) return {};
  return withoutUndefined<JsonObject>({ tools: wire, tool_choice: encodeToolChoice(state) });
}

/** `allowed_tools` is OpenAI's alone; the tools that are not allowed are left out. */
function offeredTools(state: EncodeState): readonly Tool[] {
  const { tools = [], toolChoice } = state.request;
  if (toolChoice?.type !== "allowed") return state.sameDialect ? withoutLater(tools, state) : tools;
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

/** What the conversation defines itself stands in it already. */
function withoutLater(tools: readonly Tool[], { request }: EncodeState): readonly Tool[] {
  const later = laterToolNames(request);
  return later.size === 0
    ? tools
    : tools.filter((tool) => tool.type === "hosted" || !later.has(tool.name));
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place)];
    case "custom":
      return [wrapCustom(tool, place)];
    case "hosted":
      if (tool.dialect === "anthropic-messages") return [tool.value];
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

const encodeFunction = (tool: FunctionTool, place: EncodePlace): JsonObject =>
  withoutUndefined<JsonObject>({
    name: place.state.namer.wireName({ ...tool, kind: "function" }),
    description: tool.description,
    ...encodeParameters(tool, place),
    defer_loading: tool.deferred,
    input_examples: tool.inputExamples,
    ...cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });

function encodeParameters({ parameters, strict }: FunctionTool, place: EncodePlace): JsonObject {
  const { sameDialect, options } = place.state;
  const schema = typedObjectSchema(parameters);
  if (sameDialect || strict !== true) return { input_schema: schema, strict };
  if (claudeAbilities(options.upstreamModel).takesSchemas)
    return { input_schema: closedSchema(schema), strict };
  place.at(".strict").lose("this model follows schemas without being held to them");
  return { input_schema: schema };
}

/** A custom tool as a function of one text; a grammar becomes advice. */
function wrapCustom(tool: CustomTool, place: EncodePlace): JsonObject {
  return withoutUndefined<JsonObject>({
    name: place.state.namer.wireName({ ...tool, kind: "custom" }),
    description: wrappedDescription(tool, () =>
      place.at(".format").lose("the grammar is described, not enforced"),
    ),
    input_schema: wrappedParameters,
    defer_loading: tool.deferred,
    ...cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });
}

/**
 * The choice with its parallel switch, which needs a choice to stand on: `auto`, never a forced
 * one.
 */
function encodeToolChoice(state: EncodeState): JsonObject | undefined {
  const { toolChoice, parallelToolCalls } = state.request;
  const oneAtATime =
    parallelToolCalls === false
      ? { disable_parallel_tool_use: true }
      : parallelToolCalls === true && state.sameDialect && toolChoice !== undefined
        ? { disable_parallel_tool_use: false }
        : undefined;
  if (toolChoice === undefined) return oneAtATime && { type: "auto", ...oneAtATime };
  const choice = choiceFields(toolChoice, state);
  return choice === undefined || choice.type === "none" ? choice : { ...choice, ...oneAtATime };
}

function choiceFields(choice: ToolChoice, state: EncodeState): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
      return { type: choice.type };
    case "required":
      return { type: "any" };
    case "allowed":
      return { type: choice.mode === "required" ? "any" : "auto" };
    case "tool":
      return { type: "tool", name: state.namer.wireName(choice) };
    case "hosted":
      if (choice.dialect === "anthropic-messages") return choice.value;
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}
