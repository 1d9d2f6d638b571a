import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import {
  checkCountRequest,
  checkMessagesRequest,
  messagesRequestSchema,
} from "./request-schema.ts";

const valid = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] };

const refusalOf = (
  body: Record<string, unknown>,
  validate: (body: Record<string, unknown>) => unknown = checkMessagesRequest,
): GatewayError | undefined => {
  try {
    validate(body);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
};

const refused: [param: string, changes: Record<string, unknown>][] = [
  ["model", { model: "" }],
  ["model", { model: undefined }],
  ["messages", { messages: [] }],
  ["messages", { messages: "Hi" }],
  ["messages[0]", { messages: ["Hi"] }],
  ["messages[0].role", { messages: [{ role: "tool", content: "" }] }],
  ["messages[0].content", { messages: [{ role: "user" }] }],
  ["messages[0].content", { messages: [{ role: "user", content: {} }] }],
  ["max_tokens", { max_tokens: undefined }],
  ["max_tokens", { max_tokens: null }],
  ["max_tokens", { max_tokens: 1.5 }],
  ["max_tokens", { max_tokens: -1 }],
  ["max_tokens", { max_tokens: "9" }],
  ["system", { system: {} }],
  ["tools", { tools: {} }],
  ["tools[0]", { tools: ["f"] }],
  ["tools[0].name", { tools: [{}] }],
  ["tools[0].name", { tools: [{ type: "custom", name: "" }] }],
  ["tools[1].input_schema", { tools: [{ name: "f" }, { name: "g", input_schema: "x" }] }],
  ["top_k", { top_k: "5" }],
  ["tool_choice", { tool_choice: "auto" }],
  ["temperature", { temperature: 1.1 }],
  ["top_p", { top_p: -0.1 }],
  ["stream", { stream: "yes" }],
  ["thinking", { thinking: true }],
  ["thinking", { thinking: {} }],
  ["output_config", { output_config: [] }],
  ["metadata", { metadata: "m" }],
  ["stop_sequences", { stop_sequences: [1] }],
  ["session_id", { session_id: "s".repeat(257) }],
  ["session_id", { session_id: 1 }],
  ["models", { models: "m" }],
  ["models[1]", { models: ["m", ""] }],
  ["provider", { provider: [] }],
  ["trace", { trace: 1 }],
];

describe("checkMessagesRequest", () => {
  test.each(refused)("refuses %s for %j", (param, changes) => {
    expect(refusalOf({ ...valid, ...changes })).toMatchObject({ code: "bad_request", param });
  });

  const accepted: Record<string, unknown>[] = [
    {},
    { max_tokens: 0 },
    { session_id: "s".repeat(256) },
    { temperature: 1, top_p: null, stream: null, thinking: null, tools: null },
    {
      messages: [
        { role: "user", content: [] },
        { role: "assistant" },
        { role: "system", content: "s" },
      ],
    },
    {
      x_foo: { deep: [1] },
      tools: [{ type: "web_search_20250305" }],
      thinking: { type: "later_kind" },
    },
  ];
  test.each(accepted)("accepts %j", (changes) => {
    expect(refusalOf({ ...valid, ...changes })).toBeUndefined();
  });

  test("does not require max_tokens for a token count", () => {
    const { max_tokens: _, ...counted } = valid;
    expect(refusalOf(counted, checkCountRequest)).toBeUndefined();
    expect(refusalOf({ ...counted, messages: [] }, checkCountRequest)).toMatchObject({
      param: "messages",
    });
  });
});

test("the published schema accepts valid requests", () => {
  expect(messagesRequestSchema.safeParse(valid).success).toBe(true);
  expect(messagesRequestSchema.safeParse({ ...valid, max_tokens: undefined }).success).toBe(false);
  expect(messagesRequestSchema.parse({ ...valid, x_foo: 1 })).toHaveProperty("x_foo", 1);
});
