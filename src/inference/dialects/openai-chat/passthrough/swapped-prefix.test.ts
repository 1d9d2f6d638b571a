import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import { swapped } from "./swapped-prefix.ts";

const shown = { id: '"shown"', model: '"acme/large"' };
const edits = new Map(Object.entries(shown));

describe("an event with the client's id and model", () => {
  test("shares its prefix with similar events", () => {
    const event =
      '{"id":"up","object":"x","model":"large","choices":[{"delta":{"content":"a"}}],"created":1}';
    const { text, prefix } = swapped(event, shown);
    expect([text, prefix]).toEqual([
      '{"id":"shown","object":"x","model":"acme/large","choices":[{"delta":{"content":"a"}}],"created":1}',
      {
        from: '{"id":"up","object":"x","model":"large",',
        to: '{"id":"shown","object":"x","model":"acme/large",',
      },
    ]);
  });

  test.each([
    ["model comes after choices", '{"id":"up","choices":[],"model":"large"}'],
    ["there are no choices", '{"id":"up","model":"large"}'],
    ["there is no id", '{"model":"large","choices":[]}'],
  ])("has no shared prefix if %s", (_, data) => {
    expect(swapped(data, shown)).toEqual({ text: editMembers(data, edits), prefix: undefined });
  });

  const member = fc.constantFrom(
    '"id":"up"',
    '"model":"large"',
    '"model" : 5',
    '"choices":[]',
    '"choices": [{"index":0}]',
    '"\\u0069d":"up"',
    '"created":1',
  );
  const members = fc.tuple(fc.array(member, { maxLength: 6 }), fc.constantFrom("", " ", "\n"));
  const data = members.map(([each, space]) => `{${space}${each.join(`,${space}`)}${space}}`);

  test("is edited correctly for any fields, also duplicate or escaped ones", () => {
    fc.assert(
      fc.property(data, (text) => {
        const { text: edited, prefix } = swapped(text, shown);
        expect(edited).toBe(editMembers(text, edits));
        if (prefix === undefined) return;
        expect([
          text.startsWith(prefix.from),
          text.slice(prefix.from.length).startsWith('"choices"'),
        ]).toEqual([true, true]);
        expect(prefix.to + text.slice(prefix.from.length)).toContain('"shown"');
      }),
      { numRuns: 2_000 },
    );
  });
});
