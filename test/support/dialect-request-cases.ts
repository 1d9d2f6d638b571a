import type { DialectId } from "../../src/inference/canonical/dialect-id.ts";
import type { JsonObject } from "../../src/inference/canonical/json.ts";
import type { CanonicalRequest } from "../../src/inference/canonical/request.ts";

/** What one canonical request is on each wire, and means when it is read from there. */
export interface DialectRequestCase {
  what: string;
  canonical: Omit<CanonicalRequest, "dialect" | "model" | "stream">;
  wire: Partial<Record<DialectId, JsonObject>>;
}

const user = (text: string): CanonicalRequest["messages"][number] => ({ role: "user", parts: [{ type: "text", text }] });
const question = { messages: [user("Weather?")] };
const wireQuestion = { messages: [{ role: "user", content: "Weather?" }] };
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };

/** One canonical request a row, with what it is in each dialect. */
export const dialectRequestCases: readonly DialectRequestCase[] = [
  {
    what: "text alone",
    canonical: question,
    wire: { "openai-chat": wireQuestion },
  },
  {
    what: "instructions, leading and later",
    canonical: {
      messages: [
        { role: "system", parts: [{ type: "text", text: "Be brief." }] },
        user("Hi"),
        { role: "system", developer: true, parts: [{ type: "text", text: "Now rhyme." }] },
      ],
    },
    wire: {
      "openai-chat": {
        messages: [
          { role: "system", content: "Be brief." }, { role: "user", content: "Hi" }, { role: "developer", content: "Now rhyme." },
        ],
      },
    },
  },
  {
    what: "an image by address and one inline",
    canonical: {
      messages: [{
        role: "user",
        parts: [
          { type: "text", text: "Compare." },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" }, detail: "high" },
          { type: "image", source: { type: "base64", mediaType: "image/jpeg", data: "/9j/" } },
        ],
      }],
    },
    wire: {
      "openai-chat": {
        messages: [{
          role: "user",
          content: [
            { type: "text", text: "Compare." },
            { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "high" } },
            { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j/" } },
          ],
        }],
      },
    },
  },
  {
    what: "a document and sound",
    canonical: {
      messages: [{
        role: "user",
        parts: [
          { type: "document", source: { type: "base64", mediaType: "application/pdf", data: "JVBE" }, title: "a.pdf" },
          { type: "document", source: { type: "file", fileId: "file-1" } },
          { type: "audio", data: "UklG", format: "wav" },
        ],
      }],
    },
    wire: {
      "openai-chat": {
        messages: [{
          role: "user",
          content: [
            { type: "file", file: { file_data: "data:application/pdf;base64,JVBE", filename: "a.pdf" } },
            { type: "file", file: { file_id: "file-1" } },
            { type: "input_audio", input_audio: { data: "UklG", format: "wav" } },
          ],
        }],
      },
    },
  },
  {
    what: "tools, a forced one, one at a time",
    canonical: {
      ...question,
      tools: [
        { type: "function", name: "get_weather", description: "Looks outside.", parameters: schema, strict: true },
        { type: "custom", name: "shell", format: { type: "grammar", syntax: "regex", definition: "ls .*" } },
      ],
      toolChoice: { type: "tool", kind: "function", name: "get_weather" },
      parallelToolCalls: false,
    },
    wire: {
      "openai-chat": {
        ...wireQuestion,
        tools: [
          { type: "function", function: { name: "get_weather", description: "Looks outside.", parameters: schema, strict: true } },
          { type: "custom", custom: { name: "shell", format: { type: "grammar", grammar: { syntax: "regex", definition: "ls .*" } } } },
        ],
        tool_choice: { type: "function", function: { name: "get_weather" } },
        parallel_tool_calls: false,
      },
    },
  },
  {
    what: "allowed tools",
    canonical: {
      ...question,
      tools: [{ type: "function", name: "f", parameters: schema }],
      toolChoice: { type: "allowed", mode: "auto", tools: [{ type: "function", name: "f" }, { type: "custom", name: "g" }] },
    },
    wire: {
      "openai-chat": {
        ...wireQuestion,
        tools: [{ type: "function", function: { name: "f", parameters: schema } }],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: {
            mode: "auto", tools: [{ type: "function", function: { name: "f" } }, { type: "custom", custom: { name: "g" } }],
          },
        },
      },
    },
  },
  {
    what: "calls and their results",
    canonical: {
      messages: [
        user("Both"),
        {
          role: "assistant",
          parts: [
            { type: "text", text: "Looking." },
            { type: "tool-call", kind: "function", id: "call_a", name: "f", arguments: '{"x":1}' },
            { type: "tool-call", kind: "custom", id: "call_b", name: "shell", arguments: "ls" },
          ],
        },
        { role: "tool", toolCallId: "call_a", parts: [{ type: "text", text: "one" }] },
        { role: "tool", kind: "custom", toolCallId: "call_b", parts: [] },
      ],
    },
    wire: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Both" },
          {
            role: "assistant",
            content: "Looking.",
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
              { id: "call_b", type: "custom", custom: { name: "shell", input: "ls" } },
            ],
          },
          { role: "tool", tool_call_id: "call_a", content: "one" },
          { role: "tool", tool_call_id: "call_b", content: "" },
        ],
      },
    },
  },
  {
    what: "thoughts, sealed and in their places",
    canonical: {
      messages: [
        user("Go"),
        {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "first", signature: "s1", spelling: "reasoning_details" },
            { type: "tool-call", kind: "function", id: "c1", name: "f", arguments: "{}" },
            { type: "reasoning", encrypted: "e2", format: "anthropic-claude-v1", spelling: "reasoning_details" },
            { type: "tool-call", kind: "function", id: "c2", name: "g", arguments: "{}" },
          ],
        },
        { role: "tool", toolCallId: "c1", parts: [{ type: "text", text: "1" }] },
        { role: "tool", toolCallId: "c2", parts: [{ type: "text", text: "2" }] },
      ],
    },
    wire: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: null,
            reasoning_details: [
              { type: "reasoning.text", text: "first", signature: "s1", index: 0 },
              { type: "reasoning.encrypted", data: "e2", format: "anthropic-claude-v1", index: 1, tool_call_id: "c2" },
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
      "openai-chat": {
        ...wireQuestion,
        response_format: { type: "json_schema", json_schema: { name: "weather", schema, strict: true } },
        reasoning_effort: "low",
        max_completion_tokens: 300,
        stop: ["END"],
        temperature: 0.2,
        top_p: 0.9,
        user: "u-1",
      },
    },
  },
  {
    what: "cache markers",
    canonical: {
      messages: [
        { role: "system", parts: [{ type: "text", text: "Long.", cache: { ttl: "1h", spelling: "cache_control" } }] },
        { role: "user", parts: [{ type: "text", text: "Hi", cache: { spelling: "prompt_cache_breakpoint" } }] },
      ],
    },
    wire: {
      "openai-chat": {
        messages: [
          { role: "system", content: [{ type: "text", text: "Long.", cache_control: { type: "ephemeral", ttl: "1h" } }] },
          { role: "user", content: [{ type: "text", text: "Hi", prompt_cache_breakpoint: { mode: "explicit" } }] },
        ],
      },
    },
  },
];
