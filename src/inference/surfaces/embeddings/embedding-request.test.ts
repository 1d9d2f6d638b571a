import { describe, expect, test } from "bun:test";
import { embeddingTokens, readEmbeddingRequest, sortOfStrategy } from "./embedding-request.ts";

const body = (changes: Record<string, unknown>) => ({ model: "m/e", input: "text", ...changes });

describe("readEmbeddingRequest accepts", () => {
  test.each<[string, unknown, unknown]>([
    ["a string", "one", ["one"]],
    ["strings", ["one", "two"], ["one", "two"]],
    ["token ids", [1, 2], [[1, 2]]],
    ["lists of token ids", [[1], [2, 3]], [[1], [2, 3]]],
    ["objects", [{ text: "one" }], [{ text: "one" }]],
  ])("%s", (_, input, inputs) =>
    expect(readEmbeddingRequest(body({ input })).inputs).toEqual(inputs as never),
  );

  test("unknown fields for the provider, without the gateway's own fields", () => {
    const read = readEmbeddingRequest(
      body({
        input_type: "query",
        session_id: "s",
        provider: {},
        trace: {},
        user: "u",
        dimensions: 3,
      }),
    );
    expect(read).toMatchObject({
      rest: { input_type: "query" },
      user: "u",
      dimensions: 3,
      format: "float",
      formatNamed: false,
    });
  });

  test("null as an absent field", () => {
    expect(
      readEmbeddingRequest(body({ encoding_format: null, dimensions: null, user: null })),
    ).toMatchObject({ format: "float" });
  });
});

describe("readEmbeddingRequest refuses and names the field for", () => {
  test.each<[string, Record<string, unknown>, string, string]>([
    ["no model", { model: undefined }, "missing_required_fields", "model"],
    ["no input", { input: undefined }, "missing_required_fields", "input"],
    ["null as input", { input: null }, "missing_required_fields", "input"],
    ["an empty text", { input: "" }, "invalid_request_error", "input"],
    ["no entries", { input: [] }, "invalid_request_error", "input"],
    ["an empty entry", { input: ["a", ""] }, "invalid_request_error", "input[1]"],
    ["a number among strings", { input: ["a", 1] }, "invalid_request_error", "input[1]"],
    ["invalid token ids", { input: [1, -1] }, "invalid_request_error", "input"],
    ["an object as input", { input: { text: "a" } }, "invalid_request_error", "input"],
    [
      "an unknown encoding_format",
      { encoding_format: "int8" },
      "invalid_request_error",
      "encoding_format",
    ],
    ["dimensions of 0", { dimensions: 0 }, "invalid_request_error", "dimensions"],
    ["fractional dimensions", { dimensions: 1.5 }, "invalid_request_error", "dimensions"],
    [
      "a session id that is too long",
      { session_id: "s".repeat(257) },
      "invalid_request_error",
      "session_id",
    ],
  ])("%s", (_, changes, code, param) => {
    expect(() => readEmbeddingRequest(body(changes))).toThrow(
      expect.objectContaining({ code, param }),
    );
  });
});

test("embeddingTokens estimates tokens of texts and counts token ids", () => {
  expect(embeddingTokens(["12345678", [1, 2, 3]])).toBe(5);
});

describe("X-Routing-Strategy", () => {
  test.each<[string | null, string | undefined]>([
    ["cheapest", "price"],
    ["fastest", "latency"],
    ["Most-Available", "availability"],
    ["throughput", "throughput"],
    [null, undefined],
    ["", undefined],
  ])("%p", (strategy, sort) => expect(sortOfStrategy(strategy)).toBe(sort as never));

  test("refuses unknown strategies", () => {
    expect(() => sortOfStrategy("constructor")).toThrow(
      expect.objectContaining({ code: "invalid_request_error", param: "X-Routing-Strategy" }),
    );
  });
});
