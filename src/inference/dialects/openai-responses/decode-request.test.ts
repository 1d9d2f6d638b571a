import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { Message } from "../../canonical/message.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { decodeRequest } from "./decode-request.ts";

const decode = (fields: JsonObject): CanonicalRequest =>
  decodeRequest({ model: "m", input: "Hi", ...fields });
const messages = (...input: JsonObject[]): readonly Message[] => decode({ input }).messages;
const text = (value: string): { type: "text"; text: string } => ({ type: "text", text: value });

describe("input", () => {
  test("as text is a user message after the instructions", () => {
    expect(decode({ instructions: "Be brief." }).messages).toEqual([
      { role: "system", parts: [text("Be brief.")] },
      { role: "user", parts: [text("Hi")] },
    ]);
  });

  test("needs no type for simple messages", () => {
    expect(
      messages(
        { role: "user", content: "a" },
        { role: "developer", content: [{ type: "input_text", text: "b" }] },
      ),
    ).toEqual([
      { role: "user", parts: [text("a")] },
      { role: "system", developer: true, parts: [text("b")] },
    ]);
  });

  test("merges consecutive items of the model into one turn", () => {
    expect(
      messages(
        {
          type: "reasoning",
          id: "rs_1",
          summary: [{ type: "summary_text", text: "hm" }],
          content: [],
          encrypted_content: "gw1:acme:e==",
        },
        {
          type: "message",
          role: "assistant",
          id: "msg_1",
          status: "completed",
          phase: "commentary",
          content: [{ type: "output_text", text: "Looking.", annotations: [] }],
        },
        {
          type: "function_call",
          id: "fc_1",
          call_id: "a",
          name: "f",
          arguments: "",
          status: "completed",
        },
        {
          type: "custom_tool_call",
          id: "ctc_1",
          call_id: "b",
          name: "sh",
          input: "ls",
          namespace: "os",
        },
        {
          type: "message",
          role: "assistant",
          content: [
            { type: "output_text", text: "Two." },
            { type: "refusal", refusal: "No." },
          ],
        },
        { type: "function_call_output", call_id: "a", output: "1" },
        {
          type: "custom_tool_call_output",
          call_id: "b",
          output: [
            { type: "input_text", text: "2" },
            { type: "input_image", image_url: "data:image/png;base64,AAAA" },
          ],
        },
      ),
    ).toEqual([
      {
        role: "assistant",
        parts: [
          {
            type: "reasoning",
            id: "rs_1",
            summary: ["hm"],
            encrypted: "e==",
            provenance: { providerId: "acme" },
          },
          { ...text("Looking."), phase: "commentary" },
          {
            type: "tool-call",
            kind: "function",
            id: "a",
            name: "f",
            arguments: "{}",
            itemId: "fc_1",
          },
          {
            type: "tool-call",
            kind: "custom",
            id: "b",
            name: "sh",
            arguments: "ls",
            namespace: "os",
            itemId: "ctc_1",
          },
          { ...text("Two."), startsMessage: true },
          { type: "refusal", refusal: "No." },
        ],
      },
      { role: "tool", toolCallId: "a", parts: [text("1")] },
      {
        role: "tool",
        toolCallId: "b",
        kind: "custom",
        parts: [
          text("2"),
          { type: "image", source: { type: "base64", mediaType: "image/png", data: "AAAA" } },
        ],
      },
    ]);
  });

  test("keeps hosted and unknown items out of messages", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed" };
    const unknown = { type: "configuration_update", role: "developer", value: 1 };
    expect(messages(search, unknown, { role: "user", content: "a" })).toEqual([
      {
        role: "assistant",
        parts: [
          { type: "opaque", dialect: "openai-responses", value: search },
          { type: "opaque", dialect: "openai-responses", value: unknown },
        ],
      },
      { role: "user", parts: [text("a")] },
    ]);
  });

  test("adds the tools of its items to the others", () => {
    const { tools, messages: said } = decode({
      tools: [{ type: "function", name: "a" }],
      input: [
        { type: "additional_tools", role: "developer", tools: [{ type: "custom", name: "b" }] },
        {
          type: "tool_search_output",
          call_id: "s",
          tools: [
            {
              type: "namespace",
              name: "ns",
              tools: [{ type: "function", name: "c", defer_loading: true }],
            },
          ],
        },
        { role: "user", content: "Hi" },
      ],
    });
    expect(tools).toEqual([
      { type: "function", name: "a" },
      { type: "custom", name: "b" },
      { type: "function", name: "c", namespace: "ns", deferred: true },
    ]);
    expect(said.map((message) => message.role)).toEqual(["assistant", "user"]);
  });

  test("restores packed reasoning with its signature", () => {
    const packed = Buffer.from(
      JSON.stringify({ text: "first", signature: "s1", format: "anthropic-claude-v1" }),
    ).toString("base64url");
    expect(
      messages({
        type: "reasoning",
        id: "rs_x_0",
        summary: [{ type: "summary_text", text: "shortened" }],
        encrypted_content: `gw1:anthropic:th1.${packed}`,
      }),
    ).toEqual([
      {
        role: "assistant",
        parts: [
          {
            type: "reasoning",
            id: "rs_x_0",
            text: "first",
            signature: "s1",
            format: "anthropic-claude-v1",
            provenance: {
              providerId: "anthropic",
            },
          },
        ],
      },
    ]);
  });
});

describe("tools", () => {
  test("of all kinds are decoded", () => {
    const { tools } = decode({
      tools: [
        { type: "function", name: "f", parameters: null, strict: true, x_foo: 1 },
        {
          type: "custom",
          name: "patch",
          format: { type: "grammar", syntax: "lark", definition: "start: x" },
        },
        {
          type: "namespace",
          name: "ns",
          description: "Group.",
          tools: [
            { type: "function", name: "g" },
            { type: "function", name: "h" },
          ],
        },
        { type: "tool_search", execution: "client" },
        { type: "web_search" },
      ],
    });
    expect(tools).toEqual([
      {
        type: "function",
        name: "f",
        strict: true,
        extensions: { dialect: "openai-responses", fields: { x_foo: 1 } },
      },
      {
        type: "custom",
        name: "patch",
        format: { type: "grammar", syntax: "lark", definition: "start: x" },
      },
      {
        type: "function",
        name: "g",
        namespace: "ns",
        extensions: { dialect: "openai-responses", fields: { namespace_description: "Group." } },
      },
      { type: "function", name: "h", namespace: "ns" },
      {
        type: "hosted",
        dialect: "openai-responses",
        value: { type: "tool_search", execution: "client" },
      },
      { type: "hosted", dialect: "openai-responses", value: { type: "web_search" } },
    ]);
  });

  const choices: [JsonObject | string, CanonicalRequest["toolChoice"]][] = [
    ["required", { type: "required" }],
    [
      { type: "function", name: "f" },
      { type: "tool", kind: "function", name: "f" },
    ],
    [
      { type: "function", function: { name: "f" } },
      { type: "tool", kind: "function", name: "f" },
    ],
    [
      { type: "custom", name: "p" },
      { type: "tool", kind: "custom", name: "p" },
    ],
    [
      {
        type: "allowed_tools",
        mode: "required",
        tools: [
          { type: "function", name: "f" },
          { type: "mcp", server_label: "s" },
        ],
      },
      {
        type: "allowed",
        mode: "required",
        tools: [
          { type: "function", name: "f" },
          { type: "hosted", value: { type: "mcp", server_label: "s" } },
        ],
      },
    ],
    [
      { type: "web_search" },
      { type: "hosted", dialect: "openai-responses", value: { type: "web_search" } },
    ],
  ];
  test.each(choices)("have the choice %j decoded", (wire, choice) => {
    expect(decode({ tool_choice: wire }).toolChoice).toEqual(choice);
  });
});

test("all other fields are decoded", () => {
  expect(
    decode({
      stream: true,
      stream_options: { include_obfuscation: false },
      max_output_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 2,
      include: [
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "web_search_call.results",
      ],
      reasoning: {
        effort: "high",
        summary: "auto",
        enabled: true,
        max_tokens: 9,
        exclude: false,
        context: "auto",
      },
      text: {
        format: { type: "json_schema", name: "n", schema: {}, strict: true },
        verbosity: "low",
      },
      modalities: ["text"],
      metadata: { a: "b" },
      user: "u",
      safety_identifier: "s",
      service_tier: "flex",
      store: false,
      background: false,
      prompt_cache_key: "k",
      prompt_cache_retention: "24h",
      truncation: "auto",
      max_tool_calls: 3,
      provider: { only: ["acme"] },
      models: ["a"],
      session_id: "x",
      trace: { trace_id: "t" },
      previous_response_id: "resp_1",
    }),
  ).toEqual({
    dialect: "openai-responses",
    model: "m",
    messages: [{ role: "user", parts: [text("Hi")] }],
    stream: true,
    streamOptions: { includeObfuscation: false },
    maxOutputTokens: 100,
    sampling: {
      temperature: 0.5,
      topP: 0.9,
    },
    logProbabilities: { top: 2 },
    reasoning: {
      effort: "high",
      summary: "auto",
      enabled: true,
      budgetTokens: 9,
      exclude: false,
      extensions: { dialect: "openai-responses", fields: { context: "auto" } },
    },
    output: { type: "json-schema", name: "n", schema: {}, strict: true },
    verbosity: "low",
    modalities: ["text"],
    metadata: { a: "b" },
    endUserId: "u",
    safetyIdentifier: "s",
    serviceTier: "flex",
    store: false,
    promptCaching: { key: "k", retention: "24h" },
    gateway: {
      provider: { only: ["acme"] },
      models: ["a"],
      sessionId: "x",
      trace: { trace_id: "t" },
    },
    extensions: {
      dialect: "openai-responses",
      fields: { truncation: "auto", max_tool_calls: 3, include: ["web_search_call.results"] },
    },
  });
});

describe("an invalid field is reported:", () => {
  const rows: [JsonObject, string][] = [
    [{ input: [{ type: "item_reference", id: "msg_1" }] }, "input[0]"],
    [{ input: [{ role: "robot", content: "" }] }, "input[0].role"],
    [{ input: [{ role: "user", content: 5 }] }, "input[0].content"],
    [
      { input: [{ role: "user", content: [{ type: "input_image" }] }] },
      "input[0].content[0].image_url",
    ],
    [{ input: [{ role: "user", content: [{ type: "input_file" }] }] }, "input[0].content[0]"],
    [{ input: [{ type: "function_call", name: "f" }] }, "input[0].call_id"],
    [
      {
        input: [
          {
            type: "function_call_output",
            call_id: "a",
            output: [{ type: "input_audio", input_audio: { data: "a", format: "wav" } }],
          },
        ],
      },
      "input[0].output[0].type",
    ],
    [{ tools: [{ type: "function" }] }, "tools[0].name"],
    [{ tool_choice: "sometimes" }, "tool_choice"],
    [{ tool_choice: { type: "allowed_tools" } }, "tool_choice.tools"],
  ];
  test.each(rows)("%j: %s", (fields, param) => {
    expect(() => decode(fields)).toThrow(expect.objectContaining({ code: "bad_request", param }));
  });
});
