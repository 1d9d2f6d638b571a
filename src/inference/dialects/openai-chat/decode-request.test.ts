import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { decodeRequest } from "./decode-request.ts";
import { chatRequestSchema } from "./request-schema.ts";

const valid = { model: "acme/large", messages: [{ role: "user", content: "Hi" }] };
const decode = (change: object): CanonicalRequest => decodeRequest({ ...valid, ...change });
const decodeMessage = (message: object): unknown => decode({ messages: [message] }).messages[0];

function refusedParam(body: unknown): string | undefined {
  try {
    decodeRequest(body);
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== "bad_request") throw error;
    return error.param;
  }
}

describe("an invalid field is reported:", () => {
  const user = (part: object): object => ({
    messages: [...valid.messages, { role: "user", content: [{ type: "text", text: "a" }, part] }],
  });
  const turn = (message: object): object => ({ messages: [...valid.messages, message] });
  const rows: [param: string, change: object][] = [
    ["messages[1].role", turn({ role: "bot", content: "" })],
    ["messages[1].content[1].type", user({ text: "b" })],
    ["messages[1].content[1].text", user({ type: "text" })],
    ["messages[1].content[1].text", user({ type: "text", text: 5 })],
    ["messages[1].content[1].image_url", user({ type: "image_url" })],
    ["messages[1].content[1].image_url.url", user({ type: "image_url", image_url: {} })],
    ["messages[1].content[1].input_audio", user({ type: "input_audio" })],
    [
      "messages[1].content[1].input_audio.format",
      user({ type: "input_audio", input_audio: { data: "AA==" } }),
    ],
    ["messages[1].content[1].file", user({ type: "file", file: { filename: "a.pdf" } })],
    [
      "messages[1].content[0].type",
      turn({ role: "system", content: [{ type: "image_url", image_url: { url: "x" } }] }),
    ],
    [
      "messages[1].content[0]",
      turn({
        role: "tool",
        tool_call_id: "a",
        content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }],
      }),
    ],
    ["messages[1].tool_call_id", turn({ role: "tool", content: "x" })],
    ["messages[1].name", turn({ role: "function", content: "x" })],
    ["messages[1].tool_calls", turn({ role: "assistant", tool_calls: {} })],
    [
      "messages[1].tool_calls[0].id",
      turn({ role: "assistant", tool_calls: [{ function: { name: "f", arguments: "{}" } }] }),
    ],
    ["messages[1].tool_calls[0].function", turn({ role: "assistant", tool_calls: [{ id: "a" }] })],
    [
      "messages[1].tool_calls[0].function.name",
      turn({ role: "assistant", tool_calls: [{ id: "a", function: {} }] }),
    ],
    ["messages[1].audio.id", turn({ role: "assistant", audio: {} })],
    ["tools[0].function", { tools: [{ type: "function" }] }],
    ["tools[0].function.name", { tools: [{ type: "function", function: {} }] }],
    [
      "tools[0].function.parameters",
      { tools: [{ type: "function", function: { name: "f", parameters: "x" } }] },
    ],
    [
      "tools[0].custom.format.grammar",
      { tools: [{ type: "custom", custom: { name: "f", format: { type: "grammar" } } }] },
    ],
    ["tool_choice", { tool_choice: "maybe" }],
    ["tool_choice.function", { tool_choice: { type: "function" } }],
    [
      "tool_choice.allowed_tools.mode",
      { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "x", tools: [] } } },
    ],
    ["response_format.json_schema", { response_format: { type: "json_schema", json_schema: "x" } }],
    ["reasoning.effort", { reasoning: { effort: 1 } }],
    ["modalities[1]", { modalities: ["text", 1] }],
    ["functions[0].name", { functions: [{}] }],
    ["function_call", { functions: [{ name: "f" }], function_call: "x" }],
  ];
  test.each(rows)("%s", (param, change) => {
    expect(refusedParam({ ...valid, ...change })).toBe(param);
  });

  test("body, if it is not an object", () => {
    for (const body of [null, [], "x", 1]) expect(refusedParam(body)).toBe("body");
  });
});

describe("equivalent forms are decoded alike:", () => {
  test("content", () => {
    expect(decodeMessage({ role: "user", content: "" })).toEqual({ role: "user", parts: [] });
    expect(decodeMessage({ role: "user", content: "a" })).toEqual({
      role: "user",
      parts: [{ type: "text", text: "a" }],
    });
    for (const content of [null, "", [], undefined]) {
      expect(
        decodeMessage({ role: "assistant", ...(content !== undefined && { content }) }),
      ).toEqual({ role: "assistant", parts: [] });
    }
  });

  test("stop", () => {
    expect(decode({ stop: "X" }).stop).toEqual(["X"]);
    expect(decode({ stop: ["X", "Y"] }).stop).toEqual(["X", "Y"]);
    expect(decode({ stop: [] }).stop).toBeUndefined();
    expect(decode({ stop: null }).stop).toBeUndefined();
  });

  test("the output limit", () => {
    expect(decode({ max_tokens: 5 }).maxOutputTokens).toBe(5);
    expect(decode({ max_tokens: 5, max_completion_tokens: 6 }).maxOutputTokens).toBe(6);
    expect(decode({ max_tokens: null }).maxOutputTokens).toBeUndefined();
  });

  test("the reasoning effort", () => {
    expect(decode({ reasoning: { effort: "low", exclude: true } }).reasoning).toEqual({
      effort: "low",
      exclude: true,
    });
    expect(decode({ reasoning_effort: "none", reasoning: { effort: "low" } }).reasoning).toEqual({
      effort: "none",
    });
    expect(decode({ reasoning: {} }).reasoning).toBeUndefined();
    expect(decode({ include_reasoning: false }).reasoning).toEqual({ exclude: true });
    expect(decode({ include_reasoning: true }).reasoning).toBeUndefined();
  });

  test("arguments", () => {
    const calls = ["", null, " ", { a: 1 }, '{"a":1}'].map((args, index) => ({
      id: `c${index}`,
      type: "function",
      function: { name: "f", arguments: args },
    }));
    const message = decode({ messages: [{ role: "assistant", tool_calls: calls }] }).messages[0];
    expect(message?.parts.map((part) => (part.type === "tool-call" ? part.arguments : ""))).toEqual(
      ["{}", "{}", "{}", '{"a":1}', '{"a":1}'],
    );
  });

  test("inline data", () => {
    const source = (url: string): unknown => {
      const message = decode({
        messages: [{ role: "user", content: [{ type: "image_url", image_url: url }] }],
      }).messages[0];
      const part = message?.parts[0];
      return part?.type === "image" ? part.source : undefined;
    };
    expect(source("data:image/JPG;charset=utf-8;base64,/9j/")).toEqual({
      type: "base64",
      mediaType: "image/jpeg",
      data: "/9j/",
    });
    expect(source("data:text/plain,hello")).toEqual({ type: "url", url: "data:text/plain,hello" });
    expect(source("https://example.com/a.png")).toEqual({
      type: "url",
      url: "https://example.com/a.png",
    });
  });

  test("files", () => {
    const source = (file: object): unknown => {
      const part = decode({ messages: [{ role: "user", content: [{ type: "file", file }] }] })
        .messages[0]?.parts[0];
      return part?.type === "document" ? part.source : undefined;
    };
    expect(source({ file_data: "JVBE" })).toEqual({
      type: "base64",
      mediaType: "application/pdf",
      data: "JVBE",
    });
    expect(source({ file_data: "https://example.com/a.pdf" })).toEqual({
      type: "url",
      url: "https://example.com/a.pdf",
    });
  });
});

describe("reasoning in the history", () => {
  const parts = (message: object): unknown =>
    decode({ messages: [{ role: "assistant", content: "a", ...message }] }).messages[0]?.parts;
  const text = { type: "text", text: "a" };

  test("is read once, from any of its fields", () => {
    expect(parts({ reasoning_content: "t" })).toEqual([
      { type: "reasoning", text: "t", field: "reasoning_content" },
      text,
    ]);
    expect(parts({ reasoning: "t" })).toEqual([
      { type: "reasoning", text: "t", field: "reasoning" },
      text,
    ]);
    expect(
      parts({
        reasoning: "t",
        reasoning_details: [{ type: "reasoning.text", text: "t", signature: "s", index: 0 }],
      }),
    ).toEqual([{ type: "reasoning", text: "t", signature: "s", field: "reasoning_details" }, text]);
    expect(
      parts({ content: [{ type: "thinking", thinking: [{ type: "text", text: "t" }] }, text] }),
    ).toEqual([{ type: "reasoning", text: "t", field: "content" }, text]);
    expect(parts({ reasoning_content: "" })).toEqual([text]);
  });

  test("merges pieces of the same index, and keeps text with an encrypted piece", () => {
    expect(
      parts({
        reasoning_details: [
          { type: "reasoning.text", text: "a", index: 0 },
          { type: "reasoning.text", text: "b", index: 0 },
          { type: "reasoning.text", signature: "s", index: 0 },
          { type: "reasoning.encrypted", data: "e", index: 1 },
        ],
      }),
    ).toEqual([
      { type: "reasoning", text: "ab", signature: "s", field: "reasoning_details" },
      { type: "reasoning", encrypted: "e", field: "reasoning_details" },
      text,
    ]);
    expect(
      parts({ reasoning: "t", reasoning_details: [{ type: "reasoning.encrypted", data: "e" }] }),
    ).toEqual([{ type: "reasoning", text: "t", encrypted: "e", field: "reasoning_details" }, text]);
  });

  test("has the provider of a signature with the gateway's mark", () => {
    expect(
      parts({
        reasoning_details: [
          { type: "reasoning.text", text: "t", signature: "gw1:acme:c2ln:x", index: 0 },
        ],
      }),
    ).toMatchObject([{ signature: "c2ln:x", provenance: { providerId: "acme" } }, text]);
    expect(
      parts({
        tool_calls: [
          {
            id: "a",
            function: { name: "f", arguments: "{}" },
            extra_content: { google: { thought_signature: "gw1:g:zz" } },
          },
        ],
      }),
    ).toMatchObject([text, { signature: "zz", provenance: { providerId: "g" } }]);
  });
});

test("legacy functions become tools, and their results answer the latest call of that name", () => {
  const request = decode({
    functions: [{ name: "f", parameters: { type: "object", properties: {} } }],
    function_call: { name: "f" },
    messages: [
      { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
      { role: "function", name: "f", content: "1" },
      { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
      { role: "function", name: "f", content: "2" },
    ],
  });
  expect(request.legacyFunctions).toBe(true);
  expect(request.tools).toEqual([
    { type: "function", name: "f", parameters: { type: "object", properties: {} } },
  ]);
  expect(request.toolChoice).toEqual({ type: "tool", kind: "function", name: "f" });
  expect(
    request.messages.map((message) =>
      message.role === "tool" ? message.toolCallId : message.role,
    ),
  ).toEqual(["assistant", "call_function_1", "assistant", "call_function_2"]);
});

test("unknown fields are kept on the request, messages, parts, tools and calls", () => {
  const request = decode({
    x_foo: { deep: [{ x: 1 }] },
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "a", x_part: 1 },
          { type: "video_url", video_url: { url: "u" } },
        ],
        x_message: 2,
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "a", type: "function", function: { name: "f", arguments: "{}" }, x_call: 3 },
        ],
      },
    ],
    tools: [{ type: "function", function: { name: "f" }, x_tool: 4 }, { type: "web_search" }],
    response_format: { type: "grammar", grammar: "x" },
  });
  const chat = (fields: object): object => ({ dialect: "openai-chat", fields });
  expect(request.extensions).toEqual(
    chat({
      x_foo: { deep: [{ x: 1 }] },
      response_format: { type: "grammar", grammar: "x" },
    }) as never,
  );
  expect(request.messages).toMatchObject([
    {
      extensions: chat({ x_message: 2 }),
      parts: [
        { extensions: chat({ x_part: 1 }) },
        {
          type: "opaque",
          dialect: "openai-chat",
          value: { type: "video_url", video_url: { url: "u" } },
        },
      ],
    },
    { parts: [{ extensions: chat({ x_call: 3 }) }] },
  ]);
  expect(request.tools).toMatchObject([
    { extensions: chat({ x_tool: 4 }) },
    { type: "hosted", value: { type: "web_search" } },
  ]);
});

test("fields for the gateway are separate", () => {
  const request = decode({
    models: ["b"],
    provider: { sort: "price" },
    session_id: "s",
    trace: { trace_id: "t" },
    min_context: 5,
    require_params: ["tools"],
  });
  expect(request.gateway).toEqual({
    models: ["b"],
    provider: { sort: "price" },
    sessionId: "s",
    trace: { trace_id: "t" },
    minContext: 5,
    requireParams: ["tools"],
  });
  expect(request.extensions).toBeUndefined();
});

test("the published schema accepts what the decoder accepts", () => {
  const bodies = [
    valid,
    { ...valid, stop: "x", tools: [{ type: "web_search" }], x_foo: 1, temperature: null },
    {
      ...valid,
      messages: [
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", type: "custom", custom: { name: "f", input: "x" } }],
        },
      ],
    },
    { ...valid, messages: [{ role: "user", content: [{ type: "video_url", video_url: {} }] }] },
  ];
  for (const body of bodies) {
    expect(chatRequestSchema.safeParse(body).success).toBe(true);
    expect(refusedParam(body)).toBeUndefined();
  }
});
