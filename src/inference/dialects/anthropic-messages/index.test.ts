import { expect, test } from "bun:test";
import { estimateMessagesInput } from "./index.ts";

const ask = (content: unknown): Record<string, unknown> => ({
  messages: [{ role: "user", content }],
});
const base = estimateMessagesInput(ask(""));
const more = (body: Record<string, unknown>): number =>
  estimateMessagesInput({ ...ask(""), ...body }) - base;

test("estimateMessagesInput counts text by bytes in any position", () => {
  const text = "x".repeat(400);
  expect(estimateMessagesInput(ask(text)) - base).toBe(100);
  expect(estimateMessagesInput(ask([{ type: "text", text }])) - base).toBe(100);
  expect(more({ system: text })).toBe(100);
  expect(more({ system: [{ type: "text", text }] })).toBe(100);
  expect(
    estimateMessagesInput(
      ask([{ type: "tool_result", tool_use_id: "a", content: [{ type: "text", text }] }]),
    ) - base,
  ).toBe(108);
  expect(
    estimateMessagesInput(ask([{ type: "document", source: { type: "text", data: text } }])) - base,
  ).toBe(100);
});

test("estimateMessagesInput counts tools with their schemas", () => {
  expect(
    more({
      tools: [{ name: "f", description: "x".repeat(4_000), input_schema: { type: "object" } }],
    }),
  ).toBeGreaterThan(1_300);
});

test("estimateMessagesInput counts an image as a fixed size", () => {
  const image = (size: number): unknown => [
    { type: "image", source: { type: "base64", media_type: "image/png", data: "A".repeat(size) } },
  ];
  expect(estimateMessagesInput(ask(image(1_000_000)))).toBe(estimateMessagesInput(ask(image(10))));
  expect(estimateMessagesInput(ask(image(10))) - base).toBe(1_600);
});

test("estimateMessagesInput counts a PDF by pages", () => {
  const pdf = [
    {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "A".repeat(1_000_000) },
    },
  ];
  expect(estimateMessagesInput(ask(pdf)) - base).toBe(20_000);
});

test("estimateMessagesInput ignores earlier thinking, and accepts bodies of any shape", () => {
  expect(
    estimateMessagesInput(ask([{ type: "thinking", thinking: "x".repeat(400), signature: "s" }])),
  ).toBe(base);
  for (const body of [
    {},
    { messages: 1, tools: {}, system: 3 },
    { messages: [null, 1, { content: [null, 4] }] },
  ]) {
    expect(estimateMessagesInput(body)).toBeGreaterThanOrEqual(0);
  }
});
