import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import { decodeResponse } from "./decode-response.ts";
import { encodeResponse } from "./encode-response.ts";

const whole = (output: JsonObject[], more: JsonObject = {}): JsonObject => ({
  id: "resp_1",
  status: "completed",
  model: "m",
  created_at: 7,
  output,
  ...more,
});
const message = (content: JsonObject[], more: JsonObject = {}): JsonObject => ({
  type: "message",
  role: "assistant",
  content,
  ...more,
});

describe("an upstream response", () => {
  test.each([
    ["the provider says to charge", { tool_usage: { web_search: { num_requests: 3 } } }, 3],
    ["none, where all were free", { tool_usage: { web_search: { num_requests: 0 } } }, undefined],
    ["it shows, where it says nothing", {}, 1],
  ])("counts the searches that %s", (_, more, searches) => {
    const output = [
      { type: "web_search_call", action: { type: "search", queries: ["a", "b"] } },
      { type: "web_search_call", action: { type: "open_page" } },
    ];
    const usage = { input_tokens: 9, output_tokens: 1 };
    expect(decodeResponse(whole(output, { usage, ...more })).usage?.usage.searches).toBe(searches);
  });

  test("is decoded to parts in order", () => {
    const search = { type: "web_search_call", id: "ws_1" };
    expect(
      decodeResponse(
        whole([
          { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gw1:looks:marked" },
          search,
          message(
            [
              {
                type: "output_text",
                text: "a",
                annotations: [{ type: "url_citation", url: "https://example.com/" }],
              },
            ],
            { phase: "commentary" },
          ),
          { type: "function_call", id: "fc_1", call_id: "c", name: "ns__f", arguments: " " },
          { type: "custom_tool_call", name: "p", input: "x" },
          message([
            { type: "output_text", text: "" },
            { type: "refusal", refusal: "No." },
          ]),
          message([{ type: "output_text", text: "b" }]),
          { type: "image_generation_call", id: "ig", result: "AAAA" },
        ]),
        { providerId: "acme", toolAliases: new Map([["ns__f", { name: "f", namespace: "ns" }]]) },
      ).choices,
    ).toEqual([
      {
        index: 0,
        parts: [
          {
            type: "reasoning",
            id: "rs_1",
            encrypted: "gw1:looks:marked",
            provenance: { providerId: "acme" },
          },
          { type: "opaque", dialect: "openai-responses", value: search },
          {
            type: "text",
            text: "a",
            annotations: [{ type: "url", url: "https://example.com/" }],
            phase: "commentary",
          },
          {
            type: "tool-call",
            kind: "function",
            id: "c",
            name: "f",
            namespace: "ns",
            arguments: "{}",
            itemId: "fc_1",
          },
          { type: "tool-call", kind: "custom", id: "call_resp1_4", name: "p", arguments: "x" },
          { type: "refusal", refusal: "No." },
          { type: "text", text: "b", startsMessage: true },
          { type: "image", source: { type: "base64", mediaType: "image/png", data: "AAAA" } },
        ],
        finish: { reason: "tool_calls" },
      },
    ]);
  });

  const finishes: [JsonObject, string][] = [
    [{}, "stop"],
    [{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }, "length"],
    [{ status: "incomplete", incomplete_details: { reason: "content_filter" } }, "content_filter"],
    [{ status: "incomplete" }, "length"],
  ];
  test.each(finishes)("with %j has the finish reason %s", (more, reason) => {
    expect(
      decodeResponse(whole([message([{ type: "output_text", text: "a" }])], more)).choices[0]
        ?.finish.reason as string,
    ).toBe(reason);
  });

  test("has disjoint counts of cached and other input", () => {
    const usage = {
      input_tokens: 130,
      input_tokens_details: { cached_tokens: 100, cache_write_tokens: 20 },
      output_tokens: 7,
      total_tokens: 137,
    };
    expect(decodeResponse(whole([], { usage })).usage?.usage).toEqual({
      inputTokens: 10,
      cacheReadTokens: 100,
      cacheWriteTokens: 20,
      outputTokens: 7,
    });
  });

  const none: [unknown][] = [
    [null],
    [[]],
    [{}],
    [{ output: [] }],
    [whole([], { status: "in_progress" })],
    [whole([], { status: "queued" })],
  ];
  test.each(none)("is refused if it is %j", (body) => {
    expect(() => decodeResponse(body)).toThrow(expect.objectContaining({ code: "upstream_error" }));
  });

  test("that failed is refused with its error", () => {
    expect(() =>
      decodeResponse(
        whole([], { status: "failed", error: { code: "server_error", message: "Out of order." } }),
      ),
    ).toThrow(expect.objectContaining({ code: "upstream_error", message: "Out of order." }));
  });
});

test("a citation without a place has that of its text for a client", () => {
  const { output } = encodeResponse({
    id: "resp_1",
    model: "m",
    createdAtSeconds: 7,
    choices: [
      {
        index: 0,
        parts: [
          {
            type: "text",
            text: "Bun 2 is out.",
            annotations: [{ type: "url", url: "https://bun.test" }],
          },
        ],
        finish: { reason: "stop" },
      },
    ],
  });
  const place = { title: "https://bun.test", start_index: 0, end_index: 13 };
  expect(output).toMatchObject([
    { content: [{ annotations: [{ type: "url_citation", url: "https://bun.test", ...place }] }] },
  ]);
});
