import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../canonical/json.ts";
import { plainSchema } from "./plain-schemas.ts";

const text = { type: "string" };
const some = { a: text, b: text };
const object = (more: JsonObject): JsonObject => ({ type: "object", ...more });

describe("a member for a strict server", () => {
  const $defs = { a: text };
  test.each<[string, JsonObject | boolean, JsonObject]>([
    ["a reference stands alone", { $ref: "#/$defs/a", description: "x" }, { $ref: "#/$defs/a" }],
    ["a reference to nothing is any value", { $ref: "https://x.test/a" }, {}],
    ["a tuple of one", { type: "array", items: [text] }, { type: "array", items: text }],
    [
      "a tuple of several",
      { type: "array", items: [text, { $ref: "#/$defs/a", title: "x" }] },
      { type: "array", items: { anyOf: [text, { $ref: "#/$defs/a" }] } },
    ],
    ["an empty tuple", { type: "array", items: [] }, { type: "array", items: {} }],
    ["any value", true, {}],
    ["no value", false, { not: {} }],
    ["any items", { type: "array", items: true }, { type: "array", items: {} }],
    [
      "a type beside its forms",
      { type: "string", title: "x", anyOf: [{ enum: ["a"] }, { $ref: "#/$defs/a" }, true] },
      { title: "x", anyOf: [{ type: "string", enum: ["a"] }, { $ref: "#/$defs/a" }, text] },
    ],
    [
      "forms of one object",
      object({ properties: some, anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
      object({
        properties: some,
        description: '{anyOf: [{"required":["a"]},{"required":["b"]}]}',
      }),
    ],
    [
      "forms of which one is no object's",
      { anyOf: [text, object({ properties: some })], additionalProperties: false, required: true },
      { anyOf: [text, object({ properties: some })] },
    ],
    [
      "members that are required and not named",
      object({ properties: some, required: ["a", "c"], allOf: [{ required: ["b"] }] }),
      object({ properties: some, required: ["a"], allOf: [{ required: ["b"] }] }),
    ],
    ["no named member", { required: ["c"] }, {}],
    ["an older draft's switch", { type: "string", required: true }, text],
    ["listed texts", { enum: ["a", "b"] }, { type: "string", enum: ["a", "b"] }],
    ["listed numbers", { enum: [1, 2.5] }, { type: "number", enum: [1, 2.5] }],
    ["whole ones", { enum: [1, 2, null] }, { type: ["integer", "null"], enum: [1, 2, null] }],
    ["nothing but null", { enum: [null] }, { type: "null", enum: [null] }],
    ["listed values beside forms", { enum: ["a"], anyOf: [text] }, { type: "string", enum: ["a"] }],
    [
      "values that the type does not allow",
      { type: "string", nullable: true, enum: ["a", null] },
      { type: "string", nullable: true, enum: ["a"] },
    ],
    ["none that it allows", { type: "string", enum: [1, {}] }, { type: "string" }],
    [
      "values of several types",
      { title: "x", enum: ["a", 1, null] },
      {
        title: "x",
        anyOf: [
          { type: "string", enum: ["a"] },
          { type: "integer", enum: [1] },
          { type: "null", enum: [null] },
        ],
      },
    ],
  ])("%s", (_, member, plain) => {
    expect(plainSchema(object({ properties: { x: member }, $defs }))).toEqual(
      object({ properties: { x: plain }, $defs }),
    );
  });
});

describe("a whole schema for a strict server", () => {
  const node = object({ properties: { next: { $ref: "#/definitions/node" } } });
  const plainNode = object({ properties: { next: { $ref: "#/$defs/node" } } });
  test.each<[string, JsonObject, JsonObject]>([
    ["is an object's", {}, object({})],
    [
      "has definitions where they are looked for, once",
      { ...node, definitions: { node, other: text } },
      { ...plainNode, $defs: { node: plainNode } },
    ],
    [
      "is no reference",
      { $ref: "#/definitions/node", definitions: { node } },
      { ...plainNode, $defs: { node: plainNode } },
    ],
    [
      "has what was defined elsewhere among its definitions",
      object({ properties: { a: text, b: { $ref: "#/properties/a" } } }),
      object({
        properties: { a: text, b: { $ref: "#/$defs/properties_a" } },
        $defs: { properties_a: text },
      }),
    ],
    [
      "has no forms at its top",
      object({ anyOf: [object({ properties: { a: text } }), object({ properties: { b: true } })] }),
      object({ properties: { a: text, b: {} } }),
    ],
  ])("%s", (_, schema, plain) => {
    expect(plainSchema(schema)).toEqual(plain);
  });

  test("is the same object where nothing has to change", () => {
    const schema = object({
      properties: { items: { type: "array", items: { $ref: "#/$defs/a" } }, root: { $ref: "#" } },
      additionalProperties: false,
      $defs: { a: { type: "string", enum: ["x"], default: { items: [1] } } },
    });
    expect(plainSchema(schema)).toBe(schema);
  });
});
