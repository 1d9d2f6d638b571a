import { expect, test } from "bun:test";
import { estimateTokens, splitTokens } from "./prompt.ts";

test("counts four characters per token, and at least one token", () => {
  expect(["", "a", "abcd", "abcde"].map(estimateTokens)).toEqual([1, 1, 1, 2]);
});

test("splits a text into well-formed tokens that join to it", () => {
  const text = "abc😀def😀😀 größe 漢字";
  const tokens = splitTokens(text);
  expect(tokens.join("")).toBe(text);
  expect(tokens.every((token) => token.isWellFormed())).toBe(true);
  expect(tokens[0]).toBe("abc😀");
});

test("returns no tokens for an empty text", () => {
  expect(splitTokens("")).toEqual([]);
});
