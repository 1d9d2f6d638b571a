import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { decodeRequest } from "./decode-request.ts";
import { encodeRequest } from "./encode-request.ts";

const base = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] };
const decode = (changes: Record<string, unknown>): CanonicalRequest =>
  decodeRequest({ ...base, ...changes });
const own = (fields: object): object => ({ dialect: "anthropic-messages", fields });

const paramOf = (body: unknown): string | undefined => {
  try {
    decodeRequest(body);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "bad_request") return error.param;
    throw error;
  }
  return undefined;
};

describe("a request of Claude Code", () => {
  const tool = {
    name: "Bash",
    input_schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {},
    },
    defer_loading: true,
  };
  const request = decode({
    max_tokens: 128_000,
    system: [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.329" },
      { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral", ttl: "1h" } },
    ],
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi" }] },
      { role: "system", content: "Plan mode is on." },
    ],
    thinking: { type: "adaptive", display: "updates" },
    output_config: { effort: "high" },
    context_management: { edits: [{ type: "clear_thinking_20251015" }] },
    metadata: { user_id: '{"device_id":"d"}' },
    tools: [tool, { type: "web_search_20250305", name: "web_search", max_uses: 5 }],
    stream: true,
  });

  test("is decoded in all of its parts", () => {
    expect(request).toEqual({
      dialect: "anthropic-messages",
      model: "m",
      stream: true,
      maxOutputTokens: 128_000,
      endUserId: '{"device_id":"d"}',
      messages: [
        {
          role: "system",
          parts: [
            { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.329" },
            { type: "text", text: "You are an agent.", cache: { ttl: "1h" } },
          ],
        },
        { role: "user", parts: [{ type: "text", text: "Hi" }] },
        { role: "system", parts: [{ type: "text", text: "Plan mode is on." }] },
      ],
      tools: [
        { type: "function", name: "Bash", parameters: tool.input_schema, deferred: true },
        {
          type: "hosted",
          dialect: "anthropic-messages",
          value: { type: "web_search_20250305", name: "web_search", max_uses: 5 },
        },
      ],
      reasoning: { effort: "high", mode: "adaptive", display: "updates" },
      extensions: {
        dialect: "anthropic-messages",
        fields: { context_management: { edits: [{ type: "clear_thinking_20251015" }] } },
      },
    });
  });
});

describe("thinking", () => {
  const rows: [wire: object, reasoning: object | undefined][] = [
    [{}, undefined],
    [
      { thinking: { type: "enabled", budget_tokens: 2_000, display: "summarized" } },
      { enabled: true, budgetTokens: 2_000, display: "summarized" },
    ],
    [{ thinking: { type: "disabled" } }, { enabled: false }],
    [{ thinking: { type: "between_tools" } }, { mode: "between_tools" }],
    [{ thinking: { type: "adaptive", display: null } }, { mode: "adaptive" }],
    [{ output_config: { effort: "max" } }, { effort: "max" }],
    [
      { thinking: { type: "later_kind", depth: 3 } },
      { mode: "later_kind", extensions: own({ depth: 3 }) },
    ],
  ];
  test.each(rows)("is decoded from %j", (wire, reasoning) => {
    expect(decode(wire as Record<string, unknown>).reasoning).toEqual(reasoning as never);
  });
});

describe("messages", () => {
  const messagesOf = (...messages: object[]): CanonicalRequest["messages"] =>
    decode({ messages }).messages;

  test("put tool results before the user's text (ogx#6367)", () => {
    const result = (id: string): object => ({
      type: "tool_result",
      tool_use_id: id,
      content: `r${id}`,
    });
    expect(
      messagesOf({
        role: "user",
        content: [result("a"), { type: "text", text: "and" }, result("b")],
      }),
    ).toEqual([
      { role: "tool", toolCallId: "a", parts: [{ type: "text", text: "ra" }] },
      { role: "tool", toolCallId: "b", parts: [{ type: "text", text: "rb" }] },
      { role: "user", parts: [{ type: "text", text: "and" }] },
    ]);
  });

  test("accept tool results with images, documents, errors or no content", () => {
    expect(
      messagesOf({
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "a",
            is_error: true,
            cache_control: { type: "ephemeral" },
            content: [
              {
                type: "image",
                source: { type: "base64", media_type: "image/JPG; q=1", data: "/9j/" },
              },
              { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
              { type: "tool_reference", tool_name: "f" },
            ],
          },
          { type: "tool_result", tool_use_id: "b" },
        ],
      }),
    ).toEqual([
      {
        role: "tool",
        toolCallId: "a",
        isError: true,
        cache: {},
        parts: [
          { type: "image", source: { type: "base64", mediaType: "image/jpeg", data: "/9j/" } },
          { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
          {
            type: "opaque",
            dialect: "anthropic-messages",
            value: { type: "tool_reference", tool_name: "f" },
          },
        ],
      },
      { role: "tool", toolCallId: "b", parts: [] },
    ]);
  });

  test("decode documents of every source", () => {
    const document = (source: object, rest: object = {}): object => ({
      type: "document",
      source,
      ...rest,
    });
    const [message] = messagesOf({
      role: "user",
      content: [
        document(
          { type: "base64", media_type: "application/pdf", data: "JVBE" },
          { title: "a", context: "c", citations: { enabled: true } },
        ),
        document({ type: "text", media_type: "text/plain", data: "words" }),
        document({ type: "content", content: "words" }),
        document({ type: "content", content: [{ type: "text", text: "w" }] }),
        document({ type: "file", file_id: "file_1" }),
        document({ type: "later_kind" }),
        {
          type: "search_result",
          source: "https://example.com",
          title: "S",
          content: [{ type: "text", text: "w" }],
          citations: { enabled: false },
        },
      ],
    });
    expect(message?.parts as readonly unknown[]).toEqual([
      {
        type: "document",
        source: { type: "base64", mediaType: "application/pdf", data: "JVBE" },
        title: "a",
        context: "c",
        citations: true,
      },
      { type: "document", source: { type: "text", text: "words" } },
      { type: "document", source: { type: "parts", parts: [{ type: "text", text: "words" }] } },
      { type: "document", source: { type: "parts", parts: [{ type: "text", text: "w" }] } },
      { type: "document", source: { type: "file", fileId: "file_1" } },
      {
        type: "opaque",
        dialect: "anthropic-messages",
        value: { type: "document", source: { type: "later_kind" } },
      },
      {
        type: "document",
        source: { type: "parts", parts: [{ type: "text", text: "w" }] },
        title: "S",
        citations: false,
        extensions: own({ type: "search_result", source: "https://example.com" }),
      },
    ]);
  });

  test("decode assistant turns with signatures, calls without input and server tools", () => {
    const [, message] = messagesOf(
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t", signature: "gw1:acme:s" },
          { type: "thinking", thinking: "unsealed", signature: "" },
          { type: "redacted_thinking", data: "e" },
          { type: "tool_use", id: "a", name: "f", caller: { type: "direct" }, toolset_name: null },
          {
            type: "tool_use",
            id: "b",
            name: "f",
            input: { x: 1 },
            caller: { type: "code_execution_20260120", tool_id: "t" },
          },
          { type: "server_tool_use", id: "s", name: "web_search", input: {} },
        ],
      },
    );
    expect(message?.parts as readonly unknown[]).toEqual([
      { type: "reasoning", text: "t", signature: "s", provenance: { providerId: "acme" } },
      { type: "reasoning", text: "unsealed" },
      { type: "reasoning", encrypted: "e" },
      { type: "tool-call", kind: "function", id: "a", name: "f", arguments: "{}" },
      {
        type: "tool-call",
        kind: "function",
        id: "b",
        name: "f",
        arguments: '{"x":1}',
        extensions: own({ caller: { type: "code_execution_20260120", tool_id: "t" } }),
      },
      {
        type: "opaque",
        dialect: "anthropic-messages",
        value: { type: "server_tool_use", id: "s", name: "web_search", input: {} },
      },
    ]);
  });

  test("accept empty and missing assistant content", () => {
    expect(
      messagesOf(
        { role: "user", content: "Hi" },
        { role: "assistant" },
        { role: "assistant", content: "" },
        { role: "assistant", content: null },
      ).slice(1),
    ).toEqual([
      { role: "assistant", parts: [] },
      { role: "assistant", parts: [] },
      { role: "assistant", parts: [] },
    ]);
  });

  test("keep tool changes within a conversation beside the instructions", () => {
    const change = { type: "tool_addition", tool: { type: "tool_reference", name: "f" } };
    expect(
      messagesOf(
        { role: "user", content: "Hi" },
        { role: "system", content: [{ type: "text", text: "New." }, change], clear_at: "never" },
      )[1],
    ).toEqual({
      role: "system",
      parts: [{ type: "text", text: "New." }],
      extensions: own({ clear_at: "never", content: [change] }) as never,
    });
  });
});

describe("tools", () => {
  test("of the client have at most the type custom (envoy#1953)", () => {
    const tools = [
      { name: "a", input_schema: {}, type: "custom" },
      { name: "b", input_schema: {}, type: null },
      { name: "c", type: "" },
    ];
    expect(decode({ tools }).tools).toEqual([
      { type: "function", name: "a", parameters: {} },
      { type: "function", name: "b", parameters: {} },
      { type: "function", name: "c" },
    ]);
  });

  test("added in the conversation are offered from its start, and to Anthropic in their place", () => {
    const definition = { name: "late", input_schema: { type: "object", properties: {} } };
    const addition = { type: "tool_addition", tool: { type: "tool_definition", definition } };
    const request = decode({
      tools: [{ name: "a", input_schema: definition.input_schema }],
      messages: [...base.messages, { role: "system", content: [addition] }],
    });
    expect(request.tools?.map((tool) => (tool.type === "hosted" ? "" : tool.name))).toEqual([
      "a",
      "late",
    ]);
    const { body } = encodeRequest(request, {
      upstreamModel: "m",
      stream: false,
      providerId: "anthropic",
    });
    expect(body).toMatchObject({
      tools: [{ name: "a" }],
      messages: [base.messages[0], { role: "system", content: [addition] }],
    });
  });

  test("keep every field", () => {
    const tool = {
      name: "a",
      description: "d",
      input_schema: { type: "object" },
      strict: true,
      defer_loading: true,
      input_examples: [{ x: 1 }],
      cache_control: { type: "ephemeral", ttl: "1h" },
      eager_input_streaming: true,
      allowed_callers: ["direct"],
    };
    expect(decode({ tools: [tool] }).tools).toEqual([
      {
        type: "function",
        name: "a",
        description: "d",
        parameters: { type: "object" },
        strict: true,
        deferred: true,
        inputExamples: [{ x: 1 }],
        cache: { ttl: "1h" },
        extensions: own({ eager_input_streaming: true, allowed_callers: ["direct"] }) as never,
      },
    ]);
  });

  const choices: [wire: object, fields: object][] = [
    [{ type: "auto" }, { toolChoice: { type: "auto" } }],
    [
      { type: "any", disable_parallel_tool_use: true },
      { toolChoice: { type: "required" }, parallelToolCalls: false },
    ],
    [{ type: "tool", name: "a" }, { toolChoice: { type: "tool", kind: "function", name: "a" } }],
    [{ type: "none" }, { toolChoice: { type: "none" } }],
    [
      { type: "later_kind" },
      {
        toolChoice: {
          type: "hosted",
          dialect: "anthropic-messages",
          value: { type: "later_kind" },
        },
      },
    ],
  ];
  test.each(choices)("have the choice %j decoded", (choice, fields) => {
    expect(decode({ tool_choice: choice })).toMatchObject(fields);
  });

  test("have the choice of one that Anthropic runs decoded as its own", () => {
    const choice = { type: "tool", name: "web_search" };
    const tools = [{ type: "web_search_20250305", name: "web_search" }, { name: "a" }];
    expect(decode({ tools, tool_choice: choice }).toolChoice).toEqual({
      type: "hosted",
      dialect: "anthropic-messages",
      value: choice,
    });
  });
});

test("fields without a canonical name are kept unchanged", () => {
  const fields = {
    container: { id: "c" },
    mcp_servers: [{ type: "url", name: "s" }],
    speed: "fast",
    inference_geo: "eu",
    cache_control: { type: "ephemeral" },
  };
  const request = decode({
    ...fields,
    diagnostics: null,
    metadata: { user_id: "u", tenant: "t" },
    output_config: {
      format: { type: "json_schema", schema: { type: "object" } },
      task_budget: { total: 9 },
    },
  });
  expect(request.extensions).toEqual(
    own({
      ...fields,
      metadata: { tenant: "t" },
      output_config: { task_budget: { total: 9 } },
    }) as never,
  );
  expect(request.output).toEqual({ type: "json-schema", schema: { type: "object" }, strict: true });
});

describe("an invalid request is refused with the field", () => {
  const rows: [param: string, body: unknown][] = [
    ["body", []],
    ["messages[0].content[0].type", { ...base, messages: [{ role: "user", content: [{}] }] }],
    [
      "messages[0].content[0].text",
      { ...base, messages: [{ role: "user", content: [{ type: "text" }] }] },
    ],
    [
      "messages[0].content[0].source",
      { ...base, messages: [{ role: "user", content: [{ type: "image" }] }] },
    ],
    [
      "messages[0].content[0].tool_use_id",
      { ...base, messages: [{ role: "user", content: [{ type: "tool_result" }] }] },
    ],
    ["messages[0].content[0]", { ...base, messages: [{ role: "user", content: ["text"] }] }],
    ["system[0].type", { ...base, system: [{ type: "image" }] }],
    ["tools[0].name", { ...base, tools: [{ input_schema: {} }] }],
    ["tool_choice.name", { ...base, tool_choice: { type: "tool" } }],
    ["stop_sequences", { ...base, stop_sequences: "END" }],
    ["output_config.effort", { ...base, output_config: { effort: 3 } }],
  ];
  test.each(rows)("%s", (param, body) => {
    expect(paramOf(body)).toBe(param);
  });
});
