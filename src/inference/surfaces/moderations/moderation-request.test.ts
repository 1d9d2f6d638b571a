import { describe, expect, test } from "bun:test";
import { readModerationRequest } from "./moderations-call.ts";

describe("readModerationRequest accepts", () => {
  test.each<[string, unknown, string[]]>([
    ["a string", "one", ["one"]],
    ["strings", ["one", "two"], ["one", "two"]],
    ["objects of type text", [{ type: "text", text: "one" }, "two"], ["one", "two"]],
    ["32 texts", Array.from({ length: 32 }, () => "t"), Array.from({ length: 32 }, () => "t")],
  ])("%s", (_, input, texts) => expect(readModerationRequest({ input }).texts).toEqual(texts));

  test("32,000 characters of any size in bytes", () => {
    for (const text of ["x".repeat(32_000), "😀".repeat(32_000)])
      expect(readModerationRequest({ input: text }).texts).toEqual([text]);
  });
});

describe("readModerationRequest refuses and names the field for", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["no input", {}, "input"],
    ["a number", { input: 5 }, "input"],
    ["no texts", { input: [] }, "input"],
    ["33 texts", { input: Array.from({ length: 33 }, () => "t") }, "input"],
    ["32,001 characters", { input: "x".repeat(32_001) }, "input"],
    ["32,001 characters in a list", { input: ["a", "x".repeat(32_001)] }, "input[1]"],
    [
      "an image",
      { input: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA" } }] },
      "input[0]",
    ],
    ["an object without a type", { input: [{ text: "a" }] }, "input[0]"],
    ["a model that is not a string", { input: "a", model: 5 }, "model"],
    ["a session id that is too long", { input: "a", session_id: "s".repeat(257) }, "session_id"],
  ])("%s", (_, body, param) => {
    expect(() => readModerationRequest(body)).toThrow(
      expect.objectContaining({ code: "invalid_request", param }),
    );
  });
});
