import { expect, test } from "bun:test";
import { meantPath, patternOf } from "./mistyped-paths.ts";

const known = patternOf([
  "/v1/messages",
  "/api/v1/messages",
  "/v1/models/:model",
  "/v1beta/models/:model",
]);

test.each([
  ["/messages", "/v1/messages"],
  ["/v1/v1/messages", "/v1/messages"],
  ["/api/v1/v1/messages", "/v1/messages"],
  ["/v1/api/v1/messages", "/api/v1/messages"],
  ["/v1beta/v1beta/models/a", "/v1beta/models/a"],
  ["/v1/v1/none", undefined],
  ["/none", undefined],
  ["/", undefined],
])("%s means %s", (path, meant) => {
  expect(meantPath(path, known)).toBe(meant);
});
