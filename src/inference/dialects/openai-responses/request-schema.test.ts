import { describe, expect, test } from "bun:test";
import { checkResponsesRequest } from "./request-schema.ts";

const check = (fields: Record<string, unknown>) => () =>
  checkResponsesRequest({ model: "m", input: "Hi", ...fields });

describe("checkResponsesRequest", () => {
  const refused: [Record<string, unknown>, string][] = [
    [{ model: undefined }, "model"],
    [{ model: "" }, "model"],
    [{ input: undefined }, "input"],
    [{ input: {} }, "input"],
    [{ input: ["a"] }, "input[0]"],
    [{ input: [{ type: 5 }] }, "input[0].type"],
    [{ input: [{ content: "a" }] }, "input[0].role"],
    [{ input: [{ id: "msg_1", content: "a" }] }, "input[0].role"],
    [{ input: [{ id: "msg_1", role: "bot", content: "a" }] }, "input[0].role"],
    [{ input: [{ type: "programme" }] }, "input[0].type"],
    [{ temperature: 2.1 }, "temperature"],
    [{ top_p: -1 }, "top_p"],
    [{ max_output_tokens: 0 }, "max_output_tokens"],
    [{ top_logprobs: 21 }, "top_logprobs"],
    [{ tools: {} }, "tools"],
    [{ tools: [{ name: "f" }] }, "tools[0]"],
    [{ tool_choice: 5 }, "tool_choice"],
    [{ tools: [{ type: "function" }] }, "tools[0].name"],
    [{ tools: [{ type: "function", function: { name: "f" } }] }, "tools[0].name"],
    [{ tools: [{ type: "custom", name: "" }] }, "tools[0].name"],
    [{ tools: [{ type: "function", name: "f", parameters: [] }] }, "tools[0].parameters"],
    [{ tool_choice: "sometimes" }, "tool_choice"],
    [{ tool_choice: {} }, "tool_choice.type"],
    [{ reasoning: { effort: 5 } }, "reasoning.effort"],
    [{ reasoning: { enabled: "no" } }, "reasoning.enabled"],
    [{ reasoning: { max_tokens: "x" } }, "reasoning.max_tokens"],
    [{ modalities: "text" }, "modalities"],
    [{ modalities: [5] }, "modalities[0]"],
    [{ stream: "yes" }, "stream"],
    [{ store: "no" }, "store"],
    [{ reasoning: "high" }, "reasoning"],
    [{ text: [] }, "text"],
    [{ session_id: "x".repeat(257) }, "session_id"],
    [{ models: [""] }, "models[0]"],
    [{ provider: [] }, "provider"],
    [{ background: true, store: false }, "background"],
    [{ conversation: "conv_1" }, "conversation"],
    [{ previous_response_id: 5 }, "previous_response_id"],
  ];
  test.each(refused)("refuses %j with the name of %s", (fields, param) => {
    expect(check(fields)).toThrow(expect.objectContaining({ code: "bad_request", param }));
  });

  const taken: Record<string, unknown>[] = [
    {},
    { input: [], instructions: "a" },
    { input: [{ role: "user", content: "a" }, { type: "unheard_of" }] },
    { input: [{ id: "msg_1" }, { id: "msg_2", type: null }] },
    { input: [{ type: "program", id: "p_1", call_id: "c", code: "1" }] },
    { input: [{ type: "function_call_output", output: "a" }] },
    { session_id: "x".repeat(256) },
    {
      tools: [{ type: "function", name: "f" }, { type: "web_search" }],
      tool_choice: { type: "web_search" },
      modalities: ["text"],
    },
    { background: true },
    { background: true, store: true },
    { temperature: null, tools: null, conversation: null, x_foo: 1 },
  ];
  test.each(taken)("accepts %j", (fields) => {
    expect(check(fields)).not.toThrow();
  });
});
