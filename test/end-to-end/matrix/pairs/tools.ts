import { onlyCalled, type AskedCase } from "./pair-case.ts";

const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

/** Tools: what they are, which must be called, and a call without a result. */
export const toolCases: readonly AskedCase[] = [
  {
    what: "tools, of which one at a time must be called",
    asks: {
      "openai-chat": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              description: "Looks outside.",
              parameters: schema,
              strict: true,
            },
          },
          { type: "function", function: { name: "get_time" } },
        ],
        tool_choice: "required",
        parallel_tool_calls: false,
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [
          {
            name: "get_weather",
            description: "Looks outside.",
            input_schema: schema,
            strict: true,
          },
          { name: "get_time", input_schema: { type: "object" } },
        ],
        tool_choice: { type: "any", disable_parallel_tool_use: true },
      },
      "openai-responses": {
        input: "Weather?",
        tools: [
          {
            type: "function",
            name: "get_weather",
            description: "Looks outside.",
            parameters: schema,
            strict: true,
          },
          { type: "function", name: "get_time", parameters: null, strict: null },
        ],
        tool_choice: "required",
        parallel_tool_calls: false,
      },
    },
    gets: {
      "openai-chat": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [
          {
            type: "function",
            function: {
              name: "get_weather",
              description: "Looks outside.",
              parameters: schema,
              strict: true,
            },
          },
          {
            type: "function",
            function: { name: "get_time", parameters: { type: "object", properties: {} } },
          },
        ],
        tool_choice: "required",
        parallel_tool_calls: false,
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [
          {
            name: "get_weather",
            description: "Looks outside.",
            input_schema: schema,
            strict: true,
          },
          { name: "get_time", input_schema: { type: "object", properties: {} } },
        ],
        tool_choice: { type: "any", disable_parallel_tool_use: true },
      },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Weather?" }],
        tools: [
          {
            type: "function",
            name: "get_weather",
            description: "Looks outside.",
            parameters: schema,
            strict: true,
          },
          {
            type: "function",
            name: "get_time",
            parameters: { type: "object", properties: {} },
            strict: false,
          },
        ],
        tool_choice: "required",
        parallel_tool_calls: false,
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Weather?" }] }],
        tools: [
          {
            functionDeclarations: [
              { name: "get_weather", description: "Looks outside.", parametersJsonSchema: schema },
              { name: "get_time" },
            ],
          },
        ],
        toolConfig: { functionCallingConfig: { mode: "ANY" } },
      },
    },
    except: {
      "anthropic-messages -> google-generate": {
        tools: [
          {
            functionDeclarations: [
              { name: "get_weather", description: "Looks outside.", parametersJsonSchema: schema },
              { name: "get_time", parametersJsonSchema: { type: "object", properties: {} } },
            ],
          },
        ],
      },
    },
    losses: { "google-generate": ["tools[0].strict", "parallel_tool_calls"] },
  },
  {
    what: "a named tool",
    asks: {
      "openai-chat": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [{ type: "function", function: { name: "get_weather", parameters: schema } }],
        tool_choice: { type: "function", function: { name: "get_weather" } },
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [{ name: "get_weather", input_schema: schema }],
        tool_choice: { type: "tool", name: "get_weather" },
      },
      "openai-responses": {
        input: "Weather?",
        tools: [{ type: "function", name: "get_weather", parameters: schema }],
        tool_choice: { type: "function", name: "get_weather" },
      },
    },
    gets: {
      "openai-chat": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [{ type: "function", function: { name: "get_weather", parameters: schema } }],
        tool_choice: { type: "function", function: { name: "get_weather" } },
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Weather?" }],
        tools: [{ name: "get_weather", input_schema: schema }],
        tool_choice: { type: "tool", name: "get_weather" },
      },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Weather?" }],
        tools: [{ type: "function", name: "get_weather", parameters: schema, strict: false }],
        tool_choice: { type: "function", name: "get_weather" },
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Weather?" }] }],
        tools: [{ functionDeclarations: [{ name: "get_weather", parametersJsonSchema: schema }] }],
        toolConfig: {
          functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["get_weather"] },
        },
      },
    },
  },
  {
    what: "a call that was never answered",
    asks: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "f", arguments: "{}" } },
            ],
          },
          { role: "user", content: "Never mind" },
        ],
      },
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "call_a", name: "f", input: {} }],
          },
          { role: "user", content: "Never mind" },
        ],
      },
      "openai-responses": {
        input: [
          { role: "user", content: "Go" },
          { type: "function_call", call_id: "call_a", name: "f", arguments: "{}" },
          { role: "user", content: "Never mind" },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "f", arguments: "{}" } },
            ],
          },
          { role: "tool", tool_call_id: "call_a", content: "Error: (no result)" },
          { role: "user", content: "Never mind" },
        ],
      },
      "anthropic-messages": {
        ...onlyCalled("f"),
        messages: [
          { role: "user", content: "Go" },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "call_a", name: "f", input: {} }],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_a",
                content: "(no result)",
                is_error: true,
              },
              { type: "text", text: "Never mind" },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: "Go" },
          { type: "function_call", call_id: "call_a", name: "f", arguments: "{}" },
          { type: "function_call_output", call_id: "call_a", output: "Error: (no result)" },
          { type: "message", role: "user", content: "Never mind" },
        ],
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ text: "Go" }] },
          {
            role: "model",
            parts: [
              {
                functionCall: { id: "call_a", name: "f", args: {} },
                thoughtSignature: "skip_thought_signature_validator",
              },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "call_a", name: "f", response: { error: "(no result)" } } },
              { text: "Never mind" },
            ],
          },
        ],
      },
    },
  },
];
