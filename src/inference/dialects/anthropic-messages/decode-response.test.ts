import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { CanonicalResponse, MeteredUsage } from "../../canonical/response.ts";
import { decodeResponse } from "./decode-response.ts";
import { encodeResponse } from "./encode-response.ts";
import { encodeUsage, readUsage } from "./usage.ts";

const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [{ type: "text", text: "Hi" }],
};
const decode = (changes: object): CanonicalResponse =>
  decodeResponse({ ...message, ...changes }, { providerId: "acme" });

describe("the finish reason", () => {
  const call = { type: "tool_use", id: "a", name: "f", input: {} };
  const rows: [wire: object, finish: object][] = [
    [{ stop_reason: "end_turn" }, { reason: "stop" }],
    [
      { stop_reason: "stop_sequence", stop_sequence: "END" },
      { reason: "stop_sequence", stopSequence: "END" },
    ],
    [{ stop_reason: "max_tokens" }, { reason: "length" }],
    [{ stop_reason: "model_context_window_exceeded" }, { reason: "length" }],
    [{ stop_reason: "pause_turn" }, { reason: "pause" }],
    [
      {
        stop_reason: "refusal",
        stop_details: { type: "refusal", category: "bio", explanation: "No." },
      },
      { reason: "refusal", category: "bio", explanation: "No." },
    ],
    [{ stop_reason: "tool_use" }, { reason: "stop" }],
    [{ stop_reason: "end_turn", content: [call] }, { reason: "tool_calls" }],
    [{ stop_reason: null, content: [call] }, { reason: "tool_calls" }],
    [{ stop_reason: "later_kind" }, { reason: "stop" }],
  ];
  test.each(rows)("is decoded from %j", (wire, finish) => {
    expect(decode(wire).choices[0]?.finish).toEqual(finish as never);
  });
});

test("blocks of every kind are decoded, with the provider of their signatures", () => {
  const search = { type: "web_search_tool_result", tool_use_id: "s", content: [] };
  expect(
    decode({
      content: [
        { type: "thinking", thinking: "t", signature: "s" },
        { type: "thinking", thinking: "", signature: "omitted" },
        { type: "redacted_thinking", data: "e" },
        { type: "thinking", thinking: "", signature: "" },
        { type: "text", text: "" },
        {
          type: "text",
          text: "Green.",
          citations: [
            {
              type: "page_location",
              cited_text: "g",
              document_index: 1,
              document_title: null,
              start_page_number: 2,
              end_page_number: 3,
            },
          ],
        },
        search,
        { type: "tool_use", id: "a", name: "f" },
      ],
      container: { id: "c" },
      diagnostics: null,
    }),
  ).toMatchObject({
    choices: [
      {
        parts: [
          { type: "reasoning", text: "t", signature: "s", provenance: { providerId: "acme" } },
          { type: "reasoning", signature: "omitted", provenance: { providerId: "acme" } },
          { type: "reasoning", encrypted: "e", provenance: { providerId: "acme" } },
          {
            type: "text",
            text: "Green.",
            annotations: [
              {
                type: "document",
                documentIndex: 1,
                unit: "page",
                start: 2,
                end: 3,
                citedText: "g",
              },
            ],
          },
          { type: "opaque", dialect: "anthropic-messages", value: search },
          { type: "tool-call", kind: "function", id: "a", name: "f", arguments: "{}" },
        ],
      },
    ],
    extensions: { dialect: "anthropic-messages", fields: { container: { id: "c" } } },
  });
});

test("renamed tools get the client's names back", () => {
  const toolAliases = new Map([
    ["sh_1", { name: "sh", unwrapsInput: true }],
    ["ns__f", { name: "f", namespace: "ns" }],
  ]);
  const { choices } = decodeResponse(
    {
      ...message,
      content: [
        { type: "tool_use", id: "a", name: "sh_1", input: { input: "ls" } },
        { type: "tool_use", id: "b", name: "ns__f", input: {} },
      ],
    },
    { toolAliases },
  );
  expect(choices[0]?.parts as readonly unknown[]).toEqual([
    { type: "tool-call", kind: "custom", id: "a", name: "sh", arguments: "ls" },
    { type: "tool-call", kind: "function", id: "b", name: "f", namespace: "ns", arguments: "{}" },
  ]);
});

test.each([[{}], [[]], ["text"], [null], [{ content: "text" }]])("%j is refused", (body) => {
  expect(() => decodeResponse(body)).toThrow(GatewayError);
});

test("an error in place of a message is refused with its own message", () => {
  expect(() =>
    decodeResponse({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
  ).toThrow("Overloaded");
});

describe("usage", () => {
  const rows: [what: string, wire: object, read: Partial<MeteredUsage> | undefined][] = [
    [
      "counts cached tokens beside the input (litellm#9812)",
      {
        input_tokens: 10,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 20,
        output_tokens: 7,
      },
      { usage: { inputTokens: 10, cacheReadTokens: 100, cacheWriteTokens: 20, outputTokens: 7 } },
    ],
    [
      "counts cache writes by their TTL",
      {
        input_tokens: 1,
        cache_creation_input_tokens: 20,
        cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 15 },
        output_tokens: 7,
      },
      {
        usage: {
          inputTokens: 1,
          cacheWriteTokens: 5,
          cacheWriteOneHourTokens: 15,
          outputTokens: 7,
        },
      },
    ],
    [
      "counts thinking within the output",
      { input_tokens: 1, output_tokens: 20, output_tokens_details: { thinking_tokens: 15 } },
      { usage: { inputTokens: 1, outputTokens: 5, reasoningTokens: 15 } },
    ],
    [
      "keeps 0 and ignores null",
      {
        input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: null,
        output_tokens: 0,
      },
      { usage: { inputTokens: 0, cacheReadTokens: 0, outputTokens: 0 } },
    ],
    [
      "clamps more thinking than output",
      { input_tokens: 1, output_tokens: 5, output_tokens_details: { thinking_tokens: 15 } },
      { usage: { inputTokens: 1, outputTokens: 0, reasoningTokens: 5 }, clamped: true },
    ],
    [
      "clamps negative counts",
      { input_tokens: -4, output_tokens: 5 },
      { usage: { inputTokens: 0, outputTokens: 5 }, clamped: true },
    ],
    ["nothing", {}, undefined],
  ];
  test.each(rows)("%s", (_what, wire, read) => {
    expect(readUsage(wire)).toEqual(
      (read && { estimated: false, clamped: false, ...read }) as never,
    );
  });

  test("is encoded as it was decoded", () => {
    const wire = {
      input_tokens: 10,
      cache_creation_input_tokens: 20,
      cache_read_input_tokens: 100,
      cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 15 },
      output_tokens: 20,
      output_tokens_details: { thinking_tokens: 15 },
      server_tool_use: {
        web_search_requests: 2,
      },
      service_tier: "priority",
    };
    const read = readUsage(wire);
    expect(read && encodeUsage(read, { costUsd: 0.5 })).toEqual({ ...wire, cost: 0.5 });
  });
});

describe("a response for a client", () => {
  const response: CanonicalResponse = {
    id: "up",
    model: "large",
    createdAtSeconds: 1,
    choices: [
      {
        index: 0,
        finish: { reason: "tool_calls" },
        parts: [
          {
            type: "reasoning",
            id: "rs_1",
            summary: ["a", "b"],
            encrypted: "e",
            provenance: { providerId: "openai" },
          },
          { type: "refusal", refusal: "Not that." },
          {
            type: "text",
            text: "So",
            annotations: [
              { type: "url", url: "https://example.com", title: "E", startIndex: 0, endIndex: 2 },
            ],
          },
          { type: "tool-call", kind: "function", id: "functions.f:0", name: "f", arguments: "" },
          { type: "tool-call", kind: "custom", id: "c", name: "sh", arguments: "ls" },
          { type: "opaque", dialect: "openai-responses", value: { type: "file_search_call" } },
        ],
      },
    ],
    usage: { usage: { inputTokens: 3, outputTokens: 2 }, estimated: false, clamped: false },
    gateway: { costUsd: 0.25, requestedModel: "acme/large", fallback: { used: true } },
  };

  test("has every part in order, with the gateway's fields", () => {
    expect(encodeResponse(response, { id: "msg_gw", model: "acme/small" })).toEqual({
      id: "msg_gw",
      type: "message",
      role: "assistant",
      model: "acme/small",
      content: [
        { type: "thinking", thinking: "a\n\nb", signature: "" },
        { type: "redacted_thinking", data: "gw1:openai:e" },
        { type: "text", text: "Not that." },
        {
          type: "text",
          text: "So",
          citations: [
            {
              type: "web_search_result_location",
              url: "https://example.com",
              title: "E",
              cited_text: "",
              encrypted_index: "",
            },
          ],
        },
        {
          type: "tool_use",
          id: expect.stringMatching(/^functions_f_0_[0-9a-f]{8}$/) as never,
          name: "f",
          input: {},
        },
        { type: "tool_use", id: "c", name: "sh", input: { input: "ls" } },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      stop_details: null,
      usage: { input_tokens: 3, output_tokens: 2, cost: 0.25 },
      requested_model: "acme/large",
      fallback: { used: true },
    });
  });

  test("omits reasoning if the client excludes it, and has zeros for missing usage", () => {
    const { usage: _, ...unmetered } = response;
    const request = {
      dialect: "openai-chat",
      model: "m",
      stream: false,
      messages: [],
      reasoning: { exclude: true },
    } as const;
    const body = encodeResponse(unmetered, { request });
    expect(JSON.stringify(body)).not.toContain("thinking");
    expect(body.usage).toEqual({ input_tokens: 0, output_tokens: 0, cost: 0.25 });
  });

  test("has the reason of a refusal", () => {
    const refused: CanonicalResponse = {
      ...response,
      choices: [{ index: 0, parts: [], finish: { reason: "content_filter", explanation: "No." } }],
    };
    expect(encodeResponse(refused)).toMatchObject({
      stop_reason: "refusal",
      stop_details: { type: "refusal", category: null, explanation: "No." },
    });
  });
});
