import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import { AlikeEvents, swapped } from "./alike-events.ts";
import { type ChatChunk, ChatRelay } from "./passthrough-stream.ts";

const prefix = { from: '{"id":"up","model":"large",', to: '{"id":"shown","model":"acme/large",' };
const eventOf = (choice: string): string => `${prefix.from}"choices":[${choice}]}`;
const saying = (text: string, index = 0): string =>
  eventOf(`{"index":${index},"delta":{"content":"${text}"},"finish_reason":null}`);

/** Learns an event that the client is shown with another start. */
const learn = (alike: AlikeEvents, data: string, swap = prefix): void =>
  alike.learn(data, {
    chunk: JSON.parse(data) as ChatChunk,
    prefix: swap,
    shown: data.replace(swap.from, swap.to),
  });

function learned(data: string): AlikeEvents {
  const alike = new AlikeEvents();
  learn(alike, data);
  return alike;
}

describe("events that differ only in their text", () => {
  test("are recognized after one was read, with their counts", () => {
    const alike = learned(saying("Hello", 3));
    expect(alike.find(saying(" wörld 👋", 3))).toEqual({
      frames: `data: ${saying(" wörld 👋", 3).replace('"up"', '"shown"').replace('"large"', '"acme/large"')}\n\n`,
      index: 3,
      characters: 9,
    });
  });

  test("may contain escapes, which count as their characters", () => {
    expect(learned(saying("Hello")).find(saying('\\n\\"\\\\\\u00E9 end'))?.characters).toBe(8);
  });

  test.each([
    ["punctuation", ",", "\\n"],
    ["another field's text", "assistant", "user"],
  ])("are not learned if their text equals %s", (_, text, other) => {
    const bare = { from: '{"id":1,"model":2,', to: '{"id":3,"model":4,' };
    const saying = (role: string, content: string): string =>
      `${bare.from}"choices":[{"index":0,"delta":{"role":"${role}","content":"${content}"}}]}`;
    const alike = new AlikeEvents();
    const data = saying("assistant", text);
    learn(alike, data, bare);
    expect([alike.find(saying("assistant", other)), alike.find(saying(other, text))]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("are not recognized over several lines", () => {
    const data = eventOf('{"index":0,"delta":\n{"content":"a"}}');
    const text = `data: ${data}\n\n`;
    const alike = learned(data);
    expect([alike.take({ text, position: 0, isBetween: true }), alike.find(data)]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("are taken in a row from a stream", () => {
    const wire = ["a", "\\n", "wörld"].map((text) => `data: ${saying(text)}\n\n`).join("");
    const finish = `data: ${saying("x").replace("null", '"stop"')}\n\n`;
    const events = { text: `: ping\n${wire}${finish}`, position: 7, isBetween: true };
    const alike = learned(saying("Hello"));
    expect(alike.take(events)).toEqual({
      frames: wire.replaceAll('"up"', '"shown"').replaceAll('"large"', '"acme/large"'),
      index: 0,
      characters: 7,
    });
    expect([events.position, alike.take(events)]).toEqual([7 + wire.length, undefined]);
  });

  test.each([
    ["in the middle of an event", { text: `data: ${saying("a")}\n\n`, isBetween: false }],
    ["at a comment", { text: `: ping\ndata: ${saying("a")}\n\n` }],
    ["at one without a blank line", { text: `data: ${saying("a")}\n` }],
    ["at one with another line", { text: `data: ${saying("a")}\ndata: \n\n` }],
  ])("are not taken %s", (_, stands) => {
    const events = { position: 0, isBetween: true, ...stands };
    expect([learned(saying("Hello")).take(events), events.position]).toEqual([undefined, 0]);
  });

  test.each([
    ["for another choice", saying("x", 1)],
    ["with an invalid escape", saying("line\\x")],
    ["with an incomplete escape", saying("\\u00e")],
    ["with a quote and another field", saying('x","refusal":"no')],
    ["with an invalid character", saying("tab\there")],
    ["without text", saying("")],
    ["if shorter than the form", `${prefix.from}"choices":[]}`],
    ["if truncated", saying("x").slice(0, -1)],
    ["with a finish reason", saying("x").replace("null", '"stop"')],
  ])("are not recognized %s", (_, data) => {
    expect(learned(saying("Hello")).find(data)).toBeUndefined();
  });

  test("are not recognized where one event holds what looks like two", () => {
    const alike = learned(saying("Hello"));
    expect(alike.find(saying(", you"))).toBeDefined();
    expect(alike.find(`${saying("a")}\n\ndata: ${saying("b")}`)).toBeUndefined();
  });

  test.each([
    ["tool calls", eventOf('{"index":0,"delta":{"content":"a","tool_calls":[{"index":0}]}}')],
    ["two texts", eventOf('{"index":0,"delta":{"content":"a","reasoning":"b"}}')],
    ["a finish", eventOf('{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}')],
    [
      "two choices",
      eventOf('{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}'),
    ],
    ["usage", saying("a").replace("]}", '],"usage":{"prompt_tokens":1}}')],
    [
      "usage in Groq's wrapper",
      saying("a").replace("]}", '],"x_groq":{"usage":{"prompt_tokens":1}}}'),
    ],
    ["its text as a field name", saying("index")],
  ])("are not learned from an event with %s", (_, data) => {
    const alike = learned(data);
    expect(
      alike.find(data.replace('"a"', '"x"').replace('"content":"index"', '"content":"x"')),
    ).toBeUndefined();
  });

  test("are rendered like the event that was learned", () => {
    const bare = (text: string): string => eventOf(`{"index":0,"delta":{"content":"${text}"}}`);
    const alike = new AlikeEvents();
    const shown = saying("Hello").replace(prefix.from, prefix.to);
    alike.learn(bare("Hello"), { chunk: JSON.parse(bare("Hello")) as ChatChunk, prefix, shown });
    expect(alike.find(bare(", you"))?.frames).toBe(
      `data: ${saying(", you").replace(prefix.from, prefix.to)}\n\n`,
    );
  });

  test("are not recognized if the client does not receive their text", () => {
    const alike = new AlikeEvents();
    const shown = eventOf('{"index":0,"delta":{},"finish_reason":null}');
    alike.learn(saying("Hello"), {
      chunk: JSON.parse(saying("Hello")) as ChatChunk,
      prefix,
      shown,
    });
    expect(alike.find(saying("Hello"))).toBeUndefined();
  });

  test("include reasoning, in either field", () => {
    for (const name of ["reasoning", "reasoning_content"]) {
      const thinking = (text: string): string =>
        eventOf(`{"index":0,"delta":{"content":null,"${name}":"${text}"}}`);
      expect(learned(thinking("Well")).find(thinking(", then"))?.characters).toBe(6);
    }
  });

  test.each(["obfuscation", "p"])("may have random characters in the member %s", (name) => {
    const hidden = (text: string, characters: string): string =>
      saying(text).replace("]}", `],"${name}":"${characters}","usage":null}`);
    const alike = learned(hidden("Hello", "x8Yq"));
    for (const characters of ["", "a1", "Zx".repeat(20)])
      expect(alike.find(hidden(", you", characters))?.frames).toBe(
        `data: ${hidden(", you", characters).replace(prefix.from, prefix.to)}\n\n`,
      );
    for (const characters of ["é", "\\n", 'a","choices":[],"x":"'])
      expect(alike.find(hidden(", you", characters))).toBeUndefined();
    expect(alike.find(saying(", you"))).toBeUndefined();
  });

  test("are not learned after four forms without a match", () => {
    const alike = new AlikeEvents();
    const padded = (pad: number): string =>
      saying("a").replace("]}", `],"padding":"${"x".repeat(pad)}"}`);
    for (let pad = 1; pad <= 6; pad += 1) learn(alike, padded(pad));
    expect([alike.find(padded(4)) === undefined, alike.find(padded(6)) === undefined]).toEqual([
      false,
      true,
    ]);
  });
});

test.each([
  ["nothing more", () => ""],
  ["random characters", (piece: string) => `,"obfuscation":"${"aZ9".repeat(piece.length % 5)}"`],
  ["Mistral's", (piece: string) => `,"p":"${"abc".slice(piece.length % 3)}","usage":null`],
])("a relay writes and counts the same for recognized and parsed events with %s", (_, more) => {
  const event = (piece: string): string => saying(piece).replace("]}", `]${more(piece)}}`);
  const pieces = ["Once", " upon", "\\n", ' a \\"time\\"', "é", " there", "\\u00e9", " was", "<>&"];
  const relayOf = (): ChatRelay =>
    new ChatRelay({
      traceId: "t",
      shown: { id: "shown", model: "acme/large" },
      inputTokens: 1,
      windowTokens: 1_000,
      fallback: undefined,
      shape: {
        legacyFunctions: false,
        hidesReasoning: false,
        toolNames: () => [],
        callSeed: "seed",
      },
      providerId: "acme",
      nowSeconds: () => 1_000,
      settle: () => Promise.reject(new Error("nothing is settled here")),
      metadataText: () => "",
    });
  const begun = (): ChatRelay => {
    const relay = relayOf();
    relay.accept({
      data: eventOf('{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}'),
    });
    return relay;
  };
  const relay = begun();
  const frames = pieces.map((piece) => relay.accept({ data: event(piece) }));
  // A fresh relay knows no form, so it reads each event.
  expect(frames).toEqual(pieces.map((piece) => begun().accept({ data: event(piece) })));
  const characters = pieces.reduce(
    (sum, piece) => sum + (JSON.parse(`"${piece}"`) as string).length,
    0,
  );
  expect(relay.metered().usage.outputTokens).toBe(Math.ceil(characters / 4));
});

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
