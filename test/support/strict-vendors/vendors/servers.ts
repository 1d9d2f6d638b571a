import {
  all,
  at,
  callsOf,
  follows,
  isAbove,
  isOther,
  isSet,
  listOf,
  not,
  offersFunctions,
  someTurn,
  turnsOf,
} from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { ask, chatCall, chatFormat, chatHistory, chatTool, schemaOf } from "../samples.ts";

const vllmError = ({ message, param }: { message: string; param: string | null }): Fields => ({
  error: { message, type: "BadRequestError", param, code: 400 },
});
const llamaError = ({ message }: { message: string }): Fields => ({
  error: { code: 400, message, type: "invalid_request_error" },
});

const qwen = "Qwen/Qwen3-32B";
const lateSystem = someTurn((turn, index) => turn["role"] === "system" && index > 0);
const late = {
  messages: [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "So." },
    { role: "system", content: "Be brief." },
    { role: "user", content: "And?" },
  ],
};
const twoUsers = {
  messages: [
    { role: "user", content: "Hi" },
    { role: "user", content: "there" },
  ],
};
const repeats = someTurn(
  (turn, index, turns) =>
    index > 0 && turn["role"] === "user" && turns[index - 1]?.["role"] === "user",
);
const vllmTypes = "github.com/vllm-project/vllm, entrypoints/openai/protocol.py (2026-11)";

/** What a vLLM server refuses. */
export const vllmRules: readonly VendorRule[] = rulesOf(
  { vendor: "vllm", endpoint: "chat", body: vllmError },
  [
    {
      id: "late-system",
      models: /[Qq]wen/,
      when: lateSystem,
      says: "System message must be at the beginning.",
      source: "chat template of Qwen3 (2026-11)",
      violates: { model: qwen, body: late },
    },
    {
      id: "alternating-turns",
      models: /gemma|[Mm]istral/,
      when: repeats,
      says: "Conversation roles must alternate user/assistant/user/assistant/...",
      source: "github.com/microsoft/autogen/issues/1037 (2023-12-21)",
      violates: { model: "google/gemma-3-27b-it", body: twoUsers },
    },
    {
      id: "user-after-result",
      models: /[Mm]istral/,
      when: follows("user", "tool"),
      says: "Unexpected role 'user' after role 'tool'",
      source: "github.com/mistralai/mistral-vibe/issues/578 (2026-04-09)",
      violates: {
        model: "mistralai/Mistral-Small-4-119B-2603",
        body: chatHistory({}, { role: "user", content: "And tomorrow?" }),
      },
    },
    {
      id: "too-many-logprobs",
      when: isAbove("top_logprobs", 20),
      says: "Requested sample logprobs of 25, which is greater than max allowed: 20",
      source: vllmTypes,
      violates: { model: qwen, body: ask({ logprobs: true, top_logprobs: 25 }) },
    },
    {
      id: "top-logprobs-alone",
      when: all(isAbove("top_logprobs", 0), ({ body }) => body["logprobs"] !== true),
      says: "when using `top_logprobs`, `logprobs` must be set to true.",
      source: vllmTypes,
      violates: { model: qwen, body: ask({ top_logprobs: 2 }) },
    },
    {
      id: "stream-options-unstreamed",
      when: all(isSet("stream_options"), ({ body }) => body["stream"] !== true),
      says: "Stream options can only be defined when `stream=True`.",
      source: vllmTypes,
      violates: { model: qwen, body: ask({ stream_options: { include_usage: true } }) },
    },
    {
      id: "choice-without-tools",
      when: all(isOther("tool_choice", "none"), ({ body }) => listOf(body["tools"]).length === 0),
      says: "When using `tool_choice`, `tools` must be set.",
      source: vllmTypes,
      violates: { model: qwen, body: ask({ tool_choice: "auto" }) },
    },
    {
      id: "top-p-zero",
      when: ({ body }) => body["top_p"] === 0,
      says: "top_p must be in (0, 1], got 0.0.",
      source: "github.com/vllm-project/vllm, sampling_params.py (2026-11)",
      violates: { model: qwen, body: ask({ top_p: 0 }) },
    },
    {
      id: "cap-of-zero",
      when: (request) =>
        request.body["max_tokens"] === 0 || request.body["max_completion_tokens"] === 0,
      says: "max_tokens must be at least 1, got 0.",
      source: "github.com/vllm-project/vllm, sampling_params.py (2026-11)",
      violates: { model: qwen, body: ask({ max_tokens: 0 }) },
    },
    {
      id: "effort-values",
      when: isOther("reasoning_effort", "none", "minimal", "low", "medium", "high", "xhigh", "max"),
      says: "Input should be 'none', 'minimal', 'low', 'medium', 'high', 'xhigh' or 'max'",
      source: vllmTypes,
      violates: { model: qwen, body: ask({ reasoning_effort: "ultra" }) },
    },
    {
      id: "schema-missing",
      when: ({ body }) =>
        at(body, "response_format.type") === "json_schema" &&
        at(body, "response_format.json_schema") === undefined,
      says: "json_schema must be provided when response_format is of type json_schema.",
      source: vllmTypes,
      violates: { model: qwen, body: ask({ response_format: { type: "json_schema" } }) },
    },
  ],
);

const llama = "gpt-oss-20b";
const llamaSource = "github.com/ggml-org/llama.cpp, common/chat.cpp and tools/server (2026-11)";
const lastOf = (request: VendorRequest): Fields => turnsOf(request).at(-1) ?? {};

const completionSource =
  "github.com/ggml-org/llama.cpp, tools/server/server-common.cpp, oaicompat_completion_params_parse (2026-11)";

/** What a llama.cpp server refuses of plain completions. */
export const llamaCppCompletionRules: readonly VendorRule[] = rulesOf(
  { vendor: "llama-cpp", endpoint: "completions", body: llamaError },
  [
    {
      id: "prompt-required",
      when: not(isSet("prompt")),
      says: '"prompt" is required',
      source: completionSource,
      violates: { model: llama, body: {} },
    },
    {
      id: "no-echo",
      when: ({ body }) => body["echo"] === true,
      says: "Only no echo is supported",
      source: completionSource,
      violates: { model: llama, body: { prompt: "Hi", echo: true } },
    },
    ...["best_of", "suffix"].map((field) => ({
      id: `no-${field.replace("_", "-")}`,
      // Null is refused too: the member must not be there.
      when: ({ body }: VendorRequest) => field in body,
      says: `Unsupported param: ${field}`,
      source: completionSource,
      violates: { model: llama, body: { prompt: "Hi", [field]: null } },
    })),
    {
      id: "prompt-empty",
      when: ({ body }) => Array.isArray(body["prompt"]) && body["prompt"].length === 0,
      says: '"prompt" must not be empty',
      source: completionSource,
      violates: { model: llama, body: { prompt: [] } },
    },
  ],
);

/** What a llama.cpp server refuses. */
export const llamaCppRules: readonly VendorRule[] = rulesOf(
  { vendor: "llama-cpp", endpoint: "chat", body: llamaError },
  [
    {
      id: "grammar-beside-functions",
      when: all(offersFunctions, isSet("grammar")),
      says: "Cannot use custom grammar constraints with tools.",
      source: llamaSource,
      violates: { model: llama, body: ask({ tools: [chatTool()], grammar: 'root ::= "a"' }) },
    },
    {
      id: "n",
      when: isAbove("n", 1),
      says: "Only one completion choice is allowed",
      source: llamaSource,
      violates: { model: llama, body: ask({ n: 2 }) },
    },
    {
      id: "top-logprobs-alone",
      when: all(isAbove("top_logprobs", 0), not(isSet("logprobs"))),
      says: "top_logprobs requires logprobs to be set to true",
      source: llamaSource,
      violates: { model: llama, body: ask({ top_logprobs: 2 }) },
    },
    {
      id: "logprobs-streamed-with-functions",
      when: all(
        offersFunctions,
        ({ body }) => body["stream"] === true,
        ({ body }) => body["logprobs"] === true,
      ),
      says: "logprobs is not supported with tools + stream",
      source: llamaSource,
      violates: { model: llama, body: ask({ tools: [chatTool()], stream: true, logprobs: true }) },
    },
    {
      id: "thought-and-text-beside-calls",
      models: /gpt-oss/,
      when: someTurn(
        (turn) =>
          callsOf(turn).length > 0 &&
          typeof turn["content"] === "string" &&
          turn["content"] !== "" &&
          typeof turn["reasoning_content"] === "string" &&
          turn["reasoning_content"] !== "",
      ),
      says: "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis message in one...",
      source: "github.com/ggml-org/llama.cpp/issues/17040 (2025-11-07)",
      violates: {
        model: llama,
        body: chatHistory({
          call: chatCall({ content: "I look it up.", reasoning_content: "Hm." }),
        }),
      },
    },
    {
      id: "late-system",
      models: /qwen/i,
      when: lateSystem,
      says: "System message must be at the beginning.",
      source: "chat template of Qwen3 (2026-11)",
      violates: { model: "qwen3-32b", body: late },
    },
    {
      id: "prefill-while-thinking",
      models: /qwen/i,
      when: (request) => lastOf(request)["role"] === "assistant",
      says: "Assistant response prefill is incompatible with enable_thinking.",
      source: llamaSource,
      violates: {
        model: "qwen3-32b",
        body: {
          messages: [
            { role: "user", content: "Hi" },
            { role: "assistant", content: "So" },
          ],
        },
      },
    },
    {
      id: "missing-content",
      when: someTurn(
        (turn) => turn["role"] !== "assistant" && (turn["content"] ?? undefined) === undefined,
      ),
      says: "All non-assistant messages must contain 'content'",
      source: llamaSource,
      violates: { model: llama, body: { messages: [{ role: "user" }] } },
    },
    {
      id: "pattern-without-anchors",
      when: ({ body }) => /"pattern":"(?!\^)/.test(JSON.stringify(body["response_format"] ?? "")),
      says: "JSON schema conversion failed: Pattern must start with '^' and end with '$'",
      source: "github.com/ggml-org/llama.cpp, common/json-schema-to-grammar.cpp (2026-11)",
      violates: {
        model: llama,
        body: ask(chatFormat(schemaOf({ type: "string", pattern: "[a-z]+" }))),
      },
    },
  ],
);
