import { jsonAdvice } from "../../../src/inference/dialects/shared/tools.ts";
import {
  converseQuestion,
  geminiQuestion,
  question,
  responsesQuestion,
  schema,
  user,
  wireQuestion,
  type DialectRequestCase,
} from "./dialect-request-case.ts";

/** The same turn for dialects without signatures and without a name for ciphertext. */
const sealedThoughtAlone: DialectRequestCase["canonical"]["messages"] = [
  user("Go"),
  {
    role: "assistant",
    parts: [
      { type: "tool-call", kind: "function", id: "c1", name: "f", arguments: "{}" },
      { type: "reasoning", encrypted: "e2" },
      { type: "tool-call", kind: "function", id: "c2", name: "g", arguments: "{}" },
    ],
  },
  { role: "tool", toolCallId: "c1", parts: [{ type: "text", text: "1" }] },
  { role: "tool", toolCallId: "c2", parts: [{ type: "text", text: "2" }] },
];

/** The same turn for dialects that do not name formats. */
const sealedThoughts: DialectRequestCase["canonical"]["messages"] = [
  user("Go"),
  {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "first", signature: "s1" },
      { type: "tool-call", kind: "function", id: "c1", name: "f", arguments: "{}" },
      { type: "reasoning", encrypted: "e2" },
      { type: "tool-call", kind: "function", id: "c2", name: "g", arguments: "{}" },
    ],
  },
  { role: "tool", toolCallId: "c1", parts: [{ type: "text", text: "1" }] },
  { role: "tool", toolCallId: "c2", parts: [{ type: "text", text: "2" }] },
];

/** Cases of reasoning settings and output formats. */
export const reasoningAndOutputCases: readonly DialectRequestCase[] = [
  {
    what: "thoughts, sealed and in their places",
    canonical: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "first", signature: "s1", field: "reasoning_details" },
            { type: "tool-call", kind: "function", id: "c1", name: "f", arguments: "{}" },
            {
              type: "reasoning",
              encrypted: "e2",
              format: "anthropic-claude-v1",
              field: "reasoning_details",
            },
            { type: "tool-call", kind: "function", id: "c2", name: "g", arguments: "{}" },
          ],
        },
        { role: "tool", toolCallId: "c1", parts: [{ type: "text", text: "1" }] },
        { role: "tool", toolCallId: "c2", parts: [{ type: "text", text: "2" }] },
      ],
    },
    wire: {
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "first", signature: "s1" },
              { type: "tool_use", id: "c1", name: "f", input: {} },
              { type: "redacted_thinking", data: "e2" },
              { type: "tool_use", id: "c2", name: "g", input: {} },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "c1", content: "1" },
              { type: "tool_result", tool_use_id: "c2", content: "2" },
            ],
          },
        ],
      },
      "openai-chat": {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: null,
            reasoning_details: [
              { type: "reasoning.text", text: "first", signature: "s1", index: 0 },
              {
                type: "reasoning.encrypted",
                data: "e2",
                format: "anthropic-claude-v1",
                index: 1,
                tool_call_id: "c2",
              },
            ],
            tool_calls: [
              { id: "c1", type: "function", function: { name: "f", arguments: "{}" } },
              { id: "c2", type: "function", function: { name: "g", arguments: "{}" } },
            ],
          },
          { role: "tool", tool_call_id: "c1", content: "1" },
          { role: "tool", tool_call_id: "c2", content: "2" },
        ],
      },
      "amazon-converse": {
        messages: [
          { role: "user", content: [{ text: "Go" }] },
          {
            role: "assistant",
            content: [
              { reasoningContent: { reasoningText: { text: "first", signature: "s1" } } },
              { toolUse: { toolUseId: "c1", name: "f", input: {} } },
              { reasoningContent: { redactedContent: "e2" } },
              { toolUse: { toolUseId: "c2", name: "g", input: {} } },
            ],
          },
          {
            role: "user",
            content: [
              { toolResult: { toolUseId: "c1", content: [{ text: "1" }] } },
              { toolResult: { toolUseId: "c2", content: [{ text: "2" }] } },
            ],
          },
        ],
        toolConfig: {
          tools: [
            { toolSpec: { name: "f", inputSchema: { json: { type: "object", properties: {} } } } },
            { toolSpec: { name: "g", inputSchema: { json: { type: "object", properties: {} } } } },
          ],
        },
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ text: "Go" }] },
          {
            role: "model",
            parts: [
              {
                functionCall: { id: "c1", name: "f", args: {} },
                thoughtSignature: "skip_thought_signature_validator",
              },
              { functionCall: { id: "c2", name: "g", args: {} } },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "c1", name: "f", response: { output: "1" } } },
              { functionResponse: { id: "c2", name: "g", response: { output: "2" } } },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: "Go" },
          { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
          { type: "reasoning", summary: [], encrypted_content: "e2" },
          { type: "function_call", call_id: "c2", name: "g", arguments: "{}" },
          { type: "function_call_output", call_id: "c1", output: "1" },
          { type: "function_call_output", call_id: "c2", output: "2" },
        ],
      },
    },
    losses: {
      "openai-responses": ["messages[1].content[0]"],
      "google-generate": ["messages[1].content[0]", "messages[1].content[2]"],
    },
    reads: {
      "anthropic-messages": { messages: sealedThoughts },
      "openai-responses": { messages: sealedThoughtAlone },
    },
  },
  {
    what: "structured output, effort, bounds and stop texts",
    canonical: {
      ...question,
      output: { type: "json-schema", name: "weather", schema, strict: true },
      reasoning: { effort: "low" },
      maxOutputTokens: 300,
      stop: ["END"],
      sampling: { temperature: 0.2, topP: 0.9 },
      endUserId: "u-1",
    },
    wire: {
      "anthropic-messages": {
        ...wireQuestion,
        max_tokens: 300,
        output_config: { effort: "low", format: { type: "json_schema", schema } },
        stop_sequences: ["END"],
        temperature: 0.2,
        top_p: 0.9,
        metadata: { user_id: "u-1" },
      },
      "openai-chat": {
        ...wireQuestion,
        response_format: {
          type: "json_schema",
          json_schema: { name: "weather", schema, strict: true },
        },
        reasoning_effort: "low",
        max_tokens: 300,
        stop: ["END"],
        temperature: 0.2,
        top_p: 0.9,
        user: "u-1",
      },
      "amazon-converse": {
        ...converseQuestion,
        system: [{ text: jsonAdvice(schema) }],
        inferenceConfig: { maxTokens: 300, temperature: 0.2, topP: 0.9, stopSequences: ["END"] },
      },
      "google-generate": {
        ...geminiQuestion,
        generationConfig: {
          temperature: 0.2,
          topP: 0.9,
          stopSequences: ["END"],
          maxOutputTokens: 300,
          responseMimeType: "application/json",
          responseJsonSchema: schema,
          thinkingConfig: { thinkingLevel: "LOW", includeThoughts: true },
        },
      },
      "openai-responses": {
        ...responsesQuestion,
        text: { format: { type: "json_schema", name: "weather", schema, strict: true } },
        reasoning: { effort: "low" },
        max_output_tokens: 300,
        temperature: 0.2,
        top_p: 0.9,
        user: "u-1",
      },
    },
    losses: { "amazon-converse": ["reasoning", "response_format"], "openai-responses": ["stop"] },
    reads: {
      "anthropic-messages": { output: { type: "json-schema", schema, strict: true } },
      "openai-responses": { stop: undefined },
    },
  },
];
