import { onlyCalled, type AskedCase } from "./pair-case.ts";

/** What tools were called and what they said. */
export const toolResultCases: readonly AskedCase[] = [
  {
    what: "parallel calls with their results, of which one failed",
    asks: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Both" },
          {
            role: "assistant",
            content: "Looking.",
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
              { id: "call_b", type: "function", function: { name: "g", arguments: "" } },
            ],
          },
          { role: "tool", tool_call_id: "call_a", content: "one" },
          { role: "tool", tool_call_id: "call_b", content: "Error: none" },
          { role: "user", content: "Go on" },
        ],
      },
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Both" },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Looking." },
              { type: "tool_use", id: "call_a", name: "f", input: { x: 1 } },
              { type: "tool_use", id: "call_b", name: "g", input: {} },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_a", content: "one" },
              {
                type: "tool_result",
                tool_use_id: "call_b",
                content: [{ type: "text", text: "none" }],
                is_error: true,
              },
              { type: "text", text: "Go on" },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { role: "user", content: "Both" },
          { role: "assistant", content: "Looking." },
          { type: "function_call", call_id: "call_a", name: "f", arguments: '{"x":1}' },
          { type: "function_call", call_id: "call_b", name: "g", arguments: "" },
          { type: "function_call_output", call_id: "call_a", output: "one" },
          { type: "function_call_output", call_id: "call_b", output: "Error: none" },
          { role: "user", content: "Go on" },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Both" },
          {
            role: "assistant",
            content: "Looking.",
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
              { id: "call_b", type: "function", function: { name: "g", arguments: "{}" } },
            ],
          },
          { role: "tool", tool_call_id: "call_a", content: "one" },
          { role: "tool", tool_call_id: "call_b", content: "Error: none" },
          { role: "user", content: "Go on" },
        ],
      },
      "anthropic-messages": {
        ...onlyCalled("f", "g"),
        messages: [
          { role: "user", content: "Both" },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Looking." },
              { type: "tool_use", id: "call_a", name: "f", input: { x: 1 } },
              { type: "tool_use", id: "call_b", name: "g", input: {} },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_a", content: "one" },
              { type: "tool_result", tool_use_id: "call_b", content: "Error: none" },
              { type: "text", text: "Go on" },
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
          { type: "function_call", call_id: "call_b", name: "g", arguments: "{}" },
          { type: "function_call_output", call_id: "call_a", output: "one" },
          { type: "function_call_output", call_id: "call_b", output: "Error: none" },
          { type: "message", role: "user", content: "Go on" },
        ],
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
              { functionCall: { id: "call_b", name: "g", args: {} } },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "call_a", name: "f", response: { output: "one" } } },
              {
                functionResponse: { id: "call_b", name: "g", response: { output: "Error: none" } },
              },
              { text: "Go on" },
            ],
          },
        ],
      },
    },
    except: {
      "anthropic-messages -> google-generate": {
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
              { functionCall: { id: "call_b", name: "g", args: {} } },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "call_a", name: "f", response: { output: "one" } } },
              { functionResponse: { id: "call_b", name: "g", response: { error: "none" } } },
              { text: "Go on" },
            ],
          },
        ],
      },
    },
  },
  {
    what: "a picture in a tool's result",
    asks: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Look" },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "shot", arguments: "{}" } },
            ],
          },
          {
            role: "tool",
            tool_call_id: "call_a",
            content: [
              { type: "text", text: "Here." },
              { type: "image_url", image_url: { url: "data:image/png;base64,iVBO" } },
            ],
          },
        ],
      },
      "anthropic-messages": {
        messages: [
          { role: "user", content: "Look" },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "call_a", name: "shot", input: {} }],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_a",
                content: [
                  { type: "text", text: "Here." },
                  {
                    type: "image",
                    source: { type: "base64", media_type: "image/png", data: "iVBO" },
                  },
                ],
              },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { role: "user", content: "Look" },
          { type: "function_call", call_id: "call_a", name: "shot", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "call_a",
            output: [
              { type: "input_text", text: "Here." },
              { type: "input_image", image_url: "data:image/png;base64,iVBO" },
            ],
          },
        ],
      },
    },
    gets: {
      "openai-chat": {
        messages: [
          { role: "user", content: "Look" },
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "call_a", type: "function", function: { name: "shot", arguments: "{}" } },
            ],
          },
          { role: "tool", tool_call_id: "call_a", content: "Here.\n[image 1 attached below]" },
          {
            role: "user",
            content: [
              { type: "text", text: "[image 1, from the result of tool call call_a]" },
              { type: "image_url", image_url: { url: "data:image/png;base64,iVBO" } },
            ],
          },
        ],
      },
      "anthropic-messages": {
        ...onlyCalled("shot"),
        messages: [
          { role: "user", content: "Look" },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "call_a", name: "shot", input: {} }],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_a",
                content: [
                  { type: "text", text: "Here." },
                  {
                    type: "image",
                    source: { type: "base64", media_type: "image/png", data: "iVBO" },
                  },
                ],
              },
            ],
          },
        ],
      },
      "openai-responses": {
        input: [
          { type: "message", role: "user", content: "Look" },
          { type: "function_call", call_id: "call_a", name: "shot", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "call_a",
            output: [
              { type: "input_text", text: "Here." },
              { type: "input_image", image_url: "data:image/png;base64,iVBO" },
            ],
          },
        ],
      },
      "google-generate": {
        contents: [
          { role: "user", parts: [{ text: "Look" }] },
          {
            role: "model",
            parts: [
              {
                functionCall: { id: "call_a", name: "shot", args: {} },
                thoughtSignature: "skip_thought_signature_validator",
              },
            ],
          },
          {
            role: "user",
            parts: [
              {
                functionResponse: {
                  id: "call_a",
                  name: "shot",
                  response: { output: "Here.\n[image 1]" },
                  parts: [{ inlineData: { mimeType: "image/png", data: "iVBO" } }],
                },
              },
            ],
          },
        ],
      },
    },
    losses: {
      "openai-chat": ["messages[2].content[0].content[1]"],
      "openai-responses -> openai-chat": ["input[2].output[1]"],
    },
  },
];
