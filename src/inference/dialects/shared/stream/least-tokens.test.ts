import { expect, test } from "bun:test";
import { leastTokensOf, TokenFloor } from "./least-tokens.ts";

test.each([
  ["words", ["one two ", "three"], 3],
  ["a word in pieces", ["wo", "rd"], 1],
  ["white space alone", ["  \n\n\t  "], 0],
  ["a line", ["=".repeat(500)], 1],
  ["a long word", ["ab".repeat(40)], 3],
  ["Chinese", ["机器学习模型"], 1],
])("%s: no tokenizer makes fewer tokens", (_, pieces, tokens) => {
  const floor = new TokenFloor();
  expect(pieces.reduce((sum, piece) => sum + floor.add(piece), 0)).toBe(tokens);
});

test.each([
  [{ choices: [{ delta: { content: "a b", reasoning: " c", reasoning_content: " c" } }] }, 2, 1],
  [{ contentBlockIndex: 0, delta: { text: "a b" } }, 2, 0],
  [{ delta: { reasoningContent: { text: "a b" } } }, 0, 2],
  [{ type: "response.reasoning_summary_text.delta", delta: "a b" }, 0, 2],
  [{ type: "response.output_text.done", text: "a b" }, 0, 0],
  [
    { candidates: [{ content: { parts: [{ text: "a", thought: true }, { text: " b c" }] } }] },
    2,
    1,
  ],
  [
    { choices: [{ delta: { annotations: [{ content: "a b c" }] } }], citations: [{ text: "a b" }] },
    0,
    0,
  ],
])("counts the new content of an event alone: %j", (event, visible, thought) => {
  expect(leastTokensOf(JSON.stringify(event), new TokenFloor())).toEqual({ visible, thought });
});
