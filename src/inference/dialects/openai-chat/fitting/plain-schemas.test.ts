import { describe, expect, test } from "bun:test";
import { plainSchema } from "./plain-schemas.ts";

describe("a schema for a strict server", () => {
  test.each([
    ["a reference stands alone", { $ref: "#/$defs/a", description: "x" }, { $ref: "#/$defs/a" }],
    [
      "a tuple of one",
      { type: "array", items: [{ type: "string" }] },
      { type: "array", items: { type: "string" } },
    ],
    [
      "a tuple of several",
      { type: "array", items: [{ type: "string" }, { $ref: "#/a", title: "x" }] },
      { type: "array", items: { anyOf: [{ type: "string" }, { $ref: "#/a" }] } },
    ],
    ["an empty tuple", { type: "array", items: [] }, { type: "array", items: {} }],
    [
      "deep within properties, definitions and alternatives",
      {
        properties: { a: { anyOf: [{ $ref: "#/a", title: "x" }] } },
        $defs: { b: { items: [{}] } },
      },
      { properties: { a: { anyOf: [{ $ref: "#/a" }] } }, $defs: { b: { items: {} } } },
    ],
  ])("%s", (_, schema, plain) => {
    expect(plainSchema(schema)).toEqual(plain);
  });

  test("is the same object where nothing has to change", () => {
    const schema = {
      type: "object",
      properties: { items: { type: "array", items: { $ref: "#/$defs/a" } } },
      $defs: { a: { enum: [["x"]], default: { items: [1] } } },
    };
    expect(plainSchema(schema)).toBe(schema);
  });
});
