import { expect, test } from "bun:test";
import { readDirectives, withoutDirectives } from "./directives.ts";

test("reads names with and without a value, anywhere in the text", () => {
  expect(readDirectives("Hello sandbox:delay_ms=200, then sandbox:empty.")).toEqual({
    delay_ms: 200,
    empty: 1,
  });
});

test("takes the last of two values, up to the maximum", () => {
  expect(readDirectives("sandbox:status=429 sandbox:status=99999")).toEqual({ status: 599 });
});

test("ignores ordinary text", () => {
  const text = "docker run sandbox:latest toString sandbox:toString sandbox:";
  expect(readDirectives(text)).toEqual({});
  expect(withoutDirectives(text)).toBe(text);
});

test("removes directives from a text", () => {
  expect(withoutDirectives("Say hello sandbox:tokens=5")).toBe("Say hello");
});
