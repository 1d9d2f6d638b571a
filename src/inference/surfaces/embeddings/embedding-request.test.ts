import { describe, expect, test } from "bun:test";
import { embeddingTokens, readEmbeddingRequest, sortOfStrategy } from "./embedding-request.ts";

const body = (changes: Record<string, unknown>) => ({ model: "m/e", input: "text", ...changes });

describe("what may be sent", () => {
  test.each<[string, unknown, unknown]>([
    ["a string", "one", ["one"]],
    ["strings", ["one", "two"], ["one", "two"]],
    ["token ids", [1, 2], [[1, 2]]],
    ["lists of token ids", [[1], [2, 3]], [[1], [2, 3]]],
    ["objects", [{ text: "one" }], [{ text: "one" }]],
  ])("%s", (_, input, inputs) =>
    expect(readEmbeddingRequest(body({ input })).inputs).toEqual(inputs as never),
  );

  test("unknown fields are kept, those of the gateway are not", () => {
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

  test("null is as good as absent", () => {
    expect(
      readEmbeddingRequest(body({ encoding_format: null, dimensions: null, user: null })),
    ).toMatchObject({ format: "float" });
  });
});

describe("what is refused, and where", () => {
  test.each<[string, Record<string, unknown>, string, string]>([
    ["no model", { model: undefined }, "missing_required_fields", "model"],
    ["no input", { input: undefined }, "missing_required_fields", "input"],
    ["null as input", { input: null }, "missing_required_fields", "input"],
    ["an empty text", { input: "" }, "invalid_request_error", "input"],
    ["no entries", { input: [] }, "invalid_request_error", "input"],
    ["an empty entry", { input: ["a", ""] }, "invalid_request_error", "input[1]"],
    ["a number among texts", { input: ["a", 1] }, "invalid_request_error", "input[1]"],
    ["token ids that are none", { input: [1, -1] }, "invalid_request_error", "input"],
    ["an object as input", { input: { text: "a" } }, "invalid_request_error", "input"],
    [
      "a format that nobody knows",
      { encoding_format: "int8" },
      "invalid_request_error",
      "encoding_format",
    ],
    ["no dimensions", { dimensions: 0 }, "invalid_request_error", "dimensions"],
    ["half a dimension", { dimensions: 1.5 }, "invalid_request_error", "dimensions"],
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

test("tokens are estimated, or counted where they are ids", () => {
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

  test("others are refused", () => {
    expect(() => sortOfStrategy("constructor")).toThrow(
      expect.objectContaining({ code: "invalid_request_error", param: "X-Routing-Strategy" }),
    );
  });
});
