import {
  all,
  at,
  callsOf,
  fieldsOf,
  functionsOf,
  hasForms,
  hasOtherCallId,
  hasOptional,
  hasStrayResult,
  isAbove,
  isLonger,
  isOfOlderDraft,
  isOpen,
  isOther,
  isSet,
  lacksItems,
  lacksResults,
  listOf,
  not,
  offersFunctions,
  saysJson,
  schemasIn,
  someBlock,
  someTurn,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import {
  ask,
  chatCall,
  chatFormat,
  chatHistory,
  chatResult,
  chatTool,
  eitherOf,
  olderSchema,
  schemaOf,
} from "../samples.ts";
import { openaiResponsesRules } from "./openai-responses.ts";
import {
  openaiError as envelope,
  isOff as offOf,
  reasoningGuide,
  reasoningModels,
  unsupported,
  withoutReasoning,
} from "./openai-models.ts";

/** Models that combine functions and reasoning on /responses only. */
const responsesForTools = /^gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])(?!.*chat)/;
/** Models that take the effort `max` on /responses only. */
const responsesForMax = /^gpt-(?:5\.[6-9]|[6-9])/;
const responsesOnly = /^(?:o\d|gpt-[\d.]+)-pro$|codex|deep-research/;

/** An id of a call as vLLM makes them. */
const vllmCallId = `chatcmpl-tool-${"0".repeat(32)}`;

const chatReference = "developers.openai.com/api/reference/resources/chat (2026-11)";

const reasoningRefusals = rulesOf({ vendor: "openai", endpoint: "chat", body: envelope }, [
  {
    id: "functions-beside-reasoning",
    models: responsesForTools,
    when: all(offersFunctions, ({ body }) => body["reasoning_effort"] !== "none"),
    says: ({ model }) =>
      `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. ` +
      "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    param: "reasoning_effort",
    source: "github.com/BerriAI/litellm/pull/34569 (2026-07-24)",
    violates: { model: "gpt-5.6-terra", body: ask({ tools: [chatTool()] }) },
  },
  {
    id: "responses-only",
    models: responsesOnly,
    when: () => true,
    status: 404,
    says: "This model is only supported in v1/responses and not in v1/chat/completions.",
    param: "model",
    source: "developers.openai.com/api/docs/models (2026-11)",
    violates: { model: "gpt-5.1-codex", body: ask() },
  },
  {
    id: "max-tokens",
    models: reasoningModels,
    when: isSet("max_tokens"),
    says: `${unsupported("max_tokens")} Use 'max_completion_tokens' instead.`,
    param: "max_tokens",
    code: "unsupported_parameter",
    source: "github.com/trailhq/Graft/issues/183 (2026-08-23)",
    violates: { model: "gpt-5", body: ask({ max_tokens: 900 }) },
  },
  {
    id: "temperature",
    models: reasoningModels,
    when: all(isOther("temperature", 1), not(offOf)),
    says:
      "Unsupported value: 'temperature' does not support this value with this model. " +
      "Only the default (1) value is supported.",
    param: "temperature",
    code: "unsupported_value",
    source: "github.com/johny-b/llmcomp/issues/69 (2026-04-20)",
    violates: { model: "gpt-5.4", body: ask({ temperature: 0 }) },
  },
  ...(
    [
      ["top_p", 0.5],
      ["presence_penalty", 0.5],
      ["frequency_penalty", 0.5],
      ["logit_bias", { "50256": -100 }],
      ["logprobs", true],
      ["top_logprobs", 3],
      ["stop", ["END"]],
    ] as const
  ).map(([field, value]) => ({
    id: field.replace("_", "-"),
    models: reasoningModels,
    when: all(
      isOther(field, ...(field === "top_p" ? [1] : [0, false])),
      field === "stop" ? () => true : not(offOf),
    ),
    says: unsupported(field),
    param: field,
    code: "unsupported_parameter",
    source:
      field === "stop"
        ? "developers.openai.com/api/reference/resources/chat, `stop` (2026-11)"
        : reasoningGuide,
    violates: {
      model: "gpt-5-mini",
      body: ask({ [field]: value, ...(field === "top_logprobs" && { logprobs: true }) }),
    },
  })),
  {
    id: "effort-without-reasoning",
    models: withoutReasoning,
    when: isSet("reasoning_effort"),
    says: "Unrecognized request argument supplied: reasoning_effort",
    source: reasoningGuide,
    violates: { model: "gpt-4.1", body: ask({ reasoning_effort: "low" }) },
  },
  ...(
    [
      ["effort-minimal", /^gpt-5\.[1-9]/, "minimal", "gpt-5.1"],
      ["effort-none", /^(?:o\d|gpt-5(?!\.)|gpt-6(?:\.\d+)?-astra)/, "none", "gpt-5"],
      ["effort-xhigh", /^(?:o\d|gpt-5(?:\.1)?(?![.\d])(?!.*codex-max))/, "xhigh", "o3"],
    ] as const
  ).map(([id, models, effort, model]) => ({
    id,
    models,
    when: ({ body }: VendorRequest) => body["reasoning_effort"] === effort,
    says: `Unsupported value: 'reasoning_effort' does not support '${effort}' with this model.`,
    param: "reasoning_effort",
    code: "unsupported_value",
    source:
      "github.com/sst/opencode, provider/transform.ts (2026-11), " +
      "github.com/UKGovernmentBEIS/inspect_ai/pull/5254 (2026-09-04)",
    violates: { model, body: ask({ reasoning_effort: effort }) },
  })),
  {
    id: "effort-max",
    models: responsesForMax,
    when: ({ body }) => body["reasoning_effort"] === "max",
    says: "Unsupported value: 'max' is not supported with this model. Supported values are: 'low', 'medium', 'high', and 'xhigh'.",
    param: "reasoning_effort",
    code: "unsupported_value",
    source:
      "github.com/mnfst/modelparams.dev/pull/236 (2026-08-17), " +
      "github.com/BerriAI/litellm-docs/pull/1173 (2026-09-03)",
    violates: { model: "gpt-6-astra", body: ask({ reasoning_effort: "max" }) },
  },
  {
    id: "functions-elsewhere",
    models: /^gpt-6(?:\.\d+)?-astra/,
    when: offersFunctions,
    says: ({ model }) =>
      `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. ` +
      "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
    param: "reasoning_effort",
    source:
      "github.com/bolna-ai/bolna/pull/1019 (2026-09-05), " +
      "github.com/genkit-ai/genkit-dart/pull/423 (2026-09-09)",
    violates: { model: "gpt-6-astra", body: ask({ tools: [chatTool()] }) },
  },
]);

const unknownFields = ["top_k", "min_p", "top_a", "repetition_penalty", "reasoning", "thinking"];
const nameRule = /^[a-zA-Z0-9_-]{1,64}$/;

const formRefusals = rulesOf({ vendor: "openai", endpoint: "chat", body: envelope }, [
  ...unknownFields.map((field) => ({
    id: `unknown-${field.replace("_", "-")}`,
    when: isSet(field),
    says: `Unrecognized request argument supplied: ${field}`,
    source: chatReference,
    violates: {
      model: "gpt-4.1",
      body: ask({
        [field]:
          field === "reasoning"
            ? { effort: "low" }
            : field === "thinking"
              ? { type: "disabled" }
              : 0.5,
      }),
    },
  })),
  ...(["user", "safety_identifier", "prompt_cache_key"] as const).map((field) => ({
    id: `long-${field.replaceAll("_", "-")}`,
    when: isLonger(field, 64),
    says: `Invalid '${field}': string too long. Expected a string with maximum length 64.`,
    param: field,
    code: "string_above_max_length",
    source:
      field === "prompt_cache_key"
        ? "github.com/orchidfiles/ungate/issues/26 (2026-07-15)"
        : "github.com/maximhq/bifrost/pull/1000 (2025-12-08)",
    violates: { model: "gpt-4.1", body: ask({ [field]: "x".repeat(65) }) },
  })),
  {
    id: "tool-name",
    when: (request) => functionsOf(request).some(({ name }) => !nameRule.test(String(name))),
    says: "Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
    param: "tools[0].function.name",
    code: "invalid_value",
    source: "github.com/PrefectHQ/fastmcp/issues/188 (2026-11)",
    violates: { model: "gpt-4.1", body: ask({ tools: [chatTool({ name: "look.up" })] }) },
  },
  {
    id: "call-id-length",
    when: hasOtherCallId(/^.{0,40}$/),
    says: "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
    param: "messages[1].tool_calls[0].id",
    code: "string_above_max_length",
    source:
      "github.com/agno-agi/agno/issues/5382 (2025-11-11), github.com/openclaw/openclaw/pull/875 (2026-01-13)",
    violates: {
      model: "gpt-4.1",
      body: chatHistory({
        call: chatCall({}, vllmCallId),
        result: chatResult(vllmCallId),
      }),
    },
  },
  {
    id: "calls-without-results",
    when: lacksResults,
    says:
      "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
      "'tool_call_id'.",
    param: "messages",
    source: "cai#157, litellm#16525 (2026-11-21)",
    violates: {
      model: "gpt-4.1",
      body: { messages: [{ role: "user", content: "Hi" }, chatCall()], tools: [chatTool()] },
    },
  },
  {
    id: "results-without-calls",
    when: hasStrayResult,
    says:
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with " +
      "'tool_calls'.",
    param: "messages.[1].role",
    source: "ogx PR#6367, sglang PR#29083 (2026-11-21)",
    violates: {
      model: "gpt-4.1",
      body: { messages: [{ role: "user", content: "Hi" }, chatResult()], tools: [chatTool()] },
    },
  },
  {
    id: "choice-without-tools",
    when: all(isSet("tool_choice"), ({ body }) => listOf(body["tools"]).length === 0),
    says: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    param: "tool_choice",
    source: "references of the three dialects (2026-11-21)",
    violates: { model: "gpt-4.1", body: ask({ tool_choice: "auto" }) },
  },
  {
    id: "parallel-without-tools",
    when: all(isSet("parallel_tool_calls"), ({ body }) => listOf(body["tools"]).length === 0),
    says: "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
    param: "parallel_tool_calls",
    source: "references of the three dialects (2026-11-21)",
    violates: { model: "gpt-4.1", body: ask({ parallel_tool_calls: false }) },
  },
  {
    id: "empty-tools",
    when: ({ body }) => Array.isArray(body["tools"]) && body["tools"].length === 0,
    says: "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    param: "tools",
    code: "empty_array",
    source: "recalled",
    violates: { model: "gpt-4.1", body: ask({ tools: [] }) },
  },
  {
    id: "stream-options-unstreamed",
    when: all(isSet("stream_options"), ({ body }) => body["stream"] !== true),
    says: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    param: "stream_options",
    source: chatReference,
    violates: { model: "gpt-4.1", body: ask({ stream_options: { include_usage: true } }) },
  },
  {
    id: "json-without-the-word",
    when: all(({ body }) => at(body, "response_format.type") === "json_object", not(saysJson)),
    says: "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    param: "messages",
    source: "developers.openai.com/api/docs/guides/structured-outputs (2026-11)",
    violates: { model: "gpt-4.1", body: ask({ response_format: { type: "json_object" } }) },
  },
  {
    id: "strict-open-schema",
    when: (request) => strictSchemas(request).some(isOpen),
    says: "Invalid schema: 'additionalProperties' is required to be supplied and to be false.",
    param: "response_format",
    source: "developers.openai.com/api/docs/guides/structured-outputs (2026-11)",
    violates: {
      model: "gpt-4.1",
      body: ask(chatFormat(schemaOf({ type: "string" }, { additionalProperties: true }))),
    },
  },
  {
    id: "strict-optional-property",
    when: (request) => strictSchemas(request).some(hasOptional),
    says: "Invalid schema: 'required' is required to be supplied and to be an array including every key in properties.",
    param: "response_format",
    source: "developers.openai.com/api/docs/guides/structured-outputs (2026-11)",
    violates: {
      model: "gpt-4.1",
      body: ask(chatFormat(schemaOf({ type: "string" }, { required: [] }))),
    },
  },
  {
    id: "array-without-items",
    when: (request) => functionsOf(request).some(({ parameters }) => lacksItems(parameters)),
    says: "Invalid schema for function 'look_up': array schema missing items.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
    source: "github.com/sst/opencode, provider/transform.ts (2026-11)",
    violates: {
      model: "gpt-4.1",
      body: ask({ tools: [chatTool({ parameters: schemaOf({ type: "array" }) })] }),
    },
  },
  {
    id: "older-schema",
    when: (request) => functionsOf(request).some(({ parameters }) => isOfOlderDraft(parameters)),
    says: "Invalid schema for function 'look_up': [{'type': 'number'}] is not of type 'object', 'boolean'.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
    source:
      "github.com/LionSR/TeXRA/pull/2323 (2026-01-20), github.com/camel-ai/camel/pull/393 (2024-03-29)",
    violates: { model: "gpt-4.1", body: ask({ tools: [chatTool({ parameters: olderSchema })] }) },
  },
  {
    id: "parameters-without-properties",
    when: (request) =>
      functionsOf(request).some(({ parameters }) => {
        const schema = fieldsOf(parameters);
        return (
          parameters !== undefined &&
          (schema["type"] !== "object" || schema["properties"] === undefined) &&
          schema["$ref"] === undefined
        );
      }),
    says: "Invalid schema for function 'look_up': object schema missing properties.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
    source: "codex-proxy PR#23, opencode#11889, bifrost#3511 (2026-11-21)",
    violates: {
      model: "gpt-4.1",
      body: ask({ tools: [chatTool({ parameters: { type: "object" } })] }),
    },
  },
  {
    id: "top-level-forms",
    when: (request) => functionsOf(request).some(({ parameters }) => hasForms(parameters)),
    says:
      "Invalid schema for function 'look_up': schema must have type 'object' and not have " +
      "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
    param: "tools[0].function.parameters",
    code: "invalid_function_parameters",
    source:
      "github.com/langchain-ai/langchainjs/issues/9804 (2026-01-14), " +
      "github.com/goruck/home-generative-agent/pull/545 (2026-08-12)",
    violates: {
      model: "gpt-4.1",
      body: ask({ tools: [chatTool({ parameters: eitherOf })] }),
    },
  },
  {
    id: "image-in-a-result",
    when: someBlock((block, turn) => turn["role"] === "tool" && block["type"] === "image_url"),
    says: "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user'.",
    param: "messages[2]",
    code: "invalid_value",
    source: "openai 7.55.0, resources (2026-11-21)",
    violates: {
      model: "gpt-4.1",
      body: chatHistory({
        result: {
          ...chatResult(),
          content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }],
        },
      }),
    },
  },
  {
    id: "too-many-stops",
    when: ({ body }) => Array.isArray(body["stop"]) && body["stop"].length > 4,
    says: "Invalid 'stop': array too long. Expected an array with maximum length 4.",
    param: "stop",
    code: "array_above_max_length",
    source: chatReference,
    violates: { model: "gpt-4.1", body: ask({ stop: ["a", "b", "c", "d", "e"] }) },
  },
  {
    id: "call-without-name",
    when: someTurn((turn) => callsOf(turn).some((call) => at(call, "function.name") === "")),
    says: "Invalid 'messages[1].tool_calls[0].function.name': empty string.",
    param: "messages[1].tool_calls[0].function.name",
    code: "empty_string",
    source: "recalled",
    violates: {
      model: "gpt-4.1",
      body: chatHistory({
        call: chatCall({
          tool_calls: [{ id: "call_1", type: "function", function: { name: "", arguments: "{}" } }],
        }),
      }),
    },
  },
]);

/** Returns the schemas to which a chat request binds the model. */
function strictSchemas(request: VendorRequest): Fields[] {
  const format = fieldsOf(at(request.body, "response_format.json_schema"));
  return [
    ...(format["strict"] === true ? schemasIn(format["schema"]) : []),
    ...functionsOf(request).flatMap(({ strict, parameters }) =>
      strict === true ? schemasIn(parameters) : [],
    ),
  ].filter((schema) => schema["type"] === "object");
}

/** What OpenAI refuses. */
export const openaiRules: readonly VendorRule[] = [
  ...reasoningRefusals,
  ...formRefusals,
  ...openaiResponsesRules,
  ...rulesOf({ vendor: "openai", endpoint: "chat", body: envelope }, [
    {
      id: "temperature-range",
      when: isAbove("temperature", 2),
      says: "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.",
      param: "temperature",
      code: "decimal_above_max_value",
      source: chatReference,
      violates: { model: "gpt-4.1", body: ask({ temperature: 2.5 }) },
    },
    {
      id: "search-options",
      models: /^(?!.*search)/,
      when: isSet("web_search_options"),
      says: "Unknown parameter: 'web_search_options'.",
      param: "web_search_options",
      code: "unknown_parameter",
      source: "github.com/BerriAI/litellm/issues/12311 (2025-07-04), pull/20512 (2026-02-05)",
      violates: { model: "gpt-5.4", body: ask({ web_search_options: {} }) },
    },
  ]),
];
