import type { DialectId } from "../../src/inference/canonical/dialect-id.ts";
import type { JsonObject } from "../../src/inference/canonical/json.ts";
import type { CanonicalResponse } from "../../src/inference/canonical/response.ts";

/** The form of one canonical answer in each dialect, and its meaning when it is parsed back. */
export interface DialectResponseCase {
  what: string;
  canonical: CanonicalResponse;
  wire: Partial<Record<DialectId, JsonObject>>;
  /** Members that parse back differently, for a dialect that cannot express everything. */
  reads?: Partial<Record<DialectId, Partial<CanonicalResponse>>>;
}

const head = { id: "r1", model: "m", createdAtSeconds: 1_763_700_000 };
const chatHead = {
  id: "r1",
  object: "chat.completion",
  created: 1_763_700_000,
  model: "m",
  system_fingerprint: null,
};

const messageHead = { id: "r1", type: "message", role: "assistant", model: "m" };
const messageEnd = { stop_reason: "end_turn", stop_sequence: null, stop_details: null };
/** Usage of zeros: Messages clients throw when an answer reports no usage at all. */
const nothingUsed = {
  usage: { inputTokens: 0, outputTokens: 0 },
  estimated: false,
  clamped: false,
};

const geminiHead = { responseId: "r1", modelVersion: "m", createTime: "2025-11-21T04:40:00Z" };

/** The members that every response repeats from a request that set nothing. */
const responsesHead = {
  id: "r1",
  object: "response",
  created_at: 1_763_700_000,
  completed_at: null,
  model: "m",
  error: null,
  incomplete_details: null,
  output_text: "",
  usage: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: "default",
  store: true,
  background: false,
  temperature: 1,
  top_p: 1,
  top_logprobs: 0,
  presence_penalty: 0,
  frequency_penalty: 0,
  tool_choice: "auto",
  truncation: "disabled",
  user: null,
  metadata: {},
  reasoning: { effort: null, summary: null },
  text: { format: { type: "text" } },
  tools: [],
};
const responsesEnd = { status: "completed", completed_at: 1_763_700_000 };

/** Rows of one canonical answer each, with its form in each dialect. */
export const dialectResponseCases: readonly DialectResponseCase[] = [
  {
    what: "text with usage",
    canonical: {
      ...head,
      choices: [
        { index: 0, parts: [{ type: "text", text: "Sunny." }], finish: { reason: "stop" } },
      ],
      usage: {
        usage: {
          inputTokens: 10,
          cacheReadTokens: 100,
          cacheWriteTokens: 20,
          outputTokens: 3,
          reasoningTokens: 4,
        },
        estimated: false,
        clamped: false,
      },
    },
    wire: {
      "anthropic-messages": {
        ...messageHead,
        content: [{ type: "text", text: "Sunny." }],
        ...messageEnd,
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 20,
          cache_read_input_tokens: 100,
          output_tokens: 7,
          output_tokens_details: { thinking_tokens: 4 },
        },
      },
      "openai-chat": {
        ...chatHead,
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "Sunny.", refusal: null },
            logprobs: null,
            finish_reason: "stop",
          },
        ],
        usage: {
          prompt_tokens: 130,
          completion_tokens: 7,
          total_tokens: 137,
          prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 4 },
        },
      },
      "amazon-converse": {
        output: { message: { role: "assistant", content: [{ text: "Sunny." }] } },
        stopReason: "end_turn",
        usage: {
          inputTokens: 10,
          outputTokens: 7,
          totalTokens: 137,
          cacheReadInputTokens: 100,
          cacheWriteInputTokens: 20,
        },
      },
      "google-generate": {
        ...geminiHead,
        candidates: [
          {
            index: 0,
            content: { role: "model", parts: [{ text: "Sunny." }] },
            finishReason: "STOP",
          },
        ],
        usageMetadata: {
          promptTokenCount: 130,
          cachedContentTokenCount: 100,
          candidatesTokenCount: 3,
          thoughtsTokenCount: 4,
          totalTokenCount: 137,
        },
      },
      "openai-responses": {
        ...responsesHead,
        ...responsesEnd,
        output: [
          {
            id: "msg_r1_0",
            type: "message",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text: "Sunny.", annotations: [], logprobs: [] }],
          },
        ],
        output_text: "Sunny.",
        usage: {
          input_tokens: 130,
          input_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
          output_tokens: 7,
          output_tokens_details: { reasoning_tokens: 4 },
          total_tokens: 137,
        },
      },
    },
    reads: {
      "openai-responses": {
        usage: {
          usage: {
            inputTokens: 10,
            cacheReadTokens: 100,
            cacheWriteTokens: 20,
            outputTokens: 3,
            reasoningTokens: 4,
          },
          estimated: false,
          clamped: false,
          levels: { service_tier: "default" },
        },
      },
      "amazon-converse": {
        usage: {
          usage: { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 7 },
          estimated: false,
          clamped: false,
        },
      },
      "google-generate": {
        usage: {
          usage: { inputTokens: 30, cacheReadTokens: 100, outputTokens: 3, reasoningTokens: 4 },
          estimated: false,
          clamped: false,
        },
      },
    },
  },
  {
    what: "a call without arguments",
    canonical: {
      ...head,
      choices: [
        {
          index: 0,
          parts: [{ type: "tool-call", kind: "function", id: "c", name: "f", arguments: "{}" }],
          finish: { reason: "tool_calls" },
        },
      ],
    },
    wire: {
      "anthropic-messages": {
        ...messageHead,
        content: [{ type: "tool_use", id: "c", name: "f", input: {} }],
        ...messageEnd,
        stop_reason: "tool_use",
        usage: { input_tokens: 0, output_tokens: 0 },
      },
      "openai-chat": {
        ...chatHead,
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              content: null,
              refusal: null,
              tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
            },
            logprobs: null,
            finish_reason: "tool_calls",
          },
        ],
      },
      "amazon-converse": {
        output: {
          message: {
            role: "assistant",
            content: [{ toolUse: { toolUseId: "c", name: "f", input: {} } }],
          },
        },
        stopReason: "tool_use",
      },
      "google-generate": {
        ...geminiHead,
        candidates: [
          {
            index: 0,
            content: { role: "model", parts: [{ functionCall: { id: "c", name: "f", args: {} } }] },
            finishReason: "STOP",
          },
        ],
      },
      "openai-responses": {
        ...responsesHead,
        ...responsesEnd,
        output: [
          {
            id: "fc_r1_0",
            type: "function_call",
            status: "completed",
            call_id: "c",
            name: "f",
            arguments: "{}",
          },
        ],
      },
    },
    reads: {
      "anthropic-messages": { usage: nothingUsed },
      "openai-responses": {
        choices: [
          {
            index: 0,
            parts: [
              {
                type: "tool-call",
                kind: "function",
                id: "c",
                name: "f",
                arguments: "{}",
                itemId: "fc_r1_0",
              },
            ],
            finish: { reason: "tool_calls" },
          },
        ],
      },
    },
  },
  {
    what: "plain thoughts before text that was cut by its bound",
    canonical: {
      ...head,
      choices: [
        {
          index: 0,
          parts: [
            { type: "reasoning", text: "hm" },
            { type: "text", text: "So" },
          ],
          finish: { reason: "length" },
        },
      ],
    },
    wire: {
      "anthropic-messages": {
        ...messageHead,
        content: [
          { type: "thinking", thinking: "hm", signature: "" },
          { type: "text", text: "So" },
        ],
        ...messageEnd,
        stop_reason: "max_tokens",
        usage: { input_tokens: 0, output_tokens: 0 },
      },
      "openai-chat": {
        ...chatHead,
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              content: "So",
              refusal: null,
              reasoning_content: "hm",
              reasoning: "hm",
            },
            logprobs: null,
            finish_reason: "length",
          },
        ],
      },
      "amazon-converse": {
        output: {
          message: {
            role: "assistant",
            content: [{ reasoningContent: { reasoningText: { text: "hm" } } }, { text: "So" }],
          },
        },
        stopReason: "max_tokens",
      },
      "google-generate": {
        ...geminiHead,
        candidates: [
          {
            index: 0,
            content: { role: "model", parts: [{ text: "hm", thought: true }, { text: "So" }] },
            finishReason: "MAX_TOKENS",
          },
        ],
      },
      "openai-responses": {
        ...responsesHead,
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
        output: [
          { id: "rs_r1_0", type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
          {
            id: "msg_r1_1",
            type: "message",
            status: "incomplete",
            role: "assistant",
            content: [{ type: "output_text", text: "So", annotations: [], logprobs: [] }],
          },
        ],
        output_text: "So",
      },
    },
    reads: {
      "anthropic-messages": { usage: nothingUsed },
      "openai-responses": {
        choices: [
          {
            index: 0,
            parts: [
              { type: "reasoning", summary: ["hm"], id: "rs_r1_0" },
              { type: "text", text: "So" },
            ],
            finish: { reason: "length" },
          },
        ],
      },
    },
  },
];
