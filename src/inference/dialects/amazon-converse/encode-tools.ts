import type { JsonObject } from "../../canonical/json.ts";
import type { CustomTool, FunctionTool, Tool, ToolChoice } from "../../canonical/tool.ts";
import { closedSchema, typedObjectSchema } from "../json-schema.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";

import { withoutUndefined } from "../wire-fields.ts";
import { wrappedDescription, wrappedParameters } from "../tools.ts";
import { cachePoint } from "./encode-messages.ts";
import { converseTraits } from "./converse-traits.ts";

/**
 * `toolConfig`; undefined without tools. A conversation with calls in it needs the tools that were
 * called: Converse refuses `toolUse` blocks without a `toolConfig`.
 */
export function encodeToolConfig(state: EncodeState): JsonObject | undefined {
  const { toolChoice, parallelToolCalls } = state.request;
  const offered = offeredTools(state).flatMap(([tool, index]) =>
    encodeTool(tool, state.at(`tools[${index}]`)),
  );
  const forbidden = toolChoice?.type === "none";
  const called = calledTools(state);
  if (forbidden && called.length === 0) return undefined;
  if (forbidden && offered.length > 0)
    state.lose("tool_choice", "tools of earlier calls have to be offered again");
  const tools = offered.length > 0 ? offered : called;
  if (tools.length === 0) return undefined;
  if (parallelToolCalls === false && offered.length > 0)
    state.lose("parallel_tool_calls", "Converse cannot ask for one call at a time");
  return withoutUndefined<JsonObject>({
    tools,
    toolChoice: offered.length > 0 && toolChoice ? encodeToolChoice(toolChoice, state) : undefined,
  });
}

/** The tools with their places; those that `allowed_tools` leaves out are not offered. */
function offeredTools(state: EncodeState): (readonly [tool: Tool, index: number])[] {
  const { tools = [], toolChoice } = state.request;
  const placed = tools.map((tool, index) => [tool, index] as const);
  if (toolChoice?.type !== "allowed") return placed;
  state.lose(
    "tool_choice.allowed_tools",
    "sent as a shorter list of tools, which a prompt cache notices",
  );
  return placed.filter(
    ([tool]) =>
      tool.type !== "hosted" &&
      toolChoice.tools.some((allowed) => allowed.type === tool.type && allowed.name === tool.name),
  );
}

/** The least definitions of the tools that earlier turns called. */
function calledTools(state: EncodeState): JsonObject[] {
  const calls = state.request.messages.flatMap((message) =>
    message.role === "assistant" ? message.parts.filter((part) => part.type === "tool-call") : [],
  );
  const names = new Set(calls.map((call) => state.namer.wireName(call)));
  return [...names].map((name) => ({
    toolSpec: { name, inputSchema: { json: typedObjectSchema(undefined) } },
  }));
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place), ...cachePoint(tool.cache)];
    case "custom":
      return [wrapCustom(tool, place), ...cachePoint(tool.cache)];
    case "hosted":
      if (tool.dialect === "amazon-converse") return [tool.value];
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

/** Few models can be held to a schema, and the others answer `strict` with 400. */
function encodeFunction(tool: FunctionTool, place: EncodePlace): JsonObject {
  const { state } = place;
  const schema = typedObjectSchema(tool.parameters);
  const strict = tool.strict === true && converseTraits(state.options.upstreamModel).takesSchemas;
  if (tool.strict === true && !strict)
    place.at(".strict").lose("this model follows schemas without being held to them");
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("Converse has no such field");
  place.extensionFields(tool.extensions);
  return {
    toolSpec: withoutUndefined<JsonObject>({
      name: state.namer.wireName({ ...tool, kind: "function" }),
      description: tool.description || undefined,
      inputSchema: { json: strict ? closedSchema(schema) : schema },
      strict: strict || undefined,
    }),
  };
}

/** A custom tool as a function of one text; a grammar becomes advice. */
function wrapCustom(tool: CustomTool, place: EncodePlace): JsonObject {
  place.extensionFields(tool.extensions);
  return {
    toolSpec: withoutUndefined<JsonObject>({
      name: place.state.namer.wireName({ ...tool, kind: "custom" }),
      description: wrappedDescription(tool, () =>
        place.at(".format").lose("the grammar is described, not enforced"),
      ),
      inputSchema: { json: wrappedParameters },
    }),
  };
}

/** `auto` is every model's default, and some models refuse any choice at all. */
function encodeToolChoice(choice: ToolChoice, state: EncodeState): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
      return undefined;
    case "required":
      return { any: {} };
    case "allowed":
      return choice.mode === "required" ? { any: {} } : undefined;
    case "tool":
      return { tool: { name: state.namer.wireName(choice) } };
    case "hosted":
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}
