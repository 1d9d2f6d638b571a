import { expect, test } from "bun:test";
import { countOf } from "../../../dashboard/src/lib/format.ts";
import { countText } from "../../../src/platform/kernel/count-text.ts";

test.each([
  [0, "0 keys"],
  [1, "1 key"],
  [2, "2 keys"],
])("the gateway and the dashboard say %d as %s", (count, text) => {
  expect(countText(count, "key")).toBe(text);
  expect(countOf(count, "key")).toBe(text);
});
