import type { JsonObject } from "../../canonical/json.ts";
import type { WebSearchOptions } from "../../canonical/request.ts";
import type {
  AllowedTool,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
  ToolKind,
} from "../../canonical/tool.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";
import { objectSchema } from "../object-schema.ts";
import { withoutUndefined } from "../without-undefined.ts";
import { wrappedDescription, wrappedParameters } from "../wrapped-tool.ts";

/** Everything about tools; without tools left, nothing about choosing among them either. */
export function encodeToolFields(state: EncodeState): JsonObject {
  const { tools = [], toolChoice, parallelToolCalls, webSearch } = state.request;
  const wire = [
    ...encodeTools(tools, state),
    ...(webSearch === undefined ? [] : [encodeWebSearch(webSearch, state)]),
  ];
  if (wire.length === 0) return {};
  return withoutUndefined<JsonObject>({
    tools: wire,
    tool_choice: toolChoice && encodeToolChoice(toolChoice, state),
    parallel_tool_calls: toolChoice?.type === "none" ? undefined : parallelToolCalls,
  });
}

/** Tools of one namespace that follow each other are one entry again. */
function encodeTools(tools: readonly Tool[], state: EncodeState): JsonObject[] {
  const wire: JsonObject[] = [];
  let open: { name: string; tools: JsonObject[] } | undefined;
  tools.forEach((tool, index) => {
    const place = state.at(`tools[${index}]`);
    const encoded = encodeTool(tool, place);
    if (encoded === undefined) return;
    const namespace = tool.type === "hosted" ? undefined : tool.namespace;
    if (namespace === undefined) {
      open = undefined;
      wire.push(encoded);
      return;
    }
    const { namespace_description: description, ...definition } = encoded;
    if (open?.name !== namespace) {
      open = { name: namespace, tools: [] };
      wire.push(
        withoutUndefined<JsonObject>({
          type: "namespace",
          name: namespace,
          description,
          tools: open.tools,
        }),
      );
    }
    open.tools.push(definition);
  });
  return wire;
}

function encodeTool(tool: Tool, place: EncodePlace): JsonObject | undefined {
  switch (tool.type) {
    case "function":
      return encodeFunction(tool, place);
    case "custom":
      return place.state.namer.wraps({ kind: "custom" })
        ? wrapCustom(tool, place.state)
        : encodeCustom(tool, place);
    case "hosted":
      if (tool.dialect === "openai-responses") return tool.value;
      place.lose(`a ${String(tool.value.type)} that ${tool.dialect} runs itself`);
      return undefined;
  }
}

/** A tool waits for a search only where there is one; otherwise it is offered at once. */
const isDeferred = (tool: FunctionTool | CustomTool, state: EncodeState): true | undefined =>
  tool.deferred === true &&
  (state.request.tools ?? []).some(
    (other) =>
      other.type === "hosted" &&
      other.dialect === "openai-responses" &&
      other.value.type === "tool_search",
  )
    ? true
    : undefined;

function encodeFunction(tool: FunctionTool, place: EncodePlace): JsonObject {
  const { state } = place;
  if (tool.inputExamples !== undefined)
    place.at(".input_examples").lose("Responses tools have no such field");
  return withoutUndefined<JsonObject>({
    type: "function",
    name: state.namer.wireName({ kind: "function", name: tool.name }),
    description: tool.description,
    parameters: state.sameDialect ? (tool.parameters ?? null) : objectSchema(tool.parameters),
    // Responses takes an absent `strict` for true, other dialects for false.
    strict: tool.strict ?? (state.sameDialect ? undefined : false),
    defer_loading: isDeferred(tool, state),
    ...state.cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });
}

const encodeCustom = (tool: CustomTool, place: EncodePlace): JsonObject =>
  withoutUndefined<JsonObject>({
    type: "custom",
    name: place.state.namer.wireName({ kind: "custom", name: tool.name }),
    description: tool.description,
    format: tool.format && { ...tool.format },
    defer_loading: isDeferred(tool, place.state),
    ...place.state.cacheFields(tool.cache),
    ...place.extensionFields(tool.extensions),
  });

/** A custom tool for upstreams that know functions alone; the grammar becomes advice. */
function wrapCustom(tool: CustomTool, state: EncodeState): JsonObject {
  const description = wrappedDescription(tool, () =>
    state.lose(`tools.${tool.name}.format`, "the grammar is described, not enforced"),
  );
  return {
    type: "function",
    name: state.namer.wireName({ kind: "custom", name: tool.name }),
    ...(description !== undefined && { description }),
    parameters: wrappedParameters,
    strict: false,
  };
}

/** Chat asks for a search by a field, Responses by a tool. */
const encodeWebSearch = (
  { contextSize, userLocation, extensions }: WebSearchOptions,
  state: EncodeState,
): JsonObject =>
  withoutUndefined<JsonObject>({
    type: "web_search",
    search_context_size: contextSize,
    user_location: userLocation && { type: "approximate", ...userLocation },
    ...state.at("web_search_options").extensionFields(extensions),
  });

function encodeToolChoice(choice: ToolChoice, state: EncodeState): JsonObject | string | undefined {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return namedTool(choice, state);
    case "allowed":
      return {
        type: "allowed_tools",
        mode: choice.mode,
        tools: choice.tools.map((tool) => encodeAllowed(tool, state)),
      };
    case "hosted":
      if (choice.dialect === "openai-responses") return choice.value;
      state.lose("tool_choice", `a choice of ${choice.dialect}'s own`);
      return undefined;
  }
}

function namedTool(
  { kind, name }: { kind: ToolKind; name: string },
  state: EncodeState,
): JsonObject {
  return {
    type: state.namer.wraps({ kind }) ? "function" : kind,
    name: state.namer.wireName({ kind, name }),
  };
}

const encodeAllowed = (tool: AllowedTool, state: EncodeState): JsonObject =>
  tool.type === "hosted" ? tool.value : namedTool({ kind: tool.type, name: tool.name }, state);
