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

describe("events that differ in their text alone", () => {
  test("are known once one of them was read, with what is counted of them", () => {
    const alike = learned(saying("Hello", 3));
    expect(alike.find(saying(" wörld 👋", 3))).toEqual({
      frames: `data: ${saying(" wörld 👋", 3).replace('"up"', '"shown"').replace('"large"', '"acme/large"')}\n\n`,
      index: 3,
      characters: 9,
    });
  });

  test("may have escapes, which count as what they stand for", () => {
    expect(learned(saying("Hello")).find(saying('\\n\\"\\\\\\u00E9 end'))?.characters).toBe(8);
  });

  test.each([
    ["punctuation", ",", "\\n"],
    ["another member", "assistant", "user"],
  ])("no text is looked for where %s stood", (_, text, other) => {
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

  test("are no lines that make one event only together", () => {
    const data = eventOf('{"index":0,"delta":\n{"content":"a"}}');
    const text = `data: ${data}\n\n`;
    const alike = learned(data);
    expect([alike.take({ text, position: 0, isBetween: true }), alike.find(data)]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("are taken in a row, as they stand in a stream", () => {
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
    ["at one without its blank line", { text: `data: ${saying("a")}\n` }],
    ["at one that has another line", { text: `data: ${saying("a")}\ndata: \n\n` }],
  ])("%s none is taken", (_, stands) => {
    const events = { position: 0, isBetween: true, ...stands };
    expect([learned(saying("Hello")).take(events), events.position]).toEqual([undefined, 0]);
  });

  test.each([
    ["of another choice", saying("x", 1)],
    ["with an escape that JSON does not have", saying("line\\x")],
    ["with half an escape", saying("\\u00e")],
    ["with a quote, and a member behind it", saying('x","refusal":"no')],
    ["with a character that no JSON text may have", saying("tab\there")],
    ["without text", saying("")],
    ["that is shorter than the form", `${prefix.from}"choices":[]}`],
    ["that is cut", saying("x").slice(0, -1)],
    ["that finishes", saying("x").replace("null", '"stop"')],
  ])("%s is read", (_, data) => {
    expect(learned(saying("Hello")).find(data)).toBeUndefined();
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
      "usage as Groq gives it",
      saying("a").replace("]}", '],"x_groq":{"usage":{"prompt_tokens":1}}}'),
    ],
    ["its text as another member's first", saying("index")],
  ])("an event with %s teaches no form", (_, data) => {
    const alike = learned(data);
    expect(
      alike.find(data.replace('"a"', '"x"').replace('"content":"index"', '"content":"x"')),
    ).toBeUndefined();
  });

  test("are shown as the one that was read was shown", () => {
    const bare = (text: string): string => eventOf(`{"index":0,"delta":{"content":"${text}"}}`);
    const alike = new AlikeEvents();
    const shown = saying("Hello").replace(prefix.from, prefix.to);
    alike.learn(bare("Hello"), { chunk: JSON.parse(bare("Hello")) as ChatChunk, prefix, shown });
    expect(alike.find(bare(", you"))?.frames).toBe(
      `data: ${saying(", you").replace(prefix.from, prefix.to)}\n\n`,
    );
  });

  test("are read where the client is not shown their text", () => {
    const alike = new AlikeEvents();
    const shown = eventOf('{"index":0,"delta":{},"finish_reason":null}');
    alike.learn(saying("Hello"), {
      chunk: JSON.parse(saying("Hello")) as ChatChunk,
      prefix,
      shown,
    });
    expect(alike.find(saying("Hello"))).toBeUndefined();
  });

  test("thoughts are known as well, under either name", () => {
    for (const name of ["reasoning", "reasoning_content"]) {
      const thinking = (text: string): string =>
        eventOf(`{"index":0,"delta":{"content":null,"${name}":"${text}"}}`);
      expect(learned(thinking("Well")).find(thinking(", then"))?.characters).toBe(6);
    }
  });

  test("after four forms that fitted nothing no more are learned", () => {
    const alike = new AlikeEvents();
    const padded = (pad: number): string =>
      saying("a").replace("]}", `],"obfuscation":"${"x".repeat(pad)}"}`);
    for (let pad = 1; pad <= 6; pad += 1) learn(alike, padded(pad));
    expect([alike.find(padded(4)) === undefined, alike.find(padded(6)) === undefined]).toEqual([
      false,
      true,
    ]);
  });
});

test("a relay tells and counts the same, whether it knows an event's form or reads it", () => {
  const pieces = ["Once", " upon", "\\n", ' a \\"time\\"', "é", " there", "\\u00e9", " was", "<>&"];
  const relayOf = (): ChatRelay =>
    new ChatRelay({
      traceId: "t",
      shown: { id: "shown", model: "acme/large" },
      inputTokens: 1,
      windowTokens: 1_000,
      fallback: undefined,
      shape: { legacyFunctions: false, hidesReasoning: false, toolNames: () => [] },
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
  const frames = pieces.map((piece) => relay.accept({ data: saying(piece) }));
  // A fresh relay knows no form, so it reads each event.
  expect(frames).toEqual(pieces.map((piece) => begun().accept({ data: saying(piece) })));
  const characters = pieces.reduce(
    (sum, piece) => sum + (JSON.parse(`"${piece}"`) as string).length,
    0,
  );
  expect(relay.metered().usage.outputTokens).toBe(Math.ceil(characters / 4));
});

const shown = { id: '"shown"', model: '"acme/large"' };
const edits = new Map(Object.entries(shown));

describe("an event with the client's id and model", () => {
  test("shares its start with those like it", () => {
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
    ["model stands behind the choices", '{"id":"up","choices":[],"model":"large"}'],
    ["there are no choices", '{"id":"up","model":"large"}'],
    ["there is no id", '{"model":"large","choices":[]}'],
  ])("shares no start where %s", (_, data) => {
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

  test("whatever members there are, twice or spelled otherwise", () => {
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
