import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { AssistantPart } from "../../canonical/message.ts";
import { responseParts, type CanonicalResponse } from "../../canonical/response.ts";
import type { DecodeContext } from "../dialect.ts";
import { decodeResponse } from "./decode-response.ts";
import { encodeResponse } from "./encode-response.ts";
import { ChatStreamEncoder } from "./encode-stream.ts";

const decode = (
  choice: object,
  context: DecodeContext = {},
): CanonicalResponse["choices"][number] | undefined =>
  decodeResponse(
    {
      id: "chatcmpl-9",
      created: 1,
      model: "m",
      choices: [{ index: 0, finish_reason: "stop", ...choice }],
    },
    context,
  ).choices[0];
const parts = (message: object, context: DecodeContext = {}): readonly AssistantPart[] =>
  decode({ message }, context)?.parts ?? [];

describe("the finish reason matches the content:", () => {
  const call = {
    tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
  };
  const rows: [what: string, choice: object, finish: object][] = [
    ["stop with calls", { message: call, finish_reason: "stop" }, { reason: "tool_calls" }],
    ["truncated calls", { message: call, finish_reason: "length" }, { reason: "length" }],
    [
      "tool_calls without calls",
      { message: { content: "a", tool_calls: [] }, finish_reason: "tool_calls" },
      { reason: "stop" },
    ],
    ["no reason", { message: { content: "a" }, finish_reason: null }, { reason: "stop" }],
    ["no reason, with calls", { message: call, finish_reason: "" }, { reason: "tool_calls" }],
    [
      "an unknown reason",
      { message: { content: "a" }, finish_reason: "whatever" },
      { reason: "stop" },
    ],
    [
      "Mistral's reason",
      { message: { content: "a" }, finish_reason: "model_length" },
      { reason: "length" },
    ],
    ["upper case", { message: { content: "a" }, finish_reason: "STOP" }, { reason: "stop" }],
    [
      "a matched stop sequence of vLLM",
      { message: { content: "a" }, stop_reason: "END" },
      { reason: "stop_sequence", stopSequence: "END" },
    ],
    [
      "a matched stop sequence of SGLang",
      { message: { content: "a" }, matched_stop: "END" },
      { reason: "stop_sequence", stopSequence: "END" },
    ],
    [
      "a matched stop token",
      { message: { content: "a" }, stop_reason: 128_009, matched_stop: 2 },
      { reason: "stop" },
    ],
    [
      "a content filter",
      { message: { content: "" }, finish_reason: "content_filter" },
      { reason: "content_filter" },
    ],
    [
      "an error in the choice",
      { message: {}, finish_reason: "error", error: { message: "gone" } },
      { reason: "error", explanation: "gone" },
    ],
  ];
  test.each(rows)("%s", (_what, choice, finish) => {
    expect(decode(choice)?.finish).toEqual(finish as never);
  });
});

describe("deviations of servers", () => {
  test("calls without id, arguments as an object, calls without a name", () => {
    expect(
      parts({
        tool_calls: [
          { function: { name: "f", arguments: { a: 1 } } },
          { function: { name: "g" } },
          { id: "x", function: {} },
        ],
      }),
    ).toEqual([
      {
        type: "tool-call",
        kind: "function",
        id: "call_chatcmpl9_0",
        name: "f",
        arguments: '{"a":1}',
      },
      { type: "tool-call", kind: "function", id: "call_chatcmpl9_1", name: "g", arguments: "{}" },
    ]);
  });

  test("the legacy function_call", () => {
    expect(parts({ content: null, function_call: { name: "f", arguments: "{}" } })).toMatchObject([
      { type: "tool-call", name: "f" },
    ]);
  });

  test("content in parts with reasoning", () => {
    expect(
      parts({
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "a" },
        ],
      }),
    ).toEqual([
      { type: "reasoning", text: "hm" },
      { type: "text", text: "a" },
    ]);
  });

  test("generated images", () => {
    expect(
      parts({
        content: "Here.",
        images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }],
      }),
    ).toEqual([
      { type: "text", text: "Here." },
      { type: "image", source: { type: "base64", mediaType: "image/png", data: "AA==" } },
    ]);
  });

  test("signatures belong to the provider, whatever their text", () => {
    expect(
      parts(
        {
          content: "a",
          reasoning_details: [{ type: "reasoning.text", text: "t", signature: "gw1:other:x" }],
        },
        { providerId: "acme" },
      )[0],
    ).toEqual({
      type: "reasoning",
      text: "t",
      signature: "gw1:other:x",
      provenance: { providerId: "acme" },
    });
  });

  test("wrapped and renamed tools get their names back", () => {
    const toolAliases = new Map([
      ["p", { name: "p", unwrapsInput: true }],
      ["ns__f", { name: "f", namespace: "ns" }],
    ]);
    const calls = [
      { id: "a", function: { name: "p", arguments: '{"input":"x\\ny"}' } },
      { id: "b", function: { name: "ns__f", arguments: "{}" } },
    ];
    expect(parts({ tool_calls: calls }, { toolAliases })).toEqual([
      { type: "tool-call", kind: "custom", id: "a", name: "p", arguments: "x\ny" },
      { type: "tool-call", kind: "function", id: "b", name: "f", namespace: "ns", arguments: "{}" },
    ]);
  });

  test("usage in Groq's wrapper, and unknown fields", () => {
    const response = decodeResponse({
      id: "r",
      choices: [],
      x_groq: { usage: { prompt_tokens: 1, completion_tokens: 2 } },
    });
    expect(response.usage?.usage).toEqual({ inputTokens: 1, outputTokens: 2 });
    expect(response.extensions?.fields).toEqual({
      x_groq: { usage: { prompt_tokens: 1, completion_tokens: 2 } },
    });
  });
});

describe("an invalid response is an upstream error:", () => {
  const rows: [body: unknown, message: string][] = [
    [null, "The provider's answer is no chat completion."],
    ["<html>", "The provider's answer is no chat completion."],
    [{ id: "x" }, "The provider's answer is no chat completion."],
    [{ error: { message: "Model not loaded", code: 503 } }, "Model not loaded"],
    [{ error: "Model not loaded", choices: null }, "Model not loaded"],
  ];
  test.each(rows)("%j", (body, message) => {
    try {
      decodeResponse(body);
      throw new Error("was accepted");
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      expect([error.code, error.message]).toEqual(["upstream_error", message]);
    }
  });
});

describe("encodeResponse", () => {
  const head = { id: "up", model: "large-v2", createdAtSeconds: 1 };

  test("has the gateway's id, model, charge and metadata", () => {
    expect(
      encodeResponse(
        {
          ...head,
          choices: [],
          usage: { usage: { inputTokens: 1, outputTokens: 1 }, estimated: false, clamped: false },
          gateway: {
            costUsd: 0,
            requestedModel: "a/b",
            fallback: { used: true },
            metadata: { creditsCharged: 0 },
          },
        },
        { id: "chatcmpl-gw", model: "acme/large" },
      ),
    ).toEqual({
      id: "chatcmpl-gw",
      object: "chat.completion",
      created: 1,
      model: "acme/large",
      choices: [],
      system_fingerprint: null,
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost: 0 },
      requested_model: "a/b",
      fallback: { used: true },
      service_metadata: { creditsCharged: 0 },
    });
  });

  test("has the explanation of a refusal without text", () => {
    const refused = encodeResponse({
      ...head,
      choices: [{ index: 0, parts: [], finish: { reason: "refusal", explanation: "Not this." } }],
    });
    expect(refused.choices).toMatchObject([
      { finish_reason: "content_filter", message: { content: null, refusal: "Not this." } },
    ]);
  });

  test("gives a citation without a place that of its text, whole and streamed", () => {
    const response: CanonicalResponse = {
      ...head,
      choices: [
        {
          index: 0,
          parts: [
            { type: "text", text: "Hi. " },
            {
              type: "text",
              text: "Bun 2 is out.",
              annotations: [{ type: "url", url: "https://bun.test" }],
            },
          ],
          finish: { reason: "stop" },
        },
      ],
    };
    const annotations = [
      {
        type: "url_citation",
        url_citation: {
          url: "https://bun.test",
          title: "https://bun.test",
          start_index: 4,
          end_index: 17,
        },
      },
    ];
    expect(encodeResponse(response).choices).toMatchObject([{ message: { annotations } }]);
    const encoder = new ChatStreamEncoder();
    const frames = responseParts(response).flatMap((part) => encoder.encode(part));
    expect(frames.join("")).toContain(`"delta":${JSON.stringify({ annotations })}`);
  });

  test("omits parts of other dialects and their citations", () => {
    const response: CanonicalResponse = {
      ...head,
      choices: [
        {
          index: 0,
          parts: [
            { type: "opaque", dialect: "anthropic-messages", value: { type: "server_tool_use" } },
            {
              type: "text",
              text: "a",
              annotations: [{ type: "document", documentIndex: 0, unit: "page", start: 1, end: 2 }],
            },
          ],
          finish: { reason: "pause" },
        },
      ],
    };
    expect(encodeResponse(response).choices).toEqual([
      {
        index: 0,
        message: { role: "assistant", content: "a", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
  });

  test("uses legacy fields for legacy clients, and omits excluded reasoning", () => {
    const response: CanonicalResponse = {
      ...head,
      choices: [
        {
          index: 0,
          parts: [
            { type: "reasoning", text: "hm" },
            { type: "tool-call", kind: "function", id: "c", name: "f", arguments: "" },
          ],
          finish: { reason: "tool_calls" },
        },
      ],
    };
    const request = {
      dialect: "openai-chat",
      model: "m",
      stream: false,
      messages: [],
      legacyFunctions: true,
      reasoning: { exclude: true },
    } as const;
    expect(encodeResponse(response, { request }).choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          refusal: null,
          function_call: { name: "f", arguments: "" },
        },
        logprobs: null,
        finish_reason: "function_call",
      },
    ]);
  });
});
