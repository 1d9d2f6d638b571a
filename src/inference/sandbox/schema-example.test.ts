import { expect, test } from "bun:test";
import { z } from "zod";
import { exampleOfSchema } from "./schema-example.ts";

const tree: z.ZodType = z.object({
  value: z.int(),
  get children() {
    return z.array(tree);
  },
});
const list: z.ZodType = z.object({
  head: z.string(),
  get tail() {
    return list.nullable();
  },
});

const cases: Record<string, z.ZodType> = {
  scalars: z.object({ a: z.string(), b: z.number(), c: z.int(), d: z.boolean(), e: z.null() }),
  formats: z.object({
    a: z.email(),
    b: z.uuid(),
    c: z.url(),
    d: z.iso.datetime(),
    e: z.iso.date(),
    f: z.ipv4(),
  }),
  bounds: z.object({
    a: z.int().min(7).max(9),
    b: z.number().gt(0).lt(1),
    c: z.number().multipleOf(5).min(11),
    d: z.string().min(30),
    e: z.string().max(3),
    f: z.int().max(-2),
    g: z.array(z.int()).min(3),
  }),
  pattern: z.object({ a: z.string().regex(/^[A-Z]{3}-\d$/), b: z.string().regex(/^\d{5}$/) }),
  choice: z.object({ a: z.enum(["x", "y"]), b: z.literal(5), c: z.union([z.string(), z.int()]) }),
  "nullable and optional": z.object({ a: z.string().nullable(), b: z.string().optional() }),
  nested: z.object({ a: z.array(z.object({ b: z.tuple([z.string(), z.int()]) })) }),
  "discriminated union": z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("one"), a: z.int() }),
    z.object({ kind: z.literal("two"), b: z.string() }),
  ]),
  intersection: z.intersection(z.object({ a: z.int() }), z.object({ b: z.string() })),
  "recursive array": tree,
  "recursive through null": list,
};

for (const [name, schema] of Object.entries(cases)) {
  test(`an example satisfies its schema: ${name}`, () => {
    const example = exampleOfSchema(z.toJSONSchema(schema));
    expect(() => schema.parse(example)).not.toThrow();
    expect(exampleOfSchema(z.toJSONSchema(schema))).toEqual(example);
  });
}

test("reads Gemini's upper-case type names", () => {
  const schema = { type: "OBJECT", properties: { n: { type: "INTEGER" } }, required: ["n"] };
  expect(exampleOfSchema(schema)).toEqual({ n: 1 });
});

test("comes to an end with schemas that nothing satisfies", () => {
  const endless = { type: "object", properties: { self: { $ref: "#" } }, required: ["self"] };
  expect(exampleOfSchema(endless)).toHaveProperty("self");
  expect(exampleOfSchema({ allOf: [{ $ref: "#" }] })).toBeString();
  expect(exampleOfSchema({ $ref: "#/nowhere" })).toBe("simulated value");
});
