import { describe, expect, test } from "bun:test";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import type { JsonObject } from "../../../canonical/json.ts";
import { heldSchema } from "./held-schema.ts";

const objectOf = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  ...more,
});

const schemas: readonly (readonly [schema: JsonObject, described: readonly string[]])[] = [
  [objectOf({ age: { type: "integer", minimum: 1, maximum: 9 } }), ["minimum", "maximum"]],
  [objectOf({ name: { type: "string", minLength: 1, description: "Whose?" } }), ["minLength"]],
  [objectOf({ list: { type: "array", items: { type: "string" }, minItems: 2 } }), ["minItems"]],
  [objectOf({ list: { type: "array", items: { type: "string" }, minItems: 1 } }), []],
  [objectOf({ at: { type: "string", format: "date-time" } }), []],
  [objectOf({ at: { type: "string", format: "color" } }), ["format"]],
  [objectOf({ kind: { enum: ["a", "b"] }, one: { const: 1 } }), []],
  [objectOf({ value: { anyOf: [{ type: "string" }, { type: "null" }] } }), []],
  [objectOf({ value: { oneOf: [{ type: "string" }, { type: "number" }] } }), ["oneOf"]],
  [objectOf({ city: { $ref: "#/$defs/city" } }, { $defs: { city: objectOf({}) } }), []],
  [objectOf({ a: objectOf({ b: { type: "number", multipleOf: 5 } }) }), ["multipleOf"]],
];

describe("the form of a schema that Claude is held to", () => {
  test.each(schemas)("%j is written as Anthropic's SDK writes it", (schema, described) => {
    const held = heldSchema(schema);
    expect(held?.schema).toEqual(transformJSONSchema(schema as never) as JsonObject);
    expect(held?.described).toEqual([...described]);
  });

  test.each([
    [objectOf({ map: { type: "object", additionalProperties: { type: "string" } } })],
    [objectOf({ any: { type: "object", additionalProperties: true } })],
    [objectOf({ anything: {} })],
    [objectOf({ elsewhere: { $ref: "https://x.test/schema.json" } })],
    [
      objectOf(
        { tree: { $ref: "#/$defs/tree" } },
        { $defs: { tree: objectOf({ child: { $ref: "#/$defs/tree" } }) } },
      ),
    ],
  ])("%j has none", (schema) => {
    expect(heldSchema(schema)).toBeUndefined();
  });
});
