import type { JsonObject } from "../../canonical/json.ts";
import type { ReasoningRequest } from "../../canonical/reasoning.ts";
import type {
  CanonicalRequest,
  OutputFormat,
  Sampling,
  FunctionTool,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import { decodeGateway } from "../shared/gateway-facts.ts";
import { asObject, RequestFields, joined, withoutUndefined } from "../shared/wire-fields.ts";
import { decodeCache, extensionsOf, laterDefinitions } from "./answer-fields.ts";
import { decodeMessages } from "./messages/decode-messages.ts";
import { checkMessagesRequest } from "./request-schema.ts";
import { refuseThread } from "./threads.ts";

const knownFields: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "stream",
  "tools",
  "tool_choice",
  "temperature",
  "top_p",
  "top_k",
  "stop_sequences",
  "thinking",
  "output_config",
  "metadata",
  "service_tier",
  "models",
  "provider",
  "session_id",
  "trace",
  "require_params",
  "min_context",
]);
const knownThinkingFields: ReadonlySet<string> = new Set(["type", "budget_tokens", "display"]);
const knownMetadataFields: ReadonlySet<string> = new Set(["user_id"]);

/** Decodes a Messages request; see `ClientDialect.decodeRequest`. */
export function decodeRequest(value: unknown): CanonicalRequest {
  const body = new RequestFields(value, "");
  checkMessagesRequest(body.object);
  refuseThread(body.object);
  const config = body.nested("output_config");
  const stop = body.strings("stop_sequences");
  return joined<CanonicalRequest>(
    {
      dialect: "anthropic-messages",
      model: body.requiredString("model"),
      messages: decodeMessages(body),
      stream: body.boolean("stream") ?? false,
    },
    decodeToolFields(body),
    {
      sampling: filled(decodeSampling(body)),
      stop: stop?.length ? stop : undefined,
      maxOutputTokens: body.number("max_tokens"),
      reasoning: filled(decodeReasoningRequest(body.nested("thinking"), config)),
      output: decodeFormat(config?.nested("format")),
      endUserId: body.nested("metadata")?.string("user_id"),
      serviceTier: body.string("service_tier"),
      gateway: filled(decodeGateway(body)),
      extensions: decodeExtensions(body),
    },
  );
}

/** Returns the object, or undefined when it is empty. */
const filled = <T extends object>(fields: T): T | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields;

const decodeSampling = (body: RequestFields): Sampling =>
  withoutUndefined<Sampling>({
    temperature: body.number("temperature"),
    topP: body.number("top_p"),
    topK: body.number("top_k"),
  });

/**
 * Decodes reasoning as it was requested. The contract's rules for other upstreams apply when one is
 * chosen.
 */
function decodeReasoningRequest(
  thinking: RequestFields | undefined,
  config: RequestFields | undefined,
): ReasoningRequest {
  const type = thinking?.requiredString("type");
  const onOrOff = type === "enabled" || type === "disabled";
  return withoutUndefined<ReasoningRequest>({
    effort: config?.string("effort"),
    budgetTokens: thinking?.number("budget_tokens"),
    enabled: onOrOff ? type === "enabled" : undefined,
    mode: onOrOff ? undefined : type,
    display: thinking?.string("display"),
    extensions: thinking && extensionsOf(thinking, knownThinkingFields),
  });
}

/** Decodes the output format. Anthropic enforces the schema, which other dialects call strict. */
function decodeFormat(format: RequestFields | undefined): OutputFormat | undefined {
  if (format?.requiredString("type") !== "json_schema") return undefined;
  return withoutUndefined<OutputFormat>({
    type: "json-schema",
    schema: format?.objectField("schema"),
    strict: true,
  });
}

/** Returns unknown fields, at the top and in the two objects that are read in part. */
function decodeExtensions(body: RequestFields): CanonicalRequest["extensions"] {
  const fields = withoutUndefined<JsonObject>({
    ...extensionsOf(body, knownFields)?.fields,
    output_config: restOfConfig(body.nested("output_config")),
    metadata: restOf(body.nested("metadata"), knownMetadataFields),
  });
  return Object.keys(fields).length === 0 ? undefined : { dialect: "anthropic-messages", fields };
}

const restOf = (
  fields: RequestFields | undefined,
  known: ReadonlySet<string>,
): JsonObject | undefined => fields && extensionsOf(fields, known)?.fields;

/**
 * Returns what accompanies effort and schema, and a format that only the client's own dialect
 * knows.
 */
function restOfConfig(config: RequestFields | undefined): JsonObject | undefined {
  const readsFormat = config !== undefined && decodeFormat(config.nested("format")) !== undefined;
  return restOf(config, new Set(readsFormat ? ["effort", "format"] : ["effort"]));
}

const knownToolFields = new Set([
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

/** Decodes tools and the choice among them. */
function decodeToolFields(body: RequestFields): Partial<ToolFields> {
  const choice = body.nested("tool_choice");
  const oneAtATime = choice?.boolean("disable_parallel_tool_use");
  const later = laterDefinitions(body);
  const tools =
    later.length === 0 ? body.nestedList("tools") : [...(body.nestedList("tools") ?? []), ...later];
  const decoded = tools?.map(decodeTool);
  return withoutUndefined<Partial<ToolFields>>({
    tools: decoded,
    toolChoice: choice && decodeToolChoice(choice, decoded),
    parallelToolCalls: oneAtATime === undefined ? undefined : !oneAtATime,
  });
}

/**
 * Decodes a tool. One of the caller's has a schema and at most the type `custom`; the provider runs
 * all others.
 */
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
    extensions: extensionsOf(tool, knownToolFields),
  });

/** Decodes the choice. That of a tool which Anthropic runs goes where the tool goes. */
function decodeToolChoice(choice: RequestFields, tools: readonly Tool[] = []): ToolChoice {
  const type = choice.requiredString("type");
  const own: ToolChoice = { type: "hosted", dialect: "anthropic-messages", value: choice.object };
  switch (type) {
    case "auto":
    case "none":
      return { type };
    case "any":
      return { type: "required" };
    case "tool": {
      const name = choice.requiredString("name");
      const isHosted = tools.some((tool) => tool.type === "hosted" && tool.value.name === name);
      return isHosted ? own : { type: "tool", kind: "function", name };
    }
    default:
      return own;
  }
}
