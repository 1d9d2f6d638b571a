import { expect, test } from "bun:test";
import { wordErrors, wordsOf } from "./word-errors.ts";

test("Markdown syntax is not counted as words", () => {
  expect(wordsOf("# A title\n\n- one \\<b>\n\n| a | b |\n| --- | --- |\n| 1.50 | x |")).toEqual([
    "A",
    "title",
    "one",
    "<b>",
    "a",
    "b",
    "1.50",
    "x",
  ]);
});

test.each([
  ["one two three", "one two three", 0],
  ["one two three", "one too three", 1],
  ["one two three", "one three", 1],
  ["one two three", "one two and three", 1],
  ["one two three", "three two one", 2],
  ["one two three", "", 3],
  ["", "one", 1],
])("%p read as %p counts the word errors", (expected, read, errors) => {
  expect(wordErrors(wordsOf(expected), wordsOf(read))).toBe(errors);
});
