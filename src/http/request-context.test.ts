import { expect, test } from "bun:test";
import { pathOf, queryOf } from "./request-context.ts";

test.each([
  ["http://127.0.0.1:8787/api/v1/models", "/api/v1/models"],
  ["http://127.0.0.1:8787/api/v1/models?provider=a/b", "/api/v1/models"],
  ["http://[::1]:8787/v1/keys", "/v1/keys"],
  ["http://[::zz/api/v1/keys", "/api/v1/keys"],
  ["/api/v1/credits?x=//y", "/api/v1/credits"],
  ["http://host", ""],
])("the path of %p is %p", (url, path) => {
  expect(pathOf({ url })).toBe(path);
});

test("query parameters are read from any URL, however broken its host", () => {
  expect(queryOf({ url: "/generation?id=gen_1&x=a%20b" }).get("id")).toBe("gen_1");
  expect(queryOf({ url: "http://bad host/generation?id=gen_1&x=a%20b" }).get("x")).toBe("a b");
  expect([...queryOf({ url: "http://host/generation" })]).toEqual([]);
});
