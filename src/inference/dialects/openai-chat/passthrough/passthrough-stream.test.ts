import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../../test/support/cassettes.ts";
import { adaptIn, type Relayed, relayIn, routeIn } from "../../../../../test/support/in-process.ts";
import type { Adapter } from "../../../pipeline/inference-call.ts";
import type { StreamRelay } from "../../shared/stream/stream-relay.ts";

const body = { model: "acme/large", stream: true, messages: [{ role: "user", content: "Hi" }] };
const adapter = adaptIn("openai-chat", { body, route: routeIn("openai-chat") });

/**
 * The same relay, given each event by itself and with a name, by which none of them is taken for
 * one that is alike.
 */
function readingAll(relay: StreamRelay): StreamRelay {
  const reading = Object.create(relay) as StreamRelay;
  const plain: Partial<StreamRelay> = {
    acceptAlike: () => "",
    accept: (event) => relay.accept({ event: "message", ...event }),
    finish: () => relay.finish(),
    fail: (error) => relay.fail(error),
    metered: () => relay.metered(),
  };
  return Object.assign(reading, plain);
}

const byEach: Adapter = {
  ...adapter,
  createRelay: (options) => readingAll(adapter.createRelay(options)),
};

function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = places.map((place) => place % (bytes.length + 1)).sort((one, other) => one - other);
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length));
}

/**
 * What clients get of a stream that is cut into these pieces, by events in a row and by each event.
 */
async function bothWays(
  pieces: readonly Uint8Array[],
): Promise<[inRows: Relayed, byEach: Relayed]> {
  return [await relayIn(adapter, pieces), await relayIn(byEach, pieces)];
}

const cuts = fc.array(fc.nat(), { maxLength: 6 });

/** Pieces of text as JSON has them within quotes, some of which it may not have. */
const piece = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .string({ unit: "grapheme", maxLength: 8 })
      .map((text) => JSON.stringify(text).slice(1, -1)),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      " upon",
      ",",
      ":",
      "",
      "\\n",
      "\\u00e9",
      "\\ud83d\\ude00",
      "data: {",
      "content",
      "index",
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("\\x", "\\u12", "tab\there", 'x","refusal":"no', "\\") },
);

const choices = fc
  .record({
    name: fc.constantFrom("content", "content", "content", "content", "reasoning", "refusal"),
    role: fc.constantFrom("", "", "", '"role":"assistant",'),
    index: fc.constantFrom(0, 0, 0, 0, 1),
    finish: fc.constantFrom("null", "null", "null", "null", "null", '"stop"'),
    text: piece,
  })
  .map(
    ({ name, role, index, finish, text }) =>
      `[{"index":${index},"delta":{${role}"${name}":"${text}"},"finish_reason":${finish}}]`,
  );

const eventText = fc.oneof(
  {
    weight: 12,
    arbitrary: choices.map((text) => `data: {"id":"up","model":"large","choices":${text}}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ": ping",
      "event: message",
      "id: 4",
      "data: ",
      "",
      "data:",
      "event: ping",
      'data:{"id":"up","model":"large","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}',
      'data: {"id":"up","model":"large","choices":[{"index":0,"delta":\ndata: {"content":"x"},"finish_reason":null}]}',
      'data: {"id":"up","model":"large","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}',
      'data: {"error":{"message":"gone"}}',
    ),
  },
);

describe("a stream is the same whether its events are taken in rows or parsed one by one:", () => {
  const cassettes = readCassettes("openai-chat").map(({ name, bytes }) => [name, bytes] as const);
  test.each(cassettes)("%s, at any split", async (_, bytes) => {
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const [inRows, each] = await bothWays(cut(bytes, places));
        expect(inRows).toEqual(each);
      }),
      { numRuns: 20 },
    );
  });

  test("any events, at any split, with any line ends", async () => {
    const ends = fc.constantFrom("\n", "\n", "\n", "\r\n", "\r");
    const stream = fc.array(fc.tuple(eventText, fc.constantFrom(2, 2, 2, 2, 2, 2, 1, 3)), {
      minLength: 2,
      maxLength: 24,
    });
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(stream, ends, cuts, fc.boolean(), async (events, end, places, isDone) => {
        const wire = events
          .map(([text, count]) => text.replaceAll("\n", end) + end.repeat(count))
          .join("");
        const [inRows, each] = await bothWays(
          cut(Buffer.from(wire + (isDone ? `data: [DONE]${end}${end}` : "")), places),
        );
        expect(inRows).toEqual(each);
        taken += inRows.refused === undefined && inRows.text.includes("[DONE]") ? 1 : 0;
      }),
      { numRuns: 1_000 },
    );
    expect(taken).toBeGreaterThan(50);
  });
});

describe("the usage chunk has the charge, and the metadata if it has no content:", () => {
  const usage = '"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}';
  const priced =
    '"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"cost":0.000016}';
  const metadata = '"service_metadata":{"timings":{}}';
  const named = '"provider":"acme"';
  const start = '"id":"up","object":"chat.completion.chunk","created":7,"model":"large"';
  test.each([
    [
      "as usual",
      `{${start},"choices":[],${usage}}`,
      `"choices":[],${priced},${named},${metadata}}`,
    ],
    [
      "with spaces",
      `{ ${start}, "choices": [], ${usage} }`,
      `"choices": [], ${priced},${named},${metadata} }`,
    ],
    ["without choices", `{${start},${usage}}`, `${priced},"choices":[],${named},${metadata}}`],
    ["with usage first", `{${usage},${start},"choices":[]}`, `"choices":[],${named},${metadata}}`],
    [
      "with metadata",
      `{${start},"choices":[],"service_metadata":1,${usage}}`,
      `"choices":[],${metadata},${priced},${named}}`,
    ],
    [
      "with escapes",
      `{${start},"choices":[],${usage},"a":"\\n"}`,
      `"choices":[],${priced},"a":"\\n",${named},${metadata}}`,
    ],
    [
      "with usage twice",
      `{${start},"choices":[],${usage},${usage}}`,
      `"choices":[],${priced},${priced},${named},${metadata}}`,
    ],
  ])("%s", async (_, chunk, told) => {
    const saying = `data: {${start},"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n`;
    const { text } = await relayIn(adapter, [
      Buffer.from(`${saying}data: ${chunk}\n\ndata: [DONE]\n\n`),
    ]);
    expect(text.split("\n\n")[1]).toEndWith(told);
    expect(text).toContain(priced);
  });

  test("beside it, a provider that the upstream names is kept", async () => {
    const saying = `{${start},"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`;
    const chunk = `{${start},"provider":"Azure","choices":[],${usage}}`;
    const { text } = await relayIn(adapter, [
      Buffer.from(`data: ${saying}\n\ndata: ${chunk}\n\ndata: [DONE]\n\n`),
    ]);
    expect(text.match(/"provider":"[^"]*"/g)).toEqual(['"provider":"Azure"']);
  });
});

test("an event over several data lines is sent as valid JSON", async () => {
  const event =
    'data: {"id":"up","model":"large","choices":[{"index":0,\ndata: "delta":{"content":"x"},"finish_reason":"stop"}]}\n\n';
  const { text } = await relayIn(adapter, [Buffer.from(`${event}data: [DONE]\n\n`)]);
  const [line = ""] = text.split("\n\n");
  expect(JSON.parse(line.slice("data: ".length))).toMatchObject({
    choices: [{ delta: { content: "x" }, finish_reason: "stop" }],
  });
});
