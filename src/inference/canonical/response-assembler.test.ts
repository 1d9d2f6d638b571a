import { expect, test } from "bun:test";
import { ResponseAssembler } from "./response-assembler.ts";
import type { StreamPart } from "./response.ts";

const place = { choiceIndex: 0, itemIndex: 0 };

function assemble(parts: StreamPart[]): ResponseAssembler {
  const assembler = new ResponseAssembler();
  for (const part of parts) assembler.add(part);
  return assembler;
}

test("an interrupted stream gives its received content and the error", () => {
  const assembler = assemble([
    { type: "response-start", id: "r", model: "m", createdAtSeconds: 1 },
    { type: "text-start", ...place },
    { type: "text-delta", ...place, text: "Ha" },
    { type: "text-delta", ...place, text: "lf" },
    { type: "error", fault: "cut", error: { message: "gone" } },
  ]);
  expect(assembler.error?.error.message).toBe("gone");
  expect(assembler.response().choices).toEqual([
    { index: 0, parts: [{ type: "text", text: "Half" }], finish: { reason: "stop" } },
  ]);
});

test("empty items are omitted, and a function call without arguments has an empty object", () => {
  const { choices } = assemble([
    { type: "reasoning-start", ...place },
    { type: "reasoning-end", ...place },
    { type: "text-start", choiceIndex: 0, itemIndex: 1 },
    { type: "text-end", choiceIndex: 0, itemIndex: 1 },
    { type: "tool-call-start", choiceIndex: 0, itemIndex: 2, kind: "function", id: "c", name: "f" },
    { type: "tool-call-end", choiceIndex: 0, itemIndex: 2 },
  ]).response();
  expect(choices).toEqual([
    {
      index: 0,
      parts: [{ type: "tool-call", kind: "function", id: "c", name: "f", arguments: "{}" }],
      finish: { reason: "tool_calls" },
    },
  ]);
});

test("reasoning summaries are kept apart from the reasoning text", () => {
  const { choices } = assemble([
    { type: "reasoning-start", ...place, id: "rs_1" },
    { type: "reasoning-delta", ...place, text: "one", summaryIndex: 0 },
    { type: "reasoning-delta", ...place, text: "two", summaryIndex: 1 },
    { type: "reasoning-delta", ...place, text: "!", summaryIndex: 1 },
    { type: "reasoning-delta", ...place, text: "thought" },
    { type: "reasoning-end", ...place, encrypted: "e", provenance: { providerId: "acme" } },
  ]).response();
  expect(choices[0]?.parts).toEqual([
    {
      type: "reasoning",
      id: "rs_1",
      text: "thought",
      summary: ["one", "two!"],
      encrypted: "e",
      provenance: { providerId: "acme" },
    },
  ]);
});

test("choices are sorted by index", () => {
  const { choices } = assemble([
    { type: "text-delta", choiceIndex: 2, itemIndex: 0, text: "c" },
    { type: "text-delta", choiceIndex: 0, itemIndex: 0, text: "a" },
  ]).response();
  expect(choices.map((choice) => choice.index)).toEqual([0, 2]);
});
