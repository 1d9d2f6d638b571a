import type { Fields } from "./rule.ts";

/** A chat or Messages request of one short question, with further members. */
export const ask = (more: Fields = {}, text = "Hi"): Fields => ({
  messages: [{ role: "user", content: text }],
  ...more,
});

/** A Messages request, which always names a cap. */
export const askClaude = (more: Fields = {}): Fields => ask({ max_tokens: 1_024, ...more });

/** A function as chat defines it. */
export const chatTool = (more: Fields = {}): Fields => ({
  type: "function",
  function: {
    name: "look_up",
    description: "Looks it up.",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
    ...more,
  },
});

/** A function as Responses defines it. */
export const responsesTool = (more: Fields = {}): Fields => ({
  type: "function",
  ...(chatTool(more)["function"] as Fields),
});

/** A tool as Messages defines it. */
export const claudeTool = (more: Fields = {}): Fields => ({
  name: "look_up",
  description: "Looks it up.",
  input_schema: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  ...more,
});

/** A tool as Converse defines it. */
export const converseTool = (more: Fields = {}): Fields => ({
  toolSpec: {
    name: "look_up",
    description: "Looks it up.",
    inputSchema: { json: claudeTool()["input_schema"] },
    ...more,
  },
});

/** A function as Gemini defines it. */
export const geminiTool = (more: Fields = {}): Fields => ({
  functionDeclarations: [
    {
      name: "look_up",
      description: "Looks it up.",
      parametersJsonSchema: claudeTool()["input_schema"],
      ...more,
    },
  ],
});

/** An assistant's turn of chat that calls the function. */
export const chatCall = (more: Fields = {}, id = "call_1"): Fields => ({
  role: "assistant",
  content: null,
  tool_calls: [
    { id, type: "function", function: { name: "look_up", arguments: '{"city":"Bern"}' } },
  ],
  ...more,
});

/** The result of a call of chat. */
export const chatResult = (id = "call_1"): Fields => ({
  role: "tool",
  tool_call_id: id,
  content: "sunny",
});

/** A chat conversation with a turn of tools, with further messages at its end. */
export const chatHistory = (
  { call = chatCall(), result = chatResult() }: { call?: Fields; result?: Fields } = {},
  ...more: readonly Fields[]
): Fields => ({
  messages: [{ role: "user", content: "Weather?" }, call, result, ...more],
  tools: [chatTool()],
});

/** A Messages conversation with a turn of tools; `blocks` precede the call. */
export const claudeHistory = (blocks: readonly Fields[] = [], id = "toolu_1"): Fields => ({
  max_tokens: 4_096,
  messages: [
    { role: "user", content: "Weather?" },
    {
      role: "assistant",
      content: [...blocks, { type: "tool_use", id, name: "look_up", input: { city: "Bern" } }],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "sunny" }] },
  ],
  tools: [claudeTool()],
});

/** A Gemini request of one short question. */
export const askGemini = (more: Fields = {}): Fields => ({
  contents: [{ role: "user", parts: [{ text: "Hi" }] }],
  ...more,
});

/** A Converse request of one short question. */
export const askConverse = (more: Fields = {}): Fields => ({
  messages: [{ role: "user", content: [{ text: "Hi" }] }],
  ...more,
});

/** A Converse conversation with a turn of tools; blocks follow the result, or precede the call. */
export const converseHistory = (
  id = "tooluse_1",
  after: readonly Fields[] = [],
  before: readonly Fields[] = [],
  result: Fields = {},
): Fields => ({
  messages: [
    { role: "user", content: [{ text: "Weather?" }] },
    {
      role: "assistant",
      content: [
        ...before,
        { toolUse: { toolUseId: id, name: "look_up", input: { city: "Bern" } } },
      ],
    },
    {
      role: "user",
      content: [
        { toolResult: { toolUseId: id, content: [{ text: "sunny" }], ...result } },
        ...after,
      ],
    },
  ],
  toolConfig: { tools: [converseTool()] },
});

/** A schema with one property, which may be of any form. */
export const schemaOf = (property: Fields, more: Fields = {}): Fields => ({
  type: "object",
  properties: { value: property },
  required: ["value"],
  additionalProperties: false,
  ...more,
});

/** The schema of a function that needs one of two arguments. */
export const eitherOf: Fields = {
  type: "object",
  properties: { city: { type: "string" }, zip: { type: "string" } },
  anyOf: [{ required: ["city"] }, { required: ["zip"] }],
};

/** The schema of a function whose argument has a name that Claude does not take. */
export const oddMembers: Fields = {
  type: "object",
  properties: { "filter[city]": { type: "string" } },
  required: ["filter[city]"],
};

/** The schema of a function as older drafts write it. */
export const olderSchema: Fields = {
  type: "object",
  properties: {
    range: { type: "array", items: [{ type: "number" }, { type: "number" }] },
    least: { type: "integer", minimum: 0, exclusiveMinimum: true },
    names: { type: "array" },
  },
};

/** Chat's response format of a schema. */
export const chatFormat = (schema: Fields, strict = true): Fields => ({
  response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict } },
});
