import type { AskedCase } from "./pair-case.ts";

const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

/** How the model should think, and what should come of it. */
export const thinkingAndOutputCases: readonly AskedCase[] = [
  {
    what: "an effort",
    asks: {
      "openai-chat": { messages: [{ role: "user", content: "Why?" }], reasoning_effort: "medium" },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Why?" }],
        thinking: { type: "adaptive" },
        output_config: { effort: "medium" },
      },
      "openai-responses": { input: "Why?", reasoning: { effort: "medium" } },
    },
    gets: {
      "openai-chat": { messages: [{ role: "user", content: "Why?" }], reasoning_effort: "medium" },
      // The client's bound of 300 tokens leaves no room for a budget.
      "anthropic-messages": { max_tokens: 300, messages: [{ role: "user", content: "Why?" }] },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Why?" }],
        reasoning: { effort: "medium" },
        include: ["reasoning.encrypted_content"],
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Why?" }] }],
        generationConfig: { thinkingConfig: { thinkingLevel: "MEDIUM", includeThoughts: true } },
      },
    },
    losses: {
      "anthropic-messages": ["reasoning"],
      "anthropic-messages -> anthropic-messages": [],
    },
  },
  {
    what: "thinking turned off",
    asks: {
      "openai-chat": { messages: [{ role: "user", content: "Why?" }], reasoning_effort: "none" },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Why?" }],
        thinking: { type: "disabled" },
      },
      "openai-responses": { input: "Why?", reasoning: { effort: "none" } },
    },
    gets: {
      "openai-chat": { messages: [{ role: "user", content: "Why?" }], reasoning_effort: "none" },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Why?" }],
        thinking: { type: "disabled" },
      },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Why?" }],
        reasoning: { effort: "none" },
      },
      // Gemini's newer models think a little even at the lowest setting.
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Why?" }] }],
        generationConfig: { thinkingConfig: { thinkingLevel: "LOW", includeThoughts: false } },
      },
    },
    losses: { "google-generate": ["reasoning.effort"] },
  },
  {
    // The contract has it so: what Messages turns on is the effort `high`, and its budget is not
    // carried over.
    what: "thinking turned on, by Messages with a budget",
    asks: {
      "openai-chat": { messages: [{ role: "user", content: "Why?" }], reasoning_effort: "high" },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Why?" }],
        thinking: { type: "enabled", budget_tokens: 1024 },
        max_tokens: 2000,
      },
      "openai-responses": { input: "Why?", reasoning: { effort: "high" } },
    },
    gets: {
      "openai-chat": { messages: [{ role: "user", content: "Why?" }], reasoning_effort: "high" },
      "anthropic-messages": { max_tokens: 300, messages: [{ role: "user", content: "Why?" }] },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Why?" }],
        reasoning: { effort: "high" },
        include: ["reasoning.encrypted_content"],
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Why?" }] }],
        generationConfig: { thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true } },
      },
    },
    except: {
      "anthropic-messages -> openai-chat": { max_tokens: 2000 },
      "anthropic-messages -> openai-responses": { max_output_tokens: 2000 },
      "anthropic-messages -> google-generate": {
        generationConfig: {
          thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true },
          maxOutputTokens: 2000,
        },
      },
    },
    losses: {
      "anthropic-messages": ["reasoning"],
      "anthropic-messages -> anthropic-messages": [],
    },
  },
  {
    what: "structured output",
    asks: {
      "openai-chat": {
        messages: [{ role: "user", content: "Where?" }],
        response_format: {
          type: "json_schema",
          json_schema: { name: "place", schema, strict: true },
        },
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Where?" }],
        output_config: { format: { type: "json_schema", schema } },
      },
      "openai-responses": {
        input: "Where?",
        text: { format: { type: "json_schema", name: "place", schema, strict: true } },
      },
    },
    gets: {
      "openai-chat": {
        messages: [{ role: "user", content: "Where?" }],
        response_format: {
          type: "json_schema",
          json_schema: { name: "response", schema, strict: true },
        },
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Where?" }],
        output_config: { format: { type: "json_schema", schema } },
      },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Where?" }],
        text: { format: { type: "json_schema", name: "place", schema, strict: true } },
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Where?" }] }],
        generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
      },
    },
    except: {
      "openai-responses -> openai-chat": {
        response_format: {
          type: "json_schema",
          json_schema: { name: "place", schema, strict: true },
        },
      },
      "anthropic-messages -> openai-responses": {
        text: { format: { type: "json_schema", name: "response", schema, strict: true } },
      },
    },
  },
  {
    what: "sampling, stop texts and an end user",
    asks: {
      "openai-chat": {
        messages: [{ role: "user", content: "Go" }],
        temperature: 0.5,
        top_p: 0.9,
        stop: "END",
        user: "u-1",
        seed: 7,
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Go" }],
        temperature: 0.5,
        top_p: 0.9,
        stop_sequences: ["END"],
        metadata: { user_id: "u-1" },
        top_k: 40,
      },
      "openai-responses": { input: "Go", temperature: 0.5, top_p: 0.9, user: "u-1" },
    },
    gets: {
      "openai-chat": {
        messages: [{ role: "user", content: "Go" }],
        temperature: 0.5,
        top_p: 0.9,
        top_k: 40,
        stop: ["END"],
        user: "u-1",
      },
      "anthropic-messages": {
        messages: [{ role: "user", content: "Go" }],
        temperature: 0.5,
        top_p: 0.9,
        stop_sequences: ["END"],
        metadata: { user_id: "u-1" },
      },
      "openai-responses": {
        input: [{ type: "message", role: "user", content: "Go" }],
        temperature: 0.5,
        top_p: 0.9,
        user: "u-1",
      },
      "google-generate": {
        contents: [{ role: "user", parts: [{ text: "Go" }] }],
        generationConfig: { temperature: 0.5, topP: 0.9, seed: 7, stopSequences: ["END"] },
      },
    },
    except: {
      "openai-responses -> openai-chat": { top_k: undefined, stop: undefined },
      "openai-responses -> anthropic-messages": { stop_sequences: undefined },
      "anthropic-messages -> google-generate": {
        generationConfig: { temperature: 0.5, topP: 0.9, topK: 40, stopSequences: ["END"] },
      },
      "openai-responses -> google-generate": { generationConfig: { temperature: 0.5, topP: 0.9 } },
    },
    losses: {
      "anthropic-messages": ["seed"],
      "openai-responses -> anthropic-messages": [],
      "openai-responses": ["seed", "stop"],
      "anthropic-messages -> openai-responses": ["top_k", "stop"],
    },
  },
  {
    what: "fields that nobody knows",
    asks: {
      "openai-chat": {
        messages: [
          {
            role: "user",
            content: [{ type: "text", text: "Go", x_part: { a: [1] } }],
            x_message: 1,
          },
        ],
        x_foo: { deep: [100] },
      },
      "anthropic-messages": {
        messages: [
          {
            role: "user",
            content: [{ type: "text", text: "Go", x_part: { a: [1] } }],
            x_message: 1,
          },
        ],
        x_foo: { deep: [100] },
      },
      "openai-responses": {
        input: [
          {
            role: "user",
            content: [{ type: "input_text", text: "Go", x_part: { a: [1] } }],
            x_message: 1,
          },
        ],
        x_foo: { deep: [100] },
      },
    },
    gets: {
      "openai-chat": { messages: [{ role: "user", content: "Go" }] },
      "anthropic-messages": { messages: [{ role: "user", content: "Go" }] },
      "openai-responses": { input: [{ type: "message", role: "user", content: "Go" }] },
      "google-generate": { contents: [{ role: "user", parts: [{ text: "Go" }] }] },
    },
    losses: {
      "openai-chat": ["messages[0].content[0].x_part", "messages[0].x_message", "x_foo"],
      "anthropic-messages": ["x_foo", "messages[0].x_message", "messages[0].content[0].x_part"],
      "openai-responses": ["messages[0].content[0].x_part", "messages[0].x_message", "x_foo"],
      "google-generate": ["messages[0].x_message", "messages[0].content[0].x_part", "x_foo"],
    },
  },
];
