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

/** The schema that wraps a custom tool's input in dialects that have only functions. */
const wrappingSchema = {
  type: "object",
  properties: { input: { type: "string", description: "The tool's whole input." } },
  required: ["input"],
  additionalProperties: false,
};

/** Cases of tools that are declared, called and answered. */
export const toolCases: readonly DialectRequestCase[] = [
  {
    what: "tools, a forced one, one at a time",
    canonical: {
      ...question,
      tools: [
        {
          type: "function",
          name: "get_weather",
          description: "Looks outside.",
          parameters: schema,
          strict: true,
        },
        {
          type: "custom",
          name: "shell",
          format: { type: "grammar", syntax: "regex", definition: "ls .*" },
        },
      ],
      toolChoice: { type: "tool", kind: "function", name: "get_weather" },
      parallelToolCalls: false,
    },
    wire: {
      "anthropic-messages": {
        ...wireQuestion,
        tools: [
          {
            name: "get_weather",
            description: "Looks outside.",
            input_schema: schema,
            strict: true,
          },
          {
            name: "shell",
            description: "The input must follow this regex grammar:\nls .*",
            input_schema: wrappingSchema,
          },
        ],
        tool_choice: { type: "tool", name: "get_weather", disable_parallel_tool_use: true },
      },
      "openai-chat": {
        ...wireQuestion,
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
            type: "custom",
            custom: {
              name: "shell",
              format: { type: "grammar", grammar: { syntax: "regex", definition: "ls .*" } },
            },
          },
        ],
        tool_choice: { type: "function", function: { name: "get_weather" } },
        parallel_tool_calls: false,
      },
      "amazon-converse": {
        ...converseQuestion,
        toolConfig: {
          tools: [
            {
              toolSpec: {
                name: "get_weather",
                description: "Looks outside.",
                inputSchema: { json: schema },
              },
            },
            {
              toolSpec: {
                name: "shell",
                description: "The input must follow this regex grammar:\nls .*",
                inputSchema: { json: wrappingSchema },
              },
            },
          ],
          toolChoice: { tool: { name: "get_weather" } },
        },
      },
      "google-generate": {
        ...geminiQuestion,
        tools: [
          {
            functionDeclarations: [
              { name: "get_weather", description: "Looks outside.", parametersJsonSchema: schema },
              {
                name: "shell",
                description: "The input must follow this regex grammar:\nls .*",
                parametersJsonSchema: {
                  type: "object",
                  properties: { input: { type: "string", description: "The tool's whole input." } },
                  required: ["input"],
                  additionalProperties: false,
                },
              },
            ],
          },
        ],
        toolConfig: {
          functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["get_weather"] },
        },
      },
      "openai-responses": {
        ...responsesQuestion,
        tools: [
          {
            type: "function",
            name: "get_weather",
            description: "Looks outside.",
            parameters: schema,
            strict: true,
          },
          {
            type: "custom",
            name: "shell",
            format: { type: "grammar", syntax: "regex", definition: "ls .*" },
          },
        ],
        tool_choice: { type: "function", name: "get_weather" },
        parallel_tool_calls: false,
      },
    },
    losses: {
      "anthropic-messages": ["tools[1].format"],
      "amazon-converse": ["tools[0].strict", "tools[1].format", "parallel_tool_calls"],
      "google-generate": ["tools[0].strict", "tools[1].format", "parallel_tool_calls"],
    },
    reads: {
      "anthropic-messages": {
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
            name: "shell",
            description: "The input must follow this regex grammar:\nls .*",
            parameters: wrappingSchema,
          },
        ],
      },
    },
  },
  {
    what: "allowed tools",
    canonical: {
      ...question,
      tools: [{ type: "function", name: "f", parameters: schema }],
      toolChoice: {
        type: "allowed",
        mode: "auto",
        tools: [
          { type: "function", name: "f" },
          { type: "custom", name: "g" },
        ],
      },
    },
    wire: {
      "anthropic-messages": {
        ...wireQuestion,
        tools: [{ name: "f", input_schema: schema }],
        tool_choice: { type: "auto" },
      },
      "openai-chat": {
        ...wireQuestion,
        tools: [{ type: "function", function: { name: "f", parameters: schema } }],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: {
            mode: "auto",
            tools: [
              { type: "function", function: { name: "f" } },
              { type: "custom", custom: { name: "g" } },
            ],
          },
        },
      },
      "amazon-converse": {
        ...converseQuestion,
        toolConfig: { tools: [{ toolSpec: { name: "f", inputSchema: { json: schema } } }] },
      },
      "google-generate": {
        ...geminiQuestion,
        tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: schema }] }],
        toolConfig: {
          functionCallingConfig: { mode: "VALIDATED", allowedFunctionNames: ["f", "g"] },
        },
      },
      "openai-responses": {
        ...responsesQuestion,
        tools: [{ type: "function", name: "f", parameters: schema }],
        tool_choice: {
          type: "allowed_tools",
          mode: "auto",
          tools: [
            { type: "function", name: "f" },
            { type: "custom", name: "g" },
          ],
        },
      },
    },
    losses: {
      "amazon-converse": ["tool_choice.allowed_tools"],
      "anthropic-messages": ["tool_choice.allowed_tools"],
    },
    reads: { "anthropic-messages": { toolChoice: { type: "auto" } } },
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
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Both" },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Looking." },
              { type: "tool_use", id: "call_a", name: "f", input: { x: 1 } },
              { type: "tool_use", id: "call_b", name: "shell", input: { input: "ls" } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_a", content: "one" },
              { type: "tool_result", tool_use_id: "call_b" },
            ],
          },
        ],
      },
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
      "amazon-converse": {
        messages: [
          { role: "user", content: [{ text: "Both" }] },
          {
            role: "assistant",
            content: [
              { text: "Looking." },
              { toolUse: { toolUseId: "call_a", name: "f", input: { x: 1 } } },
              { toolUse: { toolUseId: "call_b", name: "shell", input: { input: "ls" } } },
            ],
          },
          {
            role: "user",
            content: [
              { toolResult: { toolUseId: "call_a", content: [{ text: "one" }] } },
              { toolResult: { toolUseId: "call_b", content: [{ text: "(no output)" }] } },
            ],
          },
        ],
        toolConfig: {
          tools: [
            { toolSpec: { name: "f", inputSchema: { json: { type: "object", properties: {} } } } },
            {
              toolSpec: {
                name: "shell",
                inputSchema: { json: { type: "object", properties: {} } },
              },
            },
          ],
        },
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ text: "Both" }] },
          {
            role: "model",
            parts: [
              { text: "Looking." },
              {
                functionCall: { id: "call_a", name: "f", args: { x: 1 } },
                thoughtSignature: "skip_thought_signature_validator",
              },
              { functionCall: { id: "call_b", name: "shell", args: { input: "ls" } } },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "call_a", name: "f", response: { output: "one" } } },
              { functionResponse: { id: "call_b", name: "shell", response: { output: "" } } },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: "Both" },
          {
            type: "message",
            role: "assistant",
            content: [{ type: "output_text", text: "Looking." }],
          },
          { type: "function_call", call_id: "call_a", name: "f", arguments: '{"x":1}' },
          { type: "custom_tool_call", call_id: "call_b", name: "shell", input: "ls" },
          { type: "function_call_output", call_id: "call_a", output: "one" },
          { type: "custom_tool_call_output", call_id: "call_b", output: "" },
        ],
      },
    },
    reads: {
      "anthropic-messages": {
        messages: [
          user("Both"),
          {
            role: "assistant",
            parts: [
              { type: "text", text: "Looking." },
              {
                type: "tool-call",
                kind: "function",
                id: "call_a",
                name: "f",
                arguments: '{"x":1}',
              },
              {
                type: "tool-call",
                kind: "function",
                id: "call_b",
                name: "shell",
                arguments: '{"input":"ls"}',
              },
            ],
          },
          { role: "tool", toolCallId: "call_a", parts: [{ type: "text", text: "one" }] },
          { role: "tool", toolCallId: "call_b", parts: [] },
        ],
      },
    },
  },
];
