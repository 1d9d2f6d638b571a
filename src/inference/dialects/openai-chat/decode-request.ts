import type { ReasoningRequest } from "../../canonical/reasoning.ts";
import type {
  CanonicalRequest,
  OutputFormat,
  Sampling,
  WebSearchOptions,
  AllowedTool,
  CustomTool,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import {
  decodeCache,
  decodeSchemaOutput,
  decodeSharedFields,
  decodeSharedSampling,
  decodeToolChoice,
  filled,
} from "../shared/openai-fields.ts";
import {
  asArray,
  badRequest,
  RequestFields,
  joined,
  withoutUndefined,
} from "../shared/wire-fields.ts";
import { decodeMessages } from "./messages/decode-messages.ts";
import { capOf } from "../shared/output-cap.ts";
import { chatRequestFields, checkChatRequest, hidesReasoning } from "./request-schema.ts";

/** Decodes a chat completion request; see `ClientDialect.decodeRequest`. */
export function decodeRequest(value: unknown): CanonicalRequest {
  const body = new RequestFields(value, "");
  checkChatRequest(body.object);
  return joined<CanonicalRequest>(
    {
      dialect: "openai-chat",
      model: body.requiredString("model"),
      messages: decodeMessages(body),
      stream: body.boolean("stream") ?? false,
      streamOptions: decodeStreamOptions(body.nested("stream_options")),
    },
    decodeToolFields(body),
    {
      sampling: filled(decodeSampling(body)),
      choiceCount: body.number("n"),
      stop: decodeStop(body),
      maxOutputTokens: capOf((name) => body.number(name)),
      reasoning: filled(decodeReasoningRequest(body)),
      output: decodeOutput(body.nested("response_format")),
      verbosity: body.string("verbosity"),
      logProbabilities: decodeLogProbabilities(body),
      audio: body.objectField("audio"),
      prediction: body.objectField("prediction"),
      webSearch: decodeWebSearch(body.nested("web_search_options")),
    },
    decodeSharedFields(body),
    { extensions: decodeExtensions(body) },
  );
}

const decodeStreamOptions = (
  options: RequestFields | undefined,
): CanonicalRequest["streamOptions"] =>
  options &&
  withoutUndefined<NonNullable<CanonicalRequest["streamOptions"]>>({
    includeUsage: options.boolean("include_usage"),
    includeObfuscation: options.boolean("include_obfuscation"),
  });

function decodeSampling(body: RequestFields): Sampling {
  const sampling = decodeSharedSampling(body);
  const logitBias = body.objectField("logit_bias");
  return logitBias === undefined
    ? sampling
    : { ...sampling, logitBias: logitBias as Readonly<Record<string, number>> };
}

function decodeStop(body: RequestFields): readonly string[] | undefined {
  const { stop } = body.object;
  if (typeof stop === "string") return [stop];
  const list = asArray(stop) as readonly string[] | undefined;
  return list?.length ? list : undefined;
}

/**
 * Decodes the flat `reasoning_effort`, or OpenRouter's `reasoning` object; the flat one takes
 * precedence.
 */
function decodeReasoningRequest(body: RequestFields): ReasoningRequest {
  const nested = body.nested("reasoning");
  const flat = body.string("reasoning_effort");
  const enabled = nested?.boolean("enabled");
  return withoutUndefined<ReasoningRequest>({
    effort: flat ?? nested?.string("effort"),
    budgetTokens: nested?.number("max_tokens"),
    enabled: flat === undefined ? enabled : undefined,
    summary: nested?.string("summary"),
    exclude: nested?.boolean("exclude") ?? (hidesReasoning(body.object) || undefined),
  });
}

function decodeOutput(format: RequestFields | undefined): OutputFormat | undefined {
  switch (format?.requiredString("type")) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return decodeSchemaOutput(format?.nested("json_schema"));
    default:
      return undefined;
  }
}

function decodeLogProbabilities(body: RequestFields): CanonicalRequest["logProbabilities"] {
  if (body.boolean("logprobs") !== true) return undefined;
  const top = body.number("top_logprobs");
  return { ...(top !== undefined && { top }) };
}

const knownSearchFields = new Set(["search_context_size", "user_location"]);

function decodeWebSearch(options: RequestFields | undefined): WebSearchOptions | undefined {
  return (
    options &&
    withoutUndefined<WebSearchOptions>({
      contextSize: options.string("search_context_size"),
      userLocation: options.nested("user_location")?.objectField("approximate"),
      extensions: options.unknown("openai-chat", knownSearchFields),
    })
  );
}

/** Returns unknown fields, and a response format that only the client's own dialect may know. */
function decodeExtensions(body: RequestFields): CanonicalRequest["extensions"] {
  const unknown = body.unknown("openai-chat", chatRequestFields);
  const format = body.objectField("response_format");
  if (
    format === undefined ||
    decodeOutput(new RequestFields(format, "response_format")) !== undefined
  )
    return unknown;
  return { dialect: "openai-chat", fields: { ...unknown?.fields, response_format: format } };
}

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

/**
 * Decodes tools and the choice among them, from the current fields or from the older `functions`.
 */
function decodeToolFields(body: RequestFields): Partial<ToolFields> {
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
    toolChoice: decodeToolChoice(body, decodeChoiceObject),
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

/** Decodes `function_call`, the older form of `tool_choice`. */
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
