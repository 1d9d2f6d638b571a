import { expect, test } from "bun:test";
import { estimateTokens, splitTokens } from "./prompt.ts";

test("counts four characters a token and at least one", () => {
  expect(["", "a", "abcd", "abcde"].map(estimateTokens)).toEqual([1, 1, 1, 2]);
});

test("cuts a text into tokens that join to it and are each well-formed", () => {
  const text = "abc😀def😀😀 größe 漢字";
  const tokens = splitTokens(text);
  expect(tokens.join("")).toBe(text);
  expect(tokens.every((token) => token.isWellFormed())).toBe(true);
  expect(tokens[0]).toBe("abc😀");
});

test("has no tokens for an empty text", () => {
  expect(splitTokens("")).toEqual([]);
});
