import { describe, expect, test } from "bun:test";
import type { ReportedError } from "../../canonical/response.ts";
import { readError } from "./errors.ts";

describe("readError", () => {
  const rows: [what: string, body: unknown, error: Partial<ReportedError>][] = [
    [
      "OpenAI",
      {
        error: {
          message: "Bad key",
          type: "invalid_request_error",
          param: null,
          code: "invalid_api_key",
        },
      },
      { message: "Bad key", type: "invalid_request_error", code: "invalid_api_key", status: 400 },
    ],
    [
      "OpenRouter",
      {
        error: { code: 402, message: "Insufficient credits", metadata: { provider_name: "x" } },
        user_id: "u",
      },
      {
        message: "Insufficient credits",
        code: "402",
        status: 402,
        metadata: { provider_name: "x" },
      },
    ],
    [
      "vLLM",
      { object: "error", message: "too long", type: "BadRequestError", param: null, code: 400 },
      { message: "too long", type: "BadRequestError", code: "400", status: 400 },
    ],
    ["an error as text", { error: "model not found" }, { message: "model not found" }],
    ["FastAPI's text", { detail: "Not authenticated" }, { message: "Not authenticated" }],
    [
      "FastAPI's list",
      { detail: [{ loc: ["body", "n"], msg: "must be positive" }, { msg: "and small" }] },
      { message: "must be positive; and small" },
    ],
    [
      "Gemini's list",
      [{ error: { code: 429, message: "Quota", status: "RESOURCE_EXHAUSTED" } }],
      { message: "Quota", code: "429", status: 429 },
    ],
    [
      "only a code",
      { error: { code: "server_overloaded" } },
      { message: "server_overloaded", code: "server_overloaded" },
    ],
    ["text", "upstream connect error", { message: "upstream connect error", status: 400 }],
    [
      "an HTML page",
      "<html><body>502</body></html>",
      { message: "The provider answered with status 400." },
    ],
    ["an empty text", "", { message: "The provider answered with status 400." }],
    ["an empty object", {}, { message: "The provider answered with status 400." }],
    ["null", null, { message: "The provider answered with status 400." }],
  ];
  test.each(rows)("reads %s", (_what, body, error) => {
    expect(readError(400, body)).toMatchObject(error);
  });

  test("truncates a very long text", () => {
    expect(readError(500, { error: { message: "x".repeat(100_000) } }).message.length).toBe(2_000);
  });
});
