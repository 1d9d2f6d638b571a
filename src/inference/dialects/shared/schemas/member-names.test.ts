import { describe, expect, test } from "bun:test";
import { MemberRenamer, withLegalMembers } from "./member-names.ts";

describe("members of a tool's arguments", () => {
  test.each([
    [["city", "a.b-c_1"], {}],
    [["filter[id]", "x"], { "filter[id]": "filter_id_" }],
    [["a b", "a_b"], { "a b": expect.stringMatching(/^a_b__[0-9a-f]{8}$/) }],
    [["城市"], { 城市: expect.stringMatching(/^[a-zA-Z0-9_.-]{1,64}$/) }],
    [["k".repeat(65)], { ["k".repeat(65)]: expect.stringMatching(/^k{55}_[0-9a-f]{8}$/) }],
  ])("%j have names that Claude takes", (written, expected) => {
    const properties = Object.fromEntries(written.map((name) => [name, { type: "string" }]));
    const { schema, names } = withLegalMembers({ type: "object", properties });
    expect(Object.fromEntries(names)).toEqual(expected as Record<string, string>);
    const sent = Object.keys(schema.properties as object);
    expect(sent).toEqual(written.map((name) => names.get(name) ?? name));
    expect(new Set(sent).size).toBe(written.length);
  });

  test("are renamed wherever the schema names them, and not within", () => {
    const inner = { type: "object", properties: { "in[0]": {} }, required: ["in[0]"] };
    expect(
      withLegalMembers({
        type: "object",
        properties: { "a[]": inner, b: { $ref: "#/properties/a%5B%5D/properties/in[0]" } },
        required: ["a[]", "b"],
        dependentRequired: { "a[]": ["b"] },
      }).schema,
    ).toEqual({
      type: "object",
      properties: { a__: inner, b: { $ref: "#/properties/a__/properties/in[0]" } },
      required: ["a__", "b"],
      dependentRequired: { a__: ["b"] },
    });
  });
});

describe("arguments in pieces", () => {
  const names = new Map([
    ["filter_id_", "filter[id]"],
    ["a", 'q"\\'],
  ]);
  const written = String.raw` {"filter_id_" : ["filter_id_", {"a":"}{\"a\":1,"}], "x":{"filter_id_":1},"\u0061":"\\","z":"a"}`;
  const expected = String.raw` {"filter[id]" : ["filter_id_", {"a":"}{\"a\":1,"}], "x":{"filter_id_":1},"q\"\\":"\\","z":"a"}`;

  test("are renamed at every split, and a name is held back alone", () => {
    for (let first = 0; first <= written.length; first += 1) {
      const renamer = new MemberRenamer(names);
      const pieces = [written.slice(0, first), written.slice(first, first + 3)];
      const out = [...pieces, written.slice(first + 3)].map((piece) => renamer.push(piece));
      expect(out.join("") + renamer.end()).toBe(expected);
    }
    const renamer = new MemberRenamer(names);
    expect(['{"fil', 'ter_id_"', ':"v', "al"].map((piece) => renamer.push(piece))).toEqual([
      "{",
      '"filter[id]"',
      ':"v',
      "al",
    ]);
  });

  test.each(['["a","a"]', '{"a', '"a"', "a", '{"a\\"', "}}{"])("%j stay what they are", (text) => {
    const renamer = new MemberRenamer(names);
    expect(renamer.push(text) + renamer.end()).toBe(text);
  });
});
