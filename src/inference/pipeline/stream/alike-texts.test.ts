import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { adaptIn, relayIn, routeIn } from "../../../../test/support/in-process.ts";
import { isNightly } from "../../../../test/support/nightly.ts";
import type { Adapter } from "../inference-call.ts";
import type { ShownEvent } from "../../dialects/shared/stream/stream-writer.ts";
import { AlikeTexts } from "./alike-texts.ts";

interface Said {
  text: string;
  at: number;
}

const said = (text: string, at = 0): Said => ({ text, at });
const eventOf = (text: string, more = ""): string => `data: {"say":"${text}"${more}}\n\n`;
const unlearned = (): AlikeTexts<Said> => new AlikeTexts((one, other) => one.at === other.at);

/** Learns from an event that was decoded; undefined where it says more than a piece of text. */
function learn(
  alike: AlikeTexts<Said>,
  event: string,
  decoded: Said | undefined,
  shown?: ShownEvent,
): void {
  const events = { text: event, position: 0, isBetween: true };
  alike.mark(events);
  events.position = event.length;
  alike.learn(decoded, shown);
}

function learned(...texts: readonly string[]): AlikeTexts<Said> {
  const alike = unlearned();
  for (const text of texts) learn(alike, eventOf(text), said(text));
  return alike;
}

const take = (alike: AlikeTexts<Said>, text: string): string | undefined =>
  alike.take({ text, position: 0, isBetween: true })?.text;

describe("texts of similar events", () => {
  test("are read once two events with different texts were decoded", () => {
    const text = eventOf("you") + eventOf("a\\nb") + eventOf("é");
    const events = { text, position: 0, isBetween: true };
    const alike = learned("Hello", " there");
    expect([1, 2, 3, 4].map(() => alike.take(events))).toMatchObject([
      { said: said("Hello"), text: "you", json: '"you"' },
      { said: said("Hello"), text: "a\nb", json: '"a\\nb"' },
      { said: said("Hello"), text: "é", json: '"é"' },
      undefined,
    ]);
    expect(events.position).toBe(text.length);
  });

  test.each([
    ["one event", ["Hello"]],
    ["the same text twice", ["Hello", "Hello"]],
  ])("are decoded after %s", (_, texts) => {
    expect(take(learned(...texts), eventOf("you"))).toBeUndefined();
  });

  test("are decoded where another member had the text of the first", () => {
    const alike = unlearned();
    const event = (other: string): string => `data: {"x":"${other}","say":"a"}\n\n`;
    learn(alike, event("a"), said("a"));
    learn(alike, event("b"), said("a"));
    expect(take(alike, event("c"))).toBeUndefined();
  });

  test.each([
    ["something else", undefined],
    ["a text at another place", said("x", 1)],
  ])("are decoded after an event that says %s", (_, decoded) => {
    const alike = learned("Hello", " there");
    learn(alike, eventOf("x"), decoded);
    expect(take(alike, eventOf("you"))).toBeUndefined();
  });

  test("are decoded after an event of which a part had been read before", () => {
    const alike = learned("Hello", " there");
    alike.mark({ text: eventOf("x"), position: 3, isBetween: false });
    alike.learn(said("x"));
    expect(take(alike, eventOf("you"))).toBeUndefined();
  });

  test.each([
    ["has another member", eventOf("x", ',"y":1')],
    ["has its text again", eventOf('x","say":"y')],
    ["has an escape that JSON does not have", eventOf("\\x")],
    ["has half an escape", eventOf("\\u00e")],
    ["has a character that no JSON text may have", eventOf("tab\there")],
    ["says nothing", eventOf("")],
    ["ends within its text", 'data: {"say":"x'],
    ["ends within an escape", 'data: {"say":"x\\'],
    ["lacks its blank line", eventOf("x").slice(0, -1)],
    ["has spaces after its brace", eventOf("x").replace("}", "} ")],
    ["follows a comment", `: ping\n${eventOf("x")}`],
  ])("an event that %s is decoded", (_, text) => {
    expect(take(learned("Hello", " there"), text)).toBeUndefined();
  });

  test("may be beside values that differ in every event and mean nothing", () => {
    const numbered = (text: string, number: string, hides = "xY1"): string =>
      eventOf(text, `,"obfuscation":"${hides}","sequence_number":${number}`);
    const first = (text: string, number: string): string =>
      `data: {"sequence_number":${number},"say":"${text}","obfuscation":"${number}"}\n\n`;
    for (const event of [numbered, first]) {
      const alike = unlearned();
      learn(alike, event("Hello", "8"), said("Hello"));
      learn(alike, event("you", "9"), said("you"));
      expect(take(alike, event("a", "10", ""))).toBe("a");
      for (const number of ["011", "-1", ""])
        expect(take(alike, event("a", number))).toBeUndefined();
      expect(take(alike, numbered("a", "1", '\\"'))).toBeUndefined();
    }
  });

  test("may be before any number of spaces", () => {
    const padded = (text: string, spaces: number): string =>
      `data: {"x":{"say":"${text}"}${" ".repeat(spaces)}}\n\n`;
    const alike = unlearned();
    learn(alike, padded("Hello", 3), said("Hello"));
    learn(alike, padded("you", 0), said("you"));
    for (const spaces of [0, 1, 12]) expect(take(alike, padded("a", spaces))).toBe("a");
    expect(take(alike, padded("a", 2).replace("  ", "\t\t"))).toBeUndefined();
  });

  test("an event is decoded where a part of it was read before", () => {
    const events = { text: eventOf("x"), position: 0, isBetween: false };
    expect(learned("Hello", " there").take(events)).toBeUndefined();
  });

  test("no more forms are learned after four that fitted nothing", () => {
    const alike = unlearned();
    for (const more of [1, 2, 3, 4]) learn(alike, eventOf("a", `,"number":${more}`), said("a"));
    for (const text of ["a", "b"]) learn(alike, eventOf(text), said(text));
    expect(take(alike, eventOf("c"))).toBeUndefined();
  });
});

describe("what the client is sent of similar events", () => {
  const came = (text: string, hides = "xY1"): string =>
    `data: {"id":"up","say":"${text}","none":null,"p":"${hides}" }\n\n`;
  const sent = (text: string, hides = "xY1"): string =>
    `data: {"id":"shown","say":"${text}","p":"${hides}" }\n\n`;
  const taught = (isRewritten: boolean, first = sent("Hello")): AlikeTexts<Said> => {
    const alike = unlearned();
    learn(alike, came("Hello"), said("Hello"), { frame: first, isRewritten });
    learn(alike, came("you", ""), said("you"), { frame: sent("you", ""), isRewritten });
    return alike;
  };
  const shownOf = (alike: AlikeTexts<Said>, text: string): string | undefined =>
    alike.takeRun({ text, position: 0, isBetween: true }, { keepsText: false })?.frames;

  test("is written from what it was sent of two others, with the unread values", () => {
    expect(shownOf(taught(false), came("\\u00e9 end", "a9"))).toBe(sent("\\u00e9 end", "a9"));
  });

  test("has texts written again where those were", () => {
    expect(shownOf(taught(true), came('\\u00e9 \\" end'))).toBe(sent('é \\" end'));
  });

  test.each([
    ["more of the first, such as a role", sent("Hello").replace("}", '"role":"assistant"}')],
    ["nothing of the first", "data: {}\n\n"],
    ["no event at the first", ""],
  ])("is unknown where it was sent %s", (_, first) => {
    expect(shownOf(taught(false, first), came("then"))).toBeUndefined();
  });
});

describe("events whose bytes are kept", () => {
  const numbered = (text: string, number: number): string =>
    `data: {"sequence_number":${number},"say":"${text}"}\n\n`;
  const kept = (event: (text: string, number: number) => string): AlikeTexts<Said> => {
    const alike = unlearned();
    for (const [number, text] of ["Hello", "you"].entries()) {
      const frame = event(text, number);
      learn(alike, frame, said(text), { frame, isRewritten: false });
    }
    return alike;
  };

  test("are taken together, with their texts", () => {
    const text = numbered("a\\nb", 2) + numbered(" end", 3) + numbered("x", 5);
    const events = { text, position: 0, isBetween: true };
    const alike = kept(numbered);
    expect(alike.takeRun(events, { number: 2, keepsText: true })).toEqual({
      said: said("Hello"),
      frames: text.slice(0, events.position),
      count: 2,
      characters: 7,
      text: "a\nb end",
    });
    expect(alike.takeRun(events, { number: 4, keepsText: true })).toBeUndefined();
    expect(alike.takeRun(events, { keepsText: false })).toMatchObject({ count: 1, text: "" });
    expect(events.position).toBe(text.length);
  });

  test("are taken as far as their characters are allowed", () => {
    const text = numbered("four", 2) + numbered("five!", 3);
    const events = { text, position: 0, isBetween: true };
    const alike = kept(numbered);
    const search = { number: 2, keepsText: true, charactersMax: 8 };
    expect(alike.takeRun(events, search)).toMatchObject({ count: 1, text: "four" });
    expect(alike.takeRun(events, { ...search, number: 3, charactersMax: 4 })).toBeUndefined();
    expect(alike.take(events, 4)).toBeUndefined();
    expect(alike.take(events, 5)).toMatchObject({ text: "five!" });
  });

  test.each([
    ["other bytes", eventOf("x", ',"y":1')],
    ["nothing", ""],
  ])("are decoded after one of which the client was sent %s", (_, frame) => {
    const alike = kept((text) => eventOf(text));
    learn(alike, eventOf("x"), said("x"), { frame, isRewritten: false });
    const events = { text: eventOf("then"), position: 0, isBetween: true };
    expect(alike.takeRun(events, { keepsText: false })).toBeUndefined();
  });
});

const clients = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
] as const;
const upstreams = clients;
type Upstream = (typeof upstreams)[number];

/** Texts with every kind of escape, and texts that are members' names. */
const someText = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom("a", "b", " word", "é", "👋", "\u2028", "text", "content"),
  },
  fc.constantFrom("", "\n", '"', "\\", "\u0001", "\ud83d", "\ude00", "0"),
  fc.string({ unit: "binary", maxLength: 4 }),
);

/** A text in JSON, with more of it escaped than has to be. */
const someJson = fc.tuple(someText, fc.boolean(), fc.boolean()).map(([text, escapes, slashes]) =>
  JSON.stringify(text)
    .replace(/[^\x00-\x7f]/g, (unit) =>
      escapes ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}` : unit,
    )
    .replaceAll("/", slashes ? "\\/" : "/"),
);

/**
 * Events of each upstream around a text in JSON. The first of each says nothing but its text; the
 * others say more, or nothing.
 */
const eventsOf: Readonly<Record<Upstream, readonly ((json: string) => string)[]>> = {
  "openai-chat": [
    (json) => chatEvent(`{"index":0,"delta":{"content":${json}},"finish_reason":null}`),
    (json) => chatEvent(`{"index":0,"delta":{"reasoning_content":${json}}}`),
    (json) => chatEvent(`{"index":0,"delta":{"content":"a","content":${json}}}`),
    (json) => chatEvent(`{"index":0,"delta":{"content":${json},"content":"a"}}`),
    (json) => chatEvent(`{"index":0,"delta":{"content":${json},"reasoning_content":"a"}}`),
    (json) => chatEvent(`{"delta":{"content":"a"},"x":${json}}`),
    (json) => chatEvent(`{"index":1,"delta":{"content":${json}}}`),
    (json) => chatEvent(`{"index":0,"delta":{"refusal":${json}}}`),
    (json) =>
      chatEvent(
        `{"index":0,"delta":{"content":${json}},"logprobs":{"content":[{"token":"a","logprob":0,"top_logprobs":[]}]}}`,
      ),
    (json) =>
      chatEvent(
        `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":${json}}}]}}`,
      ),
    (json) => chatEvent(`{"index":0,"delta":{"content":${json}}}`, ',"usage":{"prompt_tokens":7}'),
    (json) => chatEvent(`{"index":0,"delta":{"content":${json}}}`, `,"obfuscation":${json}`),
    (json) =>
      chatEvent(
        `{"index":0,"delta":{"content":${json}}}`,
        `,"p":"${"xyz".slice(json.length % 3)}"`,
      ),
    (json) => chatEvent(`{"index":0,"delta":{"content":${json}},"finish_reason":"length"}`),
    (json) =>
      chatEvent(
        `{"index":0,"delta":{"content":${json}}}`,
        `,"obfuscation":"${"xyz".slice(json.length % 3)}","usage":null`,
      ),
    () => chatEvent("", ',"usage":{"prompt_tokens":3,"completion_tokens":5}'),
    () => ": ping\n\n",
    () => "data: keep-alive\n\n",
  ],
  "anthropic-messages": [
    (json) => block("delta", `"delta":{"type":"text_delta","text":${json}}`),
    (json) => block("delta", `"delta":{"type":"text_delta","text":${json}}${spaces(json)}`),
    (json) => block("delta", `"delta":{"type":"input_json_delta","partial_json":${json}}`, 2),
    (json) => block("delta", `"delta":{"type":"text_delta","text":${json}}`, 7),
    (json) => block("delta", `"delta":{"type":"text_delta","text":${json},"thinking":"more"}`),
    (json) => block("delta", `"delta":{"type":"thinking_delta","thinking":${json}}`, 1),
    (json) => block("delta", `"delta":{"type":"text_delta","text":"a","text":${json}}`),
    (json) => block("delta", `"delta":{"text":${json},"type":"text_delta"}`),
    (json) =>
      block(
        "delta",
        `"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.test","title":${json}}}`,
      ),
    (json) => block("delta", `"delta":{"type":"signature_delta","signature":${json}}`, 1),
    () => block("start", '"content_block":{"type":"thinking","thinking":""}', 1),
    () => block("start", '"content_block":{"type":"text","text":""}'),
    () => block("stop", '"x":1'),
    () => 'event: ping\ndata: {"type":"ping"}\n\n',
  ],
  "openai-responses": [
    (json) => itemEvent("output_text.delta", `"delta":${json},"logprobs":[]`),
    (json) => itemEvent("reasoning_summary_text.delta", `"summary_index":0,"delta":${json}`, 1),
    (json) => itemEvent("reasoning_summary_text.delta", `"summary_index":1,"delta":${json}`, 1),
    (json) => itemEvent("reasoning_summary_text.done", `"summary_index":0,"text":${json}`, 1),
    (json) =>
      itemEvent(
        "output_text.delta",
        `"delta":${json},"obfuscation":"${"xyz".slice(json.length % 3)}"`,
      ),
    (json) => itemEvent("output_text.delta", `"delta":"a","delta":${json}`),
    (json) =>
      itemEvent("output_text.delta", `"delta":${json},"logprobs":[{"token":"a","logprob":0}]`),
    (json) => itemEvent("output_text.done", `"text":${json}`),
    (json) => itemEvent("output_text.delta", `"delta":${json},"logprobs":[]`, 0, true),
    (json) =>
      itemEvent(
        "output_text.delta",
        `"delta":${json},"logprobs":[],"obfuscation":"${"xyz".slice(json.length % 3)}"`,
        0,
        true,
      ),
    (json) => itemEvent("function_call_arguments.delta", `"delta":${json}`, 2, true),
    (json) => itemEvent("output_text.delta", `"delta":${json},"sequence_number":3`),
    (json) => itemEvent("refusal.delta", `"delta":${json}`),
    (json) => itemEvent("content_part.done", `"part":{"type":"output_text","text":${json}}`),
    (json) =>
      itemEvent("output_item.added", `"item":{"id":"item_1","type":"reasoning","x":${json}}`, 1),
    (json) => wholeItem("output_text", "", json),
    (json) => wholeItem("reasoning_summary_text", '"summary_index":0,', json),
    (json) => itemEvent("function_call_arguments.delta", `"delta":${json}`, 2),
    () => ": ping\n\n",
  ],
  "google-generate": [
    (json) => generateEvent(`[{"text":${json}}]`, 9),
    (json) => generateEvent(`[{"text":${json},"thought":true}]`, 9),
    (json) => generateEvent(`[{"text":${json}}]`, json.length),
    (json) => generateEvent(`[{"text":"a"},{"text":${json}}]`, 9),
    (json) => generateEvent(`[{"text":"a","text":${json}}]`, 9),
    (json) => generateEvent(`[{"text":${json},"thoughtSignature":"seal"}]`, 9),
    () => generateEvent('[{"functionCall":{"name":"f","args":{}}}]', 9),
    () => ": ping\n\n",
  ],
};

const chatEvent = (choice: string, more = ""): string =>
  `data: {"id":"up","object":"chat.completion.chunk","created":5,"model":"m","choices":[${choice}]${more}}\n\n`;
const spaces = (json: string): string => " ".repeat(json.length % 14);
const block = (kind: string, members: string, index = 0): string =>
  `event: content_block_${kind}\ndata: {"type":"content_block_${kind}","index":${index},${members}}\n\n`;
let number = 0;
/** An event of an item. OpenAI's have their number first, and others last. */
const itemEvent = (kind: string, members: string, index = 0, isOpenai = false): string => {
  number += 1;
  const type = `response.${kind}`;
  const place = `"item_id":"item_${index}","output_index":${index},"content_index":0`;
  const counted = `"sequence_number":${number}`;
  const data = isOpenai ? [counted, place, members] : [place, members, counted];
  return `event: ${type}\ndata: {"type":"${type}",${data.join()}}\n\n`;
};
/** A further item, in pieces and then whole. */
function wholeItem(kind: string, members: string, json: string): string {
  const index = number + 3;
  const pieces = ["a", "b", " c", JSON.parse(json) as string].map((text) =>
    itemEvent(`${kind}.delta`, `${members}"delta":${JSON.stringify(text)}`, index),
  );
  const whole = JSON.stringify(`ab c${JSON.parse(json)}`);
  return `${pieces.join("")}${itemEvent(`${kind}.done`, `${members}"text":${whole}`, index)}`;
}
const generateEvent = (parts: string, tokens: number): string => {
  const usage = `{"promptTokenCount":4,"candidatesTokenCount":${tokens}}`;
  return `data: {"candidates":[{"content":{"parts":${parts}},"index":0}],"usageMetadata":${usage}}\n\n`;
};
const named = (data: { type: string; [member: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

const beginnings: Readonly<Record<Upstream, string>> = {
  "openai-chat": chatEvent('{"index":0,"delta":{"role":"assistant","content":""}}'),
  "anthropic-messages": named({
    type: "message_start",
    message: { id: "m", usage: { input_tokens: 4, output_tokens: 1 } },
  }),
  "openai-responses":
    named({ type: "response.created", sequence_number: 0, response: { id: "resp_1" } }) +
    named({
      type: "response.output_item.added",
      sequence_number: 1,
      output_index: 0,
      item: { id: "item_0", type: "message", content: [{ type: "output_text", text: "" }] },
    }),
  "google-generate": "",
};
/** A source of bytes of the text, whose place depends on all text before. */
const grounding = JSON.stringify({
  groundingChunks: [{ web: { uri: "https://a.test", title: "a" } }],
  groundingSupports: [{ segment: { startIndex: 4, endIndex: 9 }, groundingChunkIndices: [0] }],
});
const endings: Readonly<Record<Upstream, string>> = {
  "openai-chat": `${chatEvent('{"index":0,"delta":{},"finish_reason":"stop"}')}data: [DONE]\n\n`,
  "anthropic-messages":
    named({ type: "message_delta", delta: { stop_reason: "end_turn" } }) +
    named({ type: "message_stop" }),
  "openai-responses": named({
    type: "response.completed",
    response: {
      output: [
        { id: "item_0", type: "message", content: [{ type: "output_text", text: "ab word" }] },
        { id: "item_1", type: "reasoning", summary: [{ type: "summary_text", text: "ab word" }] },
      ],
    },
  }),
  "google-generate": `data: {"candidates":[{"finishReason":"STOP","index":0,"groundingMetadata":${grounding}}]}\n\n`,
};

/** A stream in which an event is mostly like the one before. */
const streamOf = (upstream: Upstream): fc.Arbitrary<string> => {
  const kinds = eventsOf[upstream];
  const row = fc
    .tuple(
      fc.oneof(fc.constant(0), fc.nat(kinds.length - 1)),
      fc.array(someJson, { minLength: 1, maxLength: 6 }),
    )
    .map(([kind, texts]) => texts.map((json) => kinds[kind]?.(json) ?? "").join(""));
  return fc
    .tuple(fc.array(row, { maxLength: 8 }), fc.boolean(), fc.boolean())
    .map(([rows, ends, counts]) => {
      const events = rows.join("");
      const middle = counts ? numberedFrom(2, events) : events;
      return beginnings[upstream] + middle + (ends ? endings[upstream] : "");
    });
};

/** Numbers events from here on, as a provider does that leaves out none. */
function numberedFrom(first: number, events: string): string {
  let next = first;
  return events.replace(/(?<="sequence_number":)\d+/g, () => String(next++));
}

/** Cuts bytes at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = places.map((place) => place % (bytes.length + 1)).sort((one, other) => one - other);
  return [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length));
}

/** Returns an adapter whose relay knows no similar events, or counts the frames of those. */
const watched = (adapter: Adapter, take: (frames: string) => void, knows: boolean): Adapter => ({
  ...adapter,
  createRelay(options) {
    const relay = adapter.createRelay(options);
    const known = relay.acceptAlike?.bind(relay);
    relay.acceptAlike = (events) => {
      const frames = knows ? (known?.(events) ?? "") : "";
      take(frames);
      return frames;
    };
    return relay;
  },
});

const messages = [{ role: "user", content: "Hi" }];
const asked: Readonly<Record<Upstream, object>> = {
  "openai-chat": { stream: true, messages },
  "anthropic-messages": { stream: true, messages, max_tokens: 100 },
  "openai-responses": { stream: true, input: "Hi" },
  "google-generate": { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

describe("a client gets the same bytes, whether similar events are recognised or decoded", () => {
  const pairs = clients.flatMap((client) =>
    upstreams.map((upstream) => [client, upstream] as const),
  );
  test.each(pairs)("%s from %s", async (client, upstream) => {
    const adapter = adaptIn(client, {
      body: { model: "acme/large", ...asked[client] },
      route: routeIn(upstream),
    });
    let recognised = 0;
    const knowing = watched(adapter, (frames) => void (recognised += Number(frames !== "")), true);
    const decoding = watched(adapter, () => undefined, false);
    await fc.assert(
      fc.asyncProperty(
        streamOf(upstream),
        fc.array(fc.nat(), { maxLength: 4 }),
        async (stream, places) => {
          const bytes = Buffer.from(stream);
          expect(await relayIn(knowing, cut(bytes, places))).toEqual(
            await relayIn(decoding, [bytes]),
          );
        },
      ),
      { numRuns: isNightly ? 400 : 150 },
    );
    expect(recognised).toBeGreaterThan(50);
  });
});
