import { expect, test } from "bun:test";
import type { JsonObject } from "../../../canonical/json.ts";
import { currentSchema } from "./current-schema.ts";

const number = { type: "number" };

test.each<[string, JsonObject, JsonObject]>([
  ["a list of anything", { type: "array" }, { type: "array", items: {} }],
  ["one of two types", { type: ["string", "array"] }, { type: ["string", "array"], items: {} }],
  [
    "a tuple",
    { type: "array", items: [number, { type: "array" }], maxItems: 2 },
    {
      type: "array",
      prefixItems: [number, { type: "array", items: {} }],
      items: {},
      maxItems: 2,
    },
  ],
  [
    "a closed tuple",
    { items: [number], additionalItems: false },
    { prefixItems: [number], maxItems: 1 },
  ],
  [
    "a tuple with more behind it",
    { items: [number], additionalItems: { type: "string" } },
    { prefixItems: [number], items: { type: "string" } },
  ],
  [
    "a tuple of now",
    { type: "array", prefixItems: [number] },
    {
      type: "array",
      prefixItems: [number],
      items: {},
    },
  ],
  [
    "an exclusive bound",
    { type: "integer", exclusiveMinimum: true, minimum: 0, maximum: 9 },
    { type: "integer", exclusiveMinimum: 0, maximum: 9 },
  ],
  ["an inclusive bound", { exclusiveMaximum: false, maximum: 9 }, { maximum: 9 }],
  [
    "members without a value, and a requirement of their own",
    {
      description: null,
      properties: { a: { type: "string", required: true, default: null, enum: [null] } },
    },
    { properties: { a: { type: "string", default: null, enum: [null] } } },
  ],
  [
    "what is within",
    {
      $defs: { list: { type: "array" } },
      anyOf: [{ type: "array" }],
      additionalProperties: { type: "array" },
      default: { type: "array" },
    },
    {
      $defs: { list: { type: "array", items: {} } },
      anyOf: [{ type: "array", items: {} }],
      additionalProperties: { type: "array", items: {} },
      default: { type: "array" },
    },
  ],
])("%s is written as the draft of 2020-12 has it", (_, schema, expected) => {
  expect(currentSchema(schema, { items: true })).toEqual(expected);
  expect(currentSchema(expected, { items: true })).toBe(expected);
});

test("properties may have the names of keywords", () => {
  const schema = {
    type: "object",
    properties: { items: { type: "string" }, required: { type: "boolean" }, type: number },
    required: ["items"],
  };
  expect(currentSchema(schema, { items: true })).toBe(schema);
});

test("lists have items only where they need them", () => {
  const list = { type: "array" };
  expect(currentSchema(list, { items: false })).toBe(list);
  expect(currentSchema({ ...list, items: [number] }, { items: false })).toEqual({
    ...list,
    prefixItems: [number],
  });
});
