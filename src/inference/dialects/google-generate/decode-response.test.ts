import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { decodeResponse } from "./decode-response.ts";
import { readError } from "./errors.ts";
import { readUsage } from "./usage.ts";

const whole = readCassettes("google-generate")
  .filter(({ parts }) => parts.at(-1)?.type === "response-end")
  .map((cassette) => [cassette.name, cassette] as const);

describe("a whole response", () => {
  test.each(whole)("decodes like its stream: %s", (_name, { bytes, parts }) => {
    const sse = new SseDecoder();
    const chunks = [...sse.push(bytes), ...sse.end()]
      .filter(({ data }) => data.startsWith("{"))
      .map(({ data }) => JSON.parse(data) as unknown);
    const assembler = new ResponseAssembler();
    for (const part of parts) assembler.add(part);
    expect(decodeResponse(chunks, { providerId: "acme" })).toEqual(assembler.response());
  });

  test("may omit its finish reason", () => {
    const { choices } = decodeResponse({
      candidates: [{ content: { parts: [{ functionCall: { name: "f" } }] } }],
      responseId: "r",
    });
    expect(choices).toEqual([
      {
        index: 0,
        parts: [
          { type: "tool-call", kind: "function", id: "call_r_0", name: "f", arguments: "{}" },
        ],
        finish: { reason: "tool_calls" },
      },
    ]);
  });

  const refusals: [what: string, body: unknown, message: string][] = [
    ["text", "hello", "The provider's answer is no generateContent answer."],
    ["null", null, "The provider's answer is no generateContent answer."],
    ["of another type", { choices: [] }, "The provider's answer is no generateContent answer."],
    ["an error", { error: { code: 503, message: "overloaded" } }, "overloaded"],
    [
      "a malformed call",
      { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL" }] },
      "The model wrote a tool call that cannot be read (MALFORMED_FUNCTION_CALL).",
    ],
  ];
  test.each(refusals)("is refused if it is %s", (_what, body, message) => {
    expect(() => decodeResponse(body)).toThrow(
      expect.objectContaining({ code: "upstream_error", message }),
    );
  });
});

describe("an error response", () => {
  const rows: [what: string, status: number, body: unknown, expected: object][] = [
    [
      "Google's envelope",
      404,
      { error: { code: 404, message: "models/x is not found", status: "NOT_FOUND" } },
      { message: "models/x is not found", code: "NOT_FOUND", status: 404 },
    ],
    [
      "an error in a list",
      429,
      [
        {
          error: {
            code: 429,
            message: "slow",
            status: "RESOURCE_EXHAUSTED",
            details: [{ retryDelay: "3.5s" }],
          },
        },
      ],
      {
        message: "slow",
        code: "RESOURCE_EXHAUSTED",
        status: 429,
        metadata: { retry_delay: "3.5s" },
      },
    ],
    [
      "an invalid API key",
      400,
      {
        error: {
          code: 400,
          message: "API key not valid.",
          status: "INVALID_ARGUMENT",
          details: [{ reason: "API_KEY_INVALID" }],
        },
      },
      {
        message: "API key not valid.",
        code: "INVALID_ARGUMENT",
        status: 401,
        metadata: { reason: "API_KEY_INVALID" },
      },
    ],
    [
      "a proxy's error page",
      502,
      "<html>Bad Gateway</html>",
      { message: "The provider answered with status 502.", status: 502 },
    ],
    ["plain text", 500, "boom", { message: "boom", status: 500 }],
    ["nothing", 500, {}, { message: "The provider answered with status 500.", status: 500 }],
  ];
  test.each(rows)("%s", (_what, status, body, expected) => {
    expect(readError(status, body)).toEqual(expected as ReturnType<typeof readError>);
  });
});

describe("usage", () => {
  const rows: [what: string, wire: object, usage: object, clamped: boolean][] = [
    [
      "cached tokens within the prompt",
      { promptTokenCount: 130, cachedContentTokenCount: 100, candidatesTokenCount: 3 },
      { inputTokens: 30, cacheReadTokens: 100, outputTokens: 3 },
      false,
    ],
    [
      "thoughts in addition to candidates",
      { promptTokenCount: 1, candidatesTokenCount: 2, thoughtsTokenCount: 3, totalTokenCount: 6 },
      { inputTokens: 1, outputTokens: 2, reasoningTokens: 3 },
      false,
    ],
    [
      "tool input",
      { promptTokenCount: 1, toolUsePromptTokenCount: 50, candidatesTokenCount: 2 },
      { inputTokens: 51, outputTokens: 2 },
      false,
    ],
    ["no output", { promptTokenCount: 1 }, { inputTokens: 1, outputTokens: 0 }, false],
    [
      "more cached tokens than input",
      { promptTokenCount: 5, cachedContentTokenCount: 9, candidatesTokenCount: 1 },
      { inputTokens: 0, cacheReadTokens: 5, outputTokens: 1 },
      true,
    ],
    [
      "a negative count",
      { promptTokenCount: -5, candidatesTokenCount: 1 },
      { inputTokens: 0, outputTokens: 1 },
      true,
    ],
    [
      "more image tokens than input",
      {
        promptTokenCount: 1,
        candidatesTokenCount: 2,
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 9 }],
      },
      { inputTokens: 1, outputTokens: 2 },
      true,
    ],
  ];
  test.each(rows)("%s", (_what, wire, usage, clamped) => {
    expect(readUsage(wire)).toEqual({ usage, estimated: false, clamped });
  });

  test.each([undefined, null, 7, {}])("%p is not usage", (value) => {
    expect(readUsage(value)).toBeUndefined();
  });
});
