import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { amazonConverse } from "./index.ts";
import { decodeResponse, usageOfFailure } from "./decode-response.ts";
import { readError } from "./errors.ts";

const answer = (content: object[], rest: object = {}): object => ({
  output: { message: { role: "assistant", content } },
  stopReason: "end_turn",
  usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 },
  metrics: { latencyMs: 12 },
  ...rest,
});

const partsOf = (content: object[]): unknown =>
  decodeResponse(answer(content), { providerId: "acme" }).choices[0]?.parts;

describe("content blocks", () => {
  test("decodes reasoning with its signature, readable or redacted", () => {
    const provenance = { providerId: "acme" };
    expect(
      partsOf([
        { reasoningContent: { reasoningText: { text: "hm", signature: "s" } } },
        { reasoningContent: { redactedContent: "RW4=" } },
        { reasoningContent: { reasoningText: { text: "plain" } } },
        { reasoningContent: {} },
      ]),
    ).toEqual([
      { type: "reasoning", text: "hm", signature: "s", provenance },
      { type: "reasoning", encrypted: "RW4=", provenance },
      { type: "reasoning", text: "plain" },
    ]);
  });

  test("decodes cited text, images and blocks unknown to other dialects", () => {
    expect(
      partsOf([
        {
          citationsContent: {
            content: [{ text: "The sky " }, { text: "is blue." }],
            citations: [
              {
                title: "Sky",
                sourceContent: [{ text: "blue" }],
                location: { documentChar: { documentIndex: 1, start: 4, end: 8 } },
              },
              { location: { web: { url: "https://example.com/sky" } } },
              {},
            ],
          },
        },
        { image: { format: "webp", source: { bytes: "UklGR" } } },
        { guardContent: { text: {} } },
        {},
      ]),
    ).toEqual([
      {
        type: "text",
        text: "The sky is blue.",
        annotations: [
          {
            type: "document",
            documentIndex: 1,
            title: "Sky",
            citedText: "blue",
            unit: "character",
            start: 4,
            end: 8,
          },
          { type: "url", url: "https://example.com/sky" },
        ],
      },
      { type: "image", source: { type: "base64", mediaType: "image/webp", data: "UklGR" } },
      { type: "opaque", dialect: "amazon-converse", value: { guardContent: { text: {} } } },
    ]);
  });

  test("restores the original name of a renamed tool", () => {
    const { choices } = decodeResponse(
      answer([{ toolUse: { toolUseId: "t", name: "f_1", input: { input: "ls" } } }], {
        stopReason: "tool_use",
      }),
      { toolAliases: new Map([["f_1", { name: "f.1", unwrapsInput: true }]]) },
    );
    expect(choices).toEqual([
      {
        index: 0,
        parts: [{ type: "tool-call", kind: "custom", id: "t", name: "f.1", arguments: "ls" }],
        finish: { reason: "tool_calls" },
      },
    ]);
  });
});

describe("an invalid response", () => {
  test.each<[body: unknown, message: string]>([
    [{ message: "Busy." }, "Busy."],
    [{ Message: "Denied." }, "Denied."],
    [{}, "The provider's answer is no Converse answer."],
    [null, "The provider's answer is no Converse answer."],
    [[1], "The provider's answer is no Converse answer."],
  ])("is an upstream error: %j", (body, message) => {
    expect(() => decodeResponse(body)).toThrow(
      expect.objectContaining({ code: "upstream_error", message }),
    );
  });

  test("caused by malformed model output is an error with known usage", () => {
    const failed = answer([{ text: "{" }], { stopReason: "malformed_model_output" });
    expect(() => decodeResponse(failed)).toThrow(GatewayError);
    expect(usageOfFailure(failed)?.usage).toEqual({ inputTokens: 3, outputTokens: 4 });
    expect(usageOfFailure(answer([]))).toBeUndefined();
  });
});

describe("an error response", () => {
  test.each<[status: number, body: unknown, reads: object]>([
    [429, { message: "Too many requests" }, { message: "Too many requests", status: 429 }],
    [424, { message: "The model failed." }, { message: "The model failed.", status: 502 }],
    [
      400,
      { __type: "com.amazon.coral.service#ServiceQuotaExceededException", message: "Full." },
      { message: "Full.", code: "ServiceQuotaExceededException", status: 429 },
    ],
    [403, { Message: "No." }, { message: "No.", status: 403 }],
    [503, "<html>", { message: "The provider answered with status 503.", status: 503 }],
    [500, null, { message: "The provider answered with status 500.", status: 500 }],
  ])("%i %j", (status, body, reads) => {
    expect(readError(status, body)).toEqual(reads as ReturnType<typeof readError>);
  });
});

test("the dialect has no client side", () => {
  expect(Object.keys(amazonConverse)).not.toContain("decodeRequest");
});
