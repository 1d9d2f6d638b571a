import { expect, test } from "bun:test";
import { rateClassOf } from "./read-call.ts";

test.each([
  ["acme/tiny:free", "free-model"],
  ["ACME/Tiny:FREE", "free-model"],
  ["acme/tiny:free:nitro", "free-model"],
  ["service/free", "free-model"],
  ["service/free:floor", "free-model"],
  ["service/auto:free", "free-model"],
  ["service/auto:free[1m]", "free-model"],
  ["service/auto[1m]:free", "free-model"],
  ["acme/large", "paid"],
  ["acme/free", "paid"],
  ["acme/large:fast", "paid"],
  ["acme/freedom:freely", "paid"],
  ["my-service/free", "paid"],
  [undefined, "paid"],
  [7, "paid"],
] as const)("model %p has the rate class %s", (model, rateClass) => {
  expect(rateClassOf(model)).toBe(rateClass);
});
