import { describe, expect, test } from "bun:test";
import { cappedResult } from "./tool-result.ts";

const bytesMax = 1_024;
const text = (words: string) => ({ type: "text" as const, text: words });
const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

describe("a result that is too large", () => {
  test.each([
    ["a text", [text("x".repeat(5_000))]],
    ["a text whose characters are escaped", [text('"\n\u0001'.repeat(2_000))]],
    ["a text of characters of several bytes", [text("😀".repeat(2_000))]],
    ["several contents", Array.from({ length: 40 }, (_, index) => text(`${index} `.repeat(30)))],
    ["an image", [{ type: "image" as const, data: "A".repeat(5_000), mimeType: "image/png" }]],
  ])("is cut to its limit, notice included: %s", (_, content) => {
    const capped = cappedResult({ content }, bytesMax);
    expect(bytesOf(capped)).toBeLessThanOrEqual(bytesMax);
    expect(capped.content.at(-1)).toMatchObject({ text: expect.stringContaining("was cut") });
    if (content[0]?.type === "text") expect(bytesOf(capped)).toBeGreaterThan(bytesMax / 2);
  });

  test("keeps what it says of itself, unless that alone is too much", () => {
    const content = [text("x".repeat(5_000))];
    const small = cappedResult({ content, isError: true, _meta: { a: 1 } }, bytesMax);
    expect(small).toMatchObject({ isError: true, _meta: { a: 1 } });
    const large = cappedResult({ content, _meta: { a: "y".repeat(5_000) } }, bytesMax);
    expect(large._meta).toBeUndefined();
    expect(bytesOf(large)).toBeLessThanOrEqual(bytesMax);
  });
});

test("a result of exactly the limit is passed on as it is", () => {
  const size = bytesMax - bytesOf({ content: [text("")] });
  const result = { content: [text("x".repeat(size))] };
  expect(bytesOf(result)).toBe(bytesMax);
  expect(cappedResult(result, bytesMax)).toBe(result);
});
