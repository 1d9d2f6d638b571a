import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { ReasoningRequest } from "../../canonical/reasoning.ts";
import type {
  CanonicalRequest,
  FunctionTool,
  OutputFormat,
  Sampling,
  Tool,
  ToolChoice,
} from "../../canonical/request.ts";
import { decodeGateway } from "../shared/gateway-facts.ts";
import {
  asArray,
  asObject,
  joined,
  RequestFields,
  withoutUndefined,
} from "../shared/wire-fields.ts";
import { decodeContents } from "./contents/decode-contents.ts";
import { checkGenerateRequest } from "./request-schema.ts";
import { jsonSchema } from "./schemas.ts";

const knownFields: ReadonlySet<string> = new Set([
  "model",
  "stream",
  "contents",
  "systemInstruction",
  "tools",
  "toolConfig",
  "generationConfig",
  "labels",
  "serviceTier",
  "service_tier",
  "store",
  "models",
  "provider",
  "session_id",
  "trace",
  "require_params",
  "min_context",
]);

const knownConfigFields: ReadonlySet<string> = new Set([
  "temperature",
  "topP",
  "topK",
  "candidateCount",
  "maxOutputTokens",
  "stopSequences",
  "presencePenalty",
  "frequencyPenalty",
  "seed",
  "responseMimeType",
  "responseSchema",
  "responseJsonSchema",
  "_responseJsonSchema",
  "responseModalities",
  "responseLogprobs",
  "logprobs",
  "thinkingConfig",
]);

/**
 * Decodes a generateContent request; see `ClientDialect.decodeRequest`. `model` and `stream` were
 * added to the body from the path, and names are in camelCase.
 */
export function decodeRequest(value: unknown): CanonicalRequest {
  const body = new RequestFields(value, "");
  checkGenerateRequest(body.object);
  const config = body.nested("generationConfig") ?? new RequestFields({}, "generationConfig");
  const stop = config.strings("stopSequences");
  return joined<CanonicalRequest>(
    {
      dialect: "google-generate",
      model: body.requiredString("model"),
      messages: decodeContents(body),
      stream: body.boolean("stream") ?? false,
    },
    decodeToolFields(body),
    {
      sampling: filled(decodeSampling(config)),
      choiceCount: config.number("candidateCount"),
      stop: stop?.length ? stop : undefined,
      maxOutputTokens: config.number("maxOutputTokens"),
      reasoning: filled(decodeReasoning(config.nested("thinkingConfig"))),
      output: decodeFormat(config),
      logProbabilities: decodeLogProbabilities(config),
      modalities: config.strings("responseModalities")?.map((name) => name.toLowerCase()),
      metadata: body.objectField("labels"),
      serviceTier: body.string("serviceTier")?.toLowerCase(),
      store: body.boolean("store"),
      gateway: filled(decodeGateway(body)),
      extensions: decodeExtensions(body, config),
    },
  );
}

/** Returns the object, or undefined when it is empty. */
const filled = <T extends object>(fields: T): T | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields;

const decodeSampling = (config: RequestFields): Sampling =>
  withoutUndefined<Sampling>({
    temperature: config.number("temperature"),
    topP: config.number("topP"),
    topK: config.number("topK"),
    presencePenalty: config.number("presencePenalty"),
    frequencyPenalty: config.number("frequencyPenalty"),
    seed: config.number("seed"),
  });

/**
 * Decodes reasoning: a budget of 0 turns it off and -1 leaves its length to the model. Thoughts are
 * shown only where the client asks for them.
 */
function decodeReasoning(thinking: RequestFields | undefined): ReasoningRequest {
  if (thinking === undefined) return {};
  const budget = thinking.number("thinkingBudget");
  const level = thinking.string("thinkingLevel")?.toLowerCase();
  const effort = level === undefined || level.endsWith("unspecified") ? undefined : level;
  const shows = thinking.boolean("includeThoughts") === true;
  const isOpen = budget === -1 || (shows && budget === undefined && effort === undefined);
  return withoutUndefined<ReasoningRequest>({
    effort,
    budgetTokens: budget !== undefined && budget > 0 ? budget : undefined,
    enabled: budget === 0 ? false : isOpen ? true : undefined,
    display: shows ? "summarized" : undefined,
    exclude: shows ? false : undefined,
  });
}

/** Returns the schema of an object whose `value` is one of some texts. */
const schemaOfPick = (texts: readonly JsonValue[]): JsonObject => ({
  type: "object",
  properties: { value: { type: "string", enum: [...texts] } },
  required: ["value"],
  additionalProperties: false,
});

function decodeFormat(config: RequestFields): OutputFormat | undefined {
  const { responseSchema, responseJsonSchema, _responseJsonSchema: older } = config.object;
  const schema =
    asObject(responseJsonSchema) ?? asObject(older) ?? asObject(responseSchema) ?? undefined;
  const type = config.string("responseMimeType");
  const texts = type === "text/x.enum" ? asArray(schema?.enum) : undefined;
  // Other vendors take a schema of an object alone.
  if (texts !== undefined)
    return { type: "json-schema", schema: schemaOfPick(texts), picksText: true };
  if (schema !== undefined && type !== "text/plain")
    return { type: "json-schema", schema: jsonSchema(schema) };
  return type === "application/json" ? { type: "json" } : undefined;
}

function decodeLogProbabilities(config: RequestFields): CanonicalRequest["logProbabilities"] {
  if (config.boolean("responseLogprobs") !== true) return undefined;
  const top = config.number("logprobs");
  return top === undefined ? {} : { top };
}

/**
 * Returns unknown fields, at the top and of the configuration, by the paths under which losses name
 * them: Google's own models get the client's bytes.
 */
function decodeExtensions(
  body: RequestFields,
  config: RequestFields,
): CanonicalRequest["extensions"] {
  const configured = config.unknown("google-generate", knownConfigFields)?.fields ?? {};
  const { functionCallingConfig: _, ...ofTools } = asObject(body.object.toolConfig) ?? {};
  const below = (path: string, fields: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [`${path}.${name}`, value]));
  const fields = withoutUndefined<JsonObject>({
    ...body.unknown("google-generate", knownFields)?.fields,
    ...below("generationConfig", configured),
    ...below("toolConfig", ofTools),
  });
  return Object.keys(fields).length === 0 ? undefined : { dialect: "google-generate", fields };
}

type ToolFields = Pick<CanonicalRequest, "tools" | "toolChoice">;

function decodeToolFields(body: RequestFields): Partial<ToolFields> {
  const tools = (body.nestedList("tools") ?? []).flatMap(decodeTools);
  const config = body.nested("toolConfig")?.nested("functionCallingConfig");
  return withoutUndefined<Partial<ToolFields>>({
    tools: tools.length === 0 ? undefined : tools,
    toolChoice: config && decodeToolChoice(config),
  });
}

/** Decodes an entry of `tools`: the functions in it, and each tool that Google runs. */
function decodeTools(entry: RequestFields): Tool[] {
  const { functionDeclarations: _, ...hosted } = entry.object;
  return [
    ...(entry.nestedList("functionDeclarations") ?? []).map(decodeFunction),
    ...Object.entries(hosted).flatMap(([name, value]): Tool[] =>
      value === undefined || value === null
        ? []
        : [{ type: "hosted", dialect: "google-generate", value: { [name]: value } }],
    ),
  ];
}

const knownFunctionFields: ReadonlySet<string> = new Set([
  "name",
  "description",
  "parameters",
  "parametersJsonSchema",
  // What a function returns is sent to Google's models alone, and changes no call.
  "response",
  "responseJsonSchema",
]);

function decodeFunction(declared: RequestFields): FunctionTool {
  const { parametersJsonSchema, parameters } = declared.object;
  const schema = asObject(parametersJsonSchema) ?? asObject(parameters);
  return withoutUndefined<FunctionTool>({
    type: "function",
    name: declared.requiredString("name"),
    description: declared.string("description"),
    parameters: schema && jsonSchema(schema),
    extensions: declared.unknown("google-generate", knownFunctionFields),
  });
}

/** Decodes the choice of functions; names count in the modes ANY and VALIDATED alone. */
function decodeToolChoice(config: RequestFields): ToolChoice | undefined {
  const mode = config.string("mode")?.toUpperCase();
  const names = (asArray(config.object.allowedFunctionNames) ?? []).map(String);
  const [only, ...others] = names;
  const tools = names.map((name) => ({ type: "function", name }) as const);
  if (mode === "NONE") return { type: "none" };
  if (mode === "ANY") {
    if (only === undefined) return { type: "required" };
    return others.length === 0
      ? { type: "tool", kind: "function", name: only }
      : { type: "allowed", mode: "required", tools };
  }
  if (mode === "VALIDATED" && only !== undefined) return { type: "allowed", mode: "auto", tools };
  return mode === "AUTO" || mode === "VALIDATED" ? { type: "auto" } : undefined;
}
