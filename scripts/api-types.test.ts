import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { apiTypesText } from "./api-types.ts";

test("the dashboard's types match the API (npm run dashboard:types regenerates them)", () => {
  expect(readFileSync(join(import.meta.dirname, "../dashboard/src/lib/api-types.ts"), "utf8")).toBe(
    apiTypesText(),
  );
});
