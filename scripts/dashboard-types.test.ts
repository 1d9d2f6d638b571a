import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { typesPath, withChecksums } from "./dashboard-types.ts";

test("the dashboard's types match the API (npm run dashboard:types writes them again)", () => {
  const file = readFileSync(typesPath, "utf8");
  expect(file).toBe(withChecksums(file.split("\n").slice(3).join("\n")));
});
