import { describe, expect, test } from "bun:test";
import { errorCatalog, type ErrorCode, GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { encodeError, readError } from "./errors.ts";

const envelopeOf = (error: GatewayError): { type: string; error: JsonObject; request_id: string } =>
  encodeError(error, { traceId: "trace" }) as never;

describe("an error response", () => {
  test("is Anthropic's envelope with the gateway's code and metadata", () => {
    expect(
      envelopeOf(
        new GatewayError("bad_request", "max_tokens is required.", { param: "max_tokens" }),
      ),
    ).toEqual({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "max_tokens is required.",
        code: "bad_request",
        param: "max_tokens",
        metadata: { type: "invalid_request_error", fault: "client", trace_id: "trace" },
      },
      request_id: "trace",
    });
  });

  const types: [code: ErrorCode, type: string][] = [
    ["bad_request", "invalid_request_error"],
    ["invalid_api_key", "authentication_error"],
    ["insufficient_balance", "billing_error"],
    ["forbidden", "permission_error"],
    ["model_unavailable", "not_found_error"],
    ["method_not_allowed", "invalid_request_error"],
    ["conflict", "conflict_error"],
    ["content_too_large", "request_too_large"],
    ["unprocessable_entity", "invalid_request_error"],
    ["rate_limit_exceeded", "rate_limit_error"],
    ["internal_server_error", "api_error"],
    ["upstream_exhausted", "api_error"],
    ["service_unavailable", "api_error"],
    ["upstream_timeout", "timeout_error"],
  ];
  test.each(types)("with the code %s has the type %s", (code, type) => {
    expect(envelopeOf(new GatewayError(code, "m")).error).toMatchObject({ type, code });
  });

  test("has a type for every error code", () => {
    for (const code of Object.keys(errorCatalog) as ErrorCode[]) {
      expect(envelopeOf(new GatewayError(code, "m")).error.type).toMatch(
        /^[a-z_]+(_error|_large)$/,
      );
    }
  });
});

describe("a prompt that is too long has the message that Claude Code expects", () => {
  const rows: [said: string, told: string][] = [
    [
      "prompt is too long: 210000 tokens > 200000 maximum",
      "prompt is too long: 210000 tokens > 200000 maximum",
    ],
    [
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length.",
      "prompt is too long: 9001 tokens > 8192 maximum",
    ],
    [
      "This model's maximum context length is 8,192 tokens. However, you requested 10,000 tokens (9000 in the messages, 1000 to come).",
      "prompt is too long: 10000 tokens > 8192 maximum",
    ],
    [
      "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
      "prompt is too long: 1200000 tokens > 1048576 maximum",
    ],
    [
      "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
      "prompt is too long: 5000 tokens > 4096 maximum",
    ],
    [
      "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      "prompt is too long: 40000 tokens > 32768 maximum",
    ],
    [
      "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
      "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    ],
    [
      "Your input exceeds the context window of this model.",
      "prompt is too long: more tokens than the model's maximum (Your input exceeds the context window of this model.)",
    ],
  ];
  test.each(rows)("%s", (said, told) => {
    const error = new GatewayError("context_length_exceeded", "acme refused the request.", {
      metadata: { upstream_message: said },
    });
    expect(envelopeOf(error).error).toMatchObject({
      type: "invalid_request_error",
      message: told,
      code: "context_length_exceeded",
    });
  });
});

describe("an upstream error", () => {
  const rows: [body: unknown, read: object][] = [
    [
      { type: "error", error: { type: "not_found_error", message: "model: x" }, request_id: "r" },
      { message: "model: x", type: "not_found_error", status: 404 },
    ],
    [{ error: { message: "m", code: "c" } }, { message: "m", code: "c" }],
    [{ message: "flat" }, { message: "flat" }],
    [{ detail: [{ msg: "a" }, { msg: "b" }] }, { message: "a; b" }],
    ["plain words", { message: "plain words" }],
    ["<html>", { message: "The provider answered with status 404." }],
  ];
  test.each(rows)("is read from %j", (body, read) => {
    expect(readError(404, body)).toMatchObject(read);
  });
});
