import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { leastMicroseconds } from "../../../../test/support/least-microseconds.ts";
import {
  editInParts,
  editMembers,
  editScanned,
  joined,
  replaceEach,
  scanMembers,
} from "./json-members.ts";

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const key = fc.oneof(
  fc.constantFrom(
    "model",
    "stream",
    "messages",
    'a"b',
    "back\\slash",
    "ключ",
    "😀",
    "",
    "\u0000",
    "__proto__",
  ),
  fc.string({ unit: "grapheme" }),
);
const scalar = fc.oneof(
  fc.constantFrom("0", "-1.5e3", "true", "null", '""', '"\\\\"', '"\\""', '"a\\\\\\"]}"'),
  fc.json(),
);
const escapedKey = (name: string): string =>
  `"${[...JSON.stringify(name).slice(1, -1)]
    .map((letter) => (letter === "m" ? "\\u006d" : letter))
    .join("")}"`;

const member = fc.record({
  key,
  value: scalar,
  before: space,
  afterKey: space,
  afterColon: space,
  after: space,
  escape: fc.boolean(),
});
const objectText = fc
  .tuple(fc.array(member, { maxLength: 8 }), space, space, space)
  .map(([members, lead, inside, trail]) => {
    const body = members.map(
      (one) =>
        `${one.before}${one.escape ? escapedKey(one.key) : JSON.stringify(one.key)}${one.afterKey}:${one.afterColon}${one.value}${one.after}`,
    );
    return `${lead}{${body.length === 0 ? inside : body.join(",")}}${trail}`;
  });
const editList = fc.array(fc.tuple(key, fc.option(scalar, { nil: undefined })), { maxLength: 5 });

/** JSON.parse keeps `__proto__` as an own member, so objects are compared as sorted entries. */
const entriesOf = (text: string): [string, unknown][] =>
  Object.entries(JSON.parse(text) as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));

describe("scanMembers", () => {
  test("finds the same members as JSON.parse, for any spacing and escapes", () => {
    fc.assert(
      fc.property(objectText, (text) => {
        const members = scanMembers(text);
        const found = new Map(
          members.map((one) => [
            one.key,
            JSON.parse(text.slice(one.valueStart, one.valueEnd)) as unknown,
          ]),
        );
        expect([...found].sort(([a], [b]) => (a < b ? -1 : 1))).toEqual(entriesOf(text));
        for (const one of members) expect(text[one.keyStart]).toBe('"');
      }),
      { numRuns: 400 },
    );
  });

  test("skips nested values", () => {
    const text = '{"a":[{"b":"]}\\"{"},[[]]],"c":{"d":{}},"e":1}';
    expect(
      scanMembers(text).map((one) => [one.key, text.slice(one.valueStart, one.valueEnd)]),
    ).toEqual([
      ["a", '[{"b":"]}\\"{"},[[]]]'],
      ["c", '{"d":{}}'],
      ["e", "1"],
    ]);
  });

  const broken = [
    "",
    " ",
    "[]",
    "1",
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    "{a:1}",
    '{"a" 1}',
    '{"a":}',
    '{"a":"x}',
    '{"a":[1}',
    '{"a":{"b":1]}',
    '{"a":1}x',
    '{"a":1 "b":2}',
    "{,}",
    '{"a":1"b":2}',
    '{"a":"\\"}',
  ];
  test.each(broken)("throws a SyntaxError for %p", (text) => {
    expect(() => scanMembers(text)).toThrow(SyntaxError);
  });
});

describe("replaceEach", () => {
  const replacements = fc.uniqueArray(fc.tuple(key, scalar), {
    maxLength: 4,
    selector: ([name]) => name,
  });

  test("returns the same text as editing by members, or undefined", () => {
    fc.assert(
      fc.property(objectText, replacements, (text, list) => {
        const names = list.map(([name]) => name);
        const replaced = replaceEach(text, names, (index) => list[index]?.[1] ?? "");
        if (replaced !== undefined)
          expect(replaced).toBe(editScanned(text, scanMembers(text), new Map(list)));
      }),
      { numRuns: 400 },
    );
  });

  test("passes the position of each value", () => {
    const text = ' { "a" : [1, {"b": "]"}] , "b":"x" }';
    const replaced = replaceEach(
      text,
      ["b", "a"],
      (index, start, end) => `<${index} ${text.slice(start, end)}>`,
    );
    expect(replaced).toBe(' { "a" : <1 [1, {"b": "]"}]> , "b":<0 "x"> }');
  });

  test.each([
    ["a missing name", '{"a":1}', ["a", "b"]],
    ["a duplicate name", '{"a":1,"a":2}', ["a"]],
    ["a name with an escape", '{"\\u0061":1,"a":2}', ["a"]],
    ["text after the object", '{"a":1} x', ["a"]],
  ])("returns undefined for %s", (_, text, names) => {
    expect(replaceEach(text, names, () => "0")).toBeUndefined();
  });
});

describe("editMembers", () => {
  test("gives text that parses to the object with the edits applied", () => {
    fc.assert(
      fc.property(objectText, editList, (text, list) => {
        const edits = new Map(list);
        const wanted = new Map(entriesOf(text));
        for (const [name, value] of edits) {
          if (value === undefined) wanted.delete(name);
          else wanted.set(name, JSON.parse(value) as unknown);
        }
        const edited = editMembers(text, edits);
        expect(entriesOf(edited)).toEqual([...wanted].sort(([a], [b]) => (a < b ? -1 : 1)));
      }),
      { numRuns: 600 },
    );
  });

  test("changes nothing without edits", () => {
    fc.assert(
      fc.property(objectText, (text) => {
        expect(editMembers(text, new Map())).toBe(text);
        expect(editMembers(text, new Map([["no such member", undefined]]))).toBe(text);
      }),
    );
  });

  test("changes only the replaced value", () => {
    fc.assert(
      fc.property(objectText, scalar, fc.nat(), (text, value, pick) => {
        const members = scanMembers(text);
        const chosen = members[pick % Math.max(1, members.length)];
        fc.pre(
          chosen !== undefined && members.filter((one) => one.key === chosen.key).length === 1,
        );
        if (chosen === undefined) return;
        expect(editMembers(text, new Map([[chosen.key, value]]))).toBe(
          text.slice(0, chosen.valueStart) + value + text.slice(chosen.valueEnd),
        );
      }),
    );
  });

  const rows: [text: string, edits: [string, string | undefined][], expected: string][] = [
    ['{"model":"a","n":1}', [["model", '"b"']], '{"model":"b","n":1}'],
    ['{ "model" : "a" , "n":1 }\n', [["model", '"b"']], '{ "model" : "b" , "n":1 }\n'],
    ['{"a":1, "b":2,  "c":3}', [["b", undefined]], '{"a":1,  "c":3}'],
    ['{"a":1, "b":2}', [["a", undefined]], '{"b":2}'],
    ['{"a":1, "b":2 }', [["b", undefined]], '{"a":1 }'],
    ['{ "a":1 }', [["a", undefined]], "{  }"],
    [
      "{}",
      [
        ["a", "1"],
        ["b", "[2]"],
      ],
      '{"a":1,"b":[2]}',
    ],
    [" { } ", [["a", "1"]], ' {"a":1 } '],
    ['{"a":1 }', [["b", "2"]], '{"a":1,"b":2 }'],
    ['{"a":1,"a":2}', [["a", "3"]], '{"a":3,"a":3}'],
    [
      '{"a":1,"a":2}',
      [
        ["a", "3"],
        ["b", "4"],
      ],
      '{"a":3,"a":3,"b":4}',
    ],
    ['{"a":1,"a":2,"b":0}', [["a", undefined]], '{"b":0}'],
    ['{"\\u006dodel":"a"}', [["model", '"b"']], '{"\\u006dodel":"b"}'],
    [
      '{"a":1}',
      [
        ["a", undefined],
        ["b", "2"],
      ],
      '{"b":2}',
    ],
  ];
  test.each(rows)("edits %s with %j to %s", (text, edits, expected) => {
    expect(editMembers(text, new Map(edits))).toBe(expected);
  });

  test.each(rows)("%s with %j becomes the same in parts, behind a long member", (text, edits) => {
    const long = `"long":"${'a\\"b'.repeat(20_000)}"`;
    const separator = /^\s*\{\s*\}/.test(text) ? "" : ",";
    const lengthened = text.replace("{", () => `{${long}${separator}`);
    const parts = editInParts(lengthened, new Map(edits));
    expect(joined(parts)).toBe(editMembers(lengthened, new Map(edits)));
    expect(parts.length).toBeGreaterThan(1);
  });

  test("a megabyte of text is edited quickly", () => {
    const messages = JSON.stringify([{ role: "user", content: 'x\\"y '.repeat(200_000) }]);
    const text = `{"model":"acme/large","messages":${messages},"stream":false}`;
    const edits = new Map([
      ["model", '"large-v2"'],
      ["stream", "true"],
    ]);
    expect(editMembers(text, edits).length).toBe(text.length - 3);
    const plain = `{"model":"m","messages":[{"role":"user","content":"${"a".repeat(1_000_000)}"}]}`;
    const plainMs = leastMicroseconds(() => scanMembers(plain), { calls: 1, batches: 20 }) / 1000;
    console.log(`one plain string of 1 MB: ${(plainMs * 1000).toFixed(0)} µs`);
    expect(plainMs).toBeLessThan(20);
  });
});
