import type { JsonObject } from "../../canonical/json.ts";
import type { CustomTool, FunctionTool, Tool, ToolChoice } from "../../canonical/tool.ts";
import { objectSchema } from "../object-schema.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { wrappedDescription, wrappedParameters } from "../wrapped-tool.ts";
import type { GeminiPlace, GeminiState } from "./encode-state.ts";

/** Everything about tools; without tools left, nothing about choosing among them either. */
export function encodeToolFields(state: GeminiState): JsonObject {
  const { tools = [], toolChoice, parallelToolCalls, webSearch } = state.request;
  const functionDeclarations = tools.flatMap((tool, index) =>
    encodeTool(tool, state.at(`tools[${index}]`)),
  );
  const hosted = tools.flatMap((tool) =>
    tool.type === "hosted" && tool.dialect === "google-generate" ? [tool.value] : [],
  );
  const entries = [
    ...(functionDeclarations.length > 0 ? [{ functionDeclarations }] : []),
    ...hosted,
    ...(webSearch === undefined ? [] : encodeWebSearch(state, functionDeclarations.length > 0)),
  ];
  if (parallelToolCalls === false && functionDeclarations.length > 0) {
    state.lose("parallel_tool_calls", "Gemini may call several tools at once");
  }
  const config =
    functionDeclarations.length > 0 && toolChoice ? encodeToolChoice(toolChoice, state) : undefined;
  return withoutUndefined<JsonObject>({
    tools: entries.length > 0 ? entries : undefined,
    toolConfig: config && { functionCallingConfig: config },
  });
}

/** Gemini searches by itself, but not beside the caller's functions. */
function encodeWebSearch(state: GeminiState, hasFunctions: boolean): JsonObject[] {
  const { contextSize, userLocation } = state.request.webSearch ?? {};
  if (hasFunctions) {
    state.lose("web_search_options", "Gemini does not search beside functions");
    return [];
  }
  state.loseIfSet("web_search_options.search_context_size", contextSize);
  state.loseIfSet("web_search_options.user_location", userLocation);
  return [{ googleSearch: {} }];
}

function encodeTool(tool: Tool, place: GeminiPlace): JsonObject[] {
  switch (tool.type) {
    case "function":
      return [encodeFunction(tool, place)];
    case "custom":
      return [wrapCustom(tool, place)];
    case "hosted":
      if (tool.dialect !== "google-generate")
        place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return [];
  }
}

/** The schema goes out as JSON Schema: the member `parameters` knows a subset of OpenAPI's alone. */
function encodeFunction(tool: FunctionTool, place: GeminiPlace): JsonObject {
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("Gemini has no such field");
  if (tool.strict === true)
    place.at(".strict").lose("Gemini does not promise to keep to the schema");
  place.loseDecoration({ cache: tool.cache, extensions: tool.extensions });
  return withoutUndefined<JsonObject>({
    name: place.state.wireName({ ...tool, kind: "function" }),
    description: tool.description,
    parametersJsonSchema: tool.parameters && objectSchema(tool.parameters),
  });
}

/** A custom tool as a function of one text; the grammar becomes advice. */
function wrapCustom(tool: CustomTool, place: GeminiPlace): JsonObject {
  place.loseDecoration({ cache: tool.cache, extensions: tool.extensions });
  const description = wrappedDescription(tool, () =>
    place.at(".format").lose("the grammar is described, not enforced"),
  );
  return {
    name: place.state.wireName({ ...tool, kind: "custom" }),
    ...(description !== undefined && { description }),
    parametersJsonSchema: wrappedParameters,
  };
}

/** Names may be listed in the modes ANY and VALIDATED only; the latter leaves the model free to answer. */
function encodeToolChoice(choice: ToolChoice, state: GeminiState): JsonObject | undefined {
  switch (choice.type) {
    case "auto":
      return { mode: "AUTO" };
    case "none":
      return { mode: "NONE" };
    case "required":
      return { mode: "ANY" };
    case "tool":
      return { mode: "ANY", allowedFunctionNames: [state.wireName(choice)] };
    case "allowed": {
      const names = choice.tools.flatMap((tool) =>
        tool.type === "hosted" ? [] : [state.wireName({ kind: tool.type, name: tool.name })],
      );
      const mode = choice.mode === "required" ? "ANY" : "VALIDATED";
      return names.length === 0 ? { mode: "NONE" } : { mode, allowedFunctionNames: names };
    }
    case "hosted":
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}
