import {
  all,
  at,
  isAbove,
  isOther,
  isSet,
  lacksResults,
  offersFunctions,
  someBlock,
  someTurn,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRule } from "../rule.ts";
import { ask, chatCall, chatFormat, chatTool, schemaOf } from "../samples.ts";

const envelope = ({ message, param }: { message: string; param: string | null }): Fields => ({
  error: { message, type: "invalid_request_error", ...(param !== null && { param }) },
});

const llama = "llama-3.3-70b-versatile";
const docs = "console.groq.com/docs/openai (2026-11)";
const schemaModels = /gpt-oss|llama-4|kimi-k2/;

/** What Groq refuses. */
export const groqRules: readonly VendorRule[] = rulesOf(
  { vendor: "groq", endpoint: "chat", body: envelope },
  [
    ...(
      [
        ["logprobs", true],
        ["top_logprobs", 2],
        ["logit_bias", { "1": 1 }],
      ] as const
    ).map(([field, value]) => ({
      id: field.replace("_", "-"),
      when: isSet(field),
      says: `property '${field}' is unsupported`,
      param: field,
      source: docs,
      violates: { model: llama, body: ask({ [field]: value }) },
    })),
    {
      id: "n",
      when: isAbove("n", 1),
      says: "'n' : number must be at most 1",
      source: docs,
      violates: { model: llama, body: ask({ n: 2 }) },
    },
    {
      id: "json-beside-functions",
      when: all(offersFunctions, ({ body }) =>
        ["json_object", "json_schema"].includes(String(at(body, "response_format.type"))),
      ),
      says: "json mode cannot be combined with tool/function calling",
      source: "github.com/vercel/ai/pull/16540 (2026-07-01)",
      violates: {
        model: "openai/gpt-oss-120b",
        body: ask(
          { response_format: { type: "json_object" }, tools: [chatTool()] },
          "JSON, please",
        ),
      },
    },
    {
      id: "schema-without-support",
      models: /^(?!.*(?:gpt-oss|llama-4|kimi-k2))/,
      when: ({ body }) => at(body, "response_format.type") === "json_schema",
      says: "This model does not support response format `json_schema`. See supported models at...",
      source: "console.groq.com/docs/structured-outputs (2026-11)",
      violates: { model: llama, body: ask(chatFormat(schemaOf({ type: "string" }))) },
    },
    {
      id: "schema-streamed",
      models: schemaModels,
      when: all(
        ({ body }) => at(body, "response_format.type") === "json_schema",
        ({ body }) => body["stream"] === true,
        ({ body }) => at(body, "response_format.json_schema.strict") === true,
        ({ model }) => !model.includes("gpt-oss"),
      ),
      says: "Streaming is not supported with json_schema response format.",
      source: "console.groq.com/docs/structured-outputs (2026-11)",
      violates: {
        model: "meta-llama/llama-4-scout-17b-16e-instruct",
        body: ask({ ...chatFormat(schemaOf({ type: "string" })), stream: true }),
      },
    },
    ...(["reasoning_content", "reasoning_details"] as const).map((field) => ({
      id: `message-${field.replace("_", "-")}`,
      when: someTurn((turn) => turn[field] !== undefined),
      says: `'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property '${field}' is unsupported)]`,
      source: "github.com/karthink/gptel/issues/774 (2025-05-13)",
      violates: {
        model: llama,
        body: {
          messages: [
            { role: "user", content: "Hi" },
            {
              role: "assistant",
              content: "So.",
              [field]: field === "reasoning_content" ? "Hm." : [{ type: "reasoning.text" }],
            },
            { role: "user", content: "And?" },
          ],
        },
      },
    })),
    {
      id: "effort-without-reasoning",
      models: /llama|compound/,
      when: isSet("reasoning_effort"),
      says: "`reasoning_effort` is not supported with this model",
      param: "reasoning_effort",
      source: "console.groq.com/docs/reasoning (2026-11)",
      violates: { model: llama, body: ask({ reasoning_effort: "high" }) },
    },
    {
      id: "effort-qwen",
      models: /qwen3/,
      when: isOther("reasoning_effort", "none", "default"),
      says: "`reasoning_effort` must be one of `none` or `default`",
      param: "reasoning_effort",
      source: "console.groq.com/docs/reasoning (2026-11)",
      violates: { model: "qwen/qwen3-32b", body: ask({ reasoning_effort: "high" }) },
    },
    {
      id: "effort-gpt-oss",
      models: /gpt-oss/,
      when: isOther("reasoning_effort", "low", "medium", "high"),
      says: "`reasoning_effort` must be one of `low`, `medium`, or `high`",
      param: "reasoning_effort",
      source: "console.groq.com/docs/reasoning (2026-11)",
      violates: { model: "openai/gpt-oss-120b", body: ask({ reasoning_effort: "none" }) },
    },
    {
      id: "cap-above-model",
      models: /llama-3\.3/,
      when: (request) =>
        isAbove("max_tokens", 32_768)(request) || isAbove("max_completion_tokens", 32_768)(request),
      says: "`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens` is less than the...",
      param: "max_tokens",
      source: "console.groq.com/docs/models (2026-11)",
      violates: { model: llama, body: ask({ max_tokens: 64_000 }) },
    },
    {
      id: "cache-control",
      when: someBlock(({ cache_control: marker }) => marker !== undefined),
      says: "'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : one of the following...",
      source: "references of the three dialects (2026-11-21)",
      violates: {
        model: llama,
        body: {
          messages: [
            {
              role: "user",
              content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }],
            },
          ],
        },
      },
    },
    {
      id: "calls-without-results",
      when: lacksResults,
      says: "An assistant message with 'tool_calls' must be followed by tool messages.",
      source: "recalled",
      violates: {
        model: llama,
        body: {
          messages: [{ role: "user", content: "Hi" }, chatCall(), { role: "user", content: "?" }],
          tools: [chatTool()],
        },
      },
    },
    {
      id: "unknown-top-k",
      when: (request) => isSet("top_k")(request) || isSet("min_p")(request),
      says: "property 'top_k' is unsupported",
      source: docs,
      violates: { model: llama, body: ask({ top_k: 5 }) },
    },
  ],
);
