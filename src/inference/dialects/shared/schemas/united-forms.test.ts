import { expect, test } from "bun:test";
import type { JsonObject } from "../../../canonical/json.ts";
import { unitedForms } from "./united-forms.ts";

const text = { type: "string" };

const cases: [name: string, schema: JsonObject, united: JsonObject, described: string[]][] = [
  [
    "a schema without forms as it is",
    { type: "object", properties: { a: { anyOf: [text, { type: "null" }] } } },
    { type: "object", properties: { a: { anyOf: [text, { type: "null" }] } } },
    [],
  ],
  [
    "members of which one is needed",
    {
      type: "object",
      description: "Finds it.",
      properties: { id: text, name: text },
      anyOf: [{ required: ["id"] }, { required: ["name"] }],
    },
    {
      type: "object",
      description: 'Finds it.\n\n{anyOf: [{"required":["id"]},{"required":["name"]}]}',
      properties: { id: text, name: text },
    },
    ["anyOf"],
  ],
  [
    "forms that differ in a member",
    {
      $defs: { close: { properties: { kind: { const: "close" } }, required: ["kind"] } },
      oneOf: [
        { properties: { kind: { const: "open" }, path: text }, required: ["kind", "path"] },
        { $ref: "#/$defs/close" },
      ],
    },
    {
      $defs: { close: { properties: { kind: { const: "close" } }, required: ["kind"] } },
      description: '{oneOf: [{"required":["kind","path"]},{"required":["kind"]}]}',
      type: "object",
      properties: { kind: { anyOf: [{ const: "open" }, { const: "close" }] }, path: text },
      required: ["kind"],
    },
    ["oneOf"],
  ],
  [
    "parts that hold at once, and lose nothing",
    {
      properties: { a: text },
      required: ["a"],
      allOf: [{ properties: { b: text }, required: ["b"] }, { properties: { a: text } }],
    },
    { type: "object", properties: { a: text, b: text }, required: ["a", "b"] },
    [],
  ],
  [
    "a form that leads to itself",
    { $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }] } }, anyOf: [{ $ref: "#/$defs/a" }, true] },
    { $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }] } }, type: "object", properties: {} },
    ["anyOf"],
  ],
];

test.each(cases)("the arguments of a tool are one object: %s", (_, schema, united, described) => {
  expect(unitedForms(schema)).toEqual({ schema: united, described });
});
