import { describe, expect, test } from "bun:test";
import { checkChatRequest } from "../dialects/openai-chat/request-schema.ts";
import { reshapeChat } from "./responses-shaped-chat.ts";

/** A turn of Cursor with a tool, as users of other gateways reported it (2026). */
const cursor = {
  model: "openai/gpt-5.5",
  input: [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "input_text", text: "List the files." }] },
    { type: "function_call", call_id: "c1", name: "list", arguments: "{}" },
    { type: "function_call_output", call_id: "c1", output: "a.ts" },
  ],
  tools: [
    { type: "function", name: "list", description: "Lists.", parameters: { type: "object" } },
    { type: "function", function: { name: "read", parameters: { type: "object" } } },
  ],
  tool_choice: "auto",
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  truncation: "auto",
  max_output_tokens: 500,
  stream: true,
  stop: ["END"],
  provider: { order: ["acme"] },
};

describe("reshapeChat", () => {
  test("returns the chat request that a body of Responses means", () => {
    const { body, losses } = reshapeChat(cursor) ?? { body: {}, losses: [] };
    expect(body).toEqual({
      model: "openai/gpt-5.5",
      stream: true,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "List the files." },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "list", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c1", content: "a.ts" },
      ],
      tools: [
        {
          type: "function",
          function: {
            name: "list",
            description: "Lists.",
            parameters: { type: "object", properties: {} },
          },
        },
        {
          type: "function",
          function: { name: "read", parameters: { type: "object", properties: {} } },
        },
      ],
      tool_choice: "auto",
      reasoning_effort: "low",
      max_completion_tokens: 500,
      stop: ["END"],
      provider: { order: ["acme"] },
    });
    expect(losses.map(({ field }) => field)).toEqual(["reasoning.summary", "truncation"]);
    expect(() => checkChatRequest(body)).not.toThrow();
  });

  test("names the field of the client that is not valid", () => {
    const broken = { ...cursor, input: [{ content: "a" }] };
    expect(() => reshapeChat(broken)).toThrow(expect.objectContaining({ param: "input[0].role" }));
  });

  test.each([
    { model: "m", messages: [{ role: "user", content: "a" }] },
    { model: "m", messages: [{ role: "user", content: "a" }], input: "b" },
    { model: "m" },
    { input: "a" },
  ])("leaves %j as it is", (body) => {
    expect(reshapeChat(body)).toBeUndefined();
  });
});
