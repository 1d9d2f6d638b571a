import { describe, expect, test } from "bun:test";
import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { leastMicroseconds } from "../../../test/support/least-microseconds.ts";
import { maxEventBytes, SseDecoder, type SseEvent } from "./sse-decoder.ts";

const encoder = new TextEncoder();

function decode(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()];
}

const decodeText = (text: string): SseEvent[] => decode([encoder.encode(text)]);

/** The same bytes as two chunks, cut at every place, and one byte at a time. */
function* everySplit(bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let cut = 0; cut <= bytes.length; cut += 1)
    yield [bytes.subarray(0, cut), bytes.subarray(cut)];
  yield [...bytes].map((byte) => Uint8Array.of(byte));
}

const rows: [name: string, wire: string, events: SseEvent[]][] = [
  ["one data line", 'data: {"a":1}\n\n', [{ data: '{"a":1}' }]],
  [
    "no space after the colon",
    'data:{"a":1}\n\ndata:  two\n\n',
    [{ data: '{"a":1}' }, { data: " two" }],
  ],
  [
    "CRLF",
    "event: x\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
    [{ event: "x", data: "1" }, { data: "2" }],
  ],
  ["lone CR", "data: 1\r\rdata: 2\r\r", [{ data: "1" }, { data: "2" }]],
  [
    "mixed line ends",
    "data: 1\r\n\ndata: 2\n\r\ndata: 3\r\n\r",
    [{ data: "1" }, { data: "2" }, { data: "3" }],
  ],
  ["several data lines", "data: a\ndata: b\ndata:\n\n", [{ data: "a\nb\n" }]],
  ["byte order mark", "\ufeffdata: 1\n\n", [{ data: "1" }]],
  ["a later byte order mark is content", "data: \ufeff1\n\n", [{ data: "\ufeff1" }]],
  [
    "comments",
    ": OPENROUTER PROCESSING\n\n:\n\ndata: 1\n: between\ndata: 2\n\n",
    [{ data: "1\n2" }],
  ],
  ["id, retry and unknown fields", "id: 7\nretry: 10\nwhatever\ndata: 1\n\n", [{ data: "1" }]],
  ["an event name without data is ignored", "event: ping\n\ndata: 1\n\n", [{ data: "1" }]],
  [
    "empty data is an event",
    "event: ping\ndata: \n\ndata\n\n",
    [{ event: "ping", data: "" }, { data: "" }],
  ],
  ["characters of 2, 3 and 4 bytes", "data: é漢😀 ключ\n\n", [{ data: "é漢😀 ключ" }]],
  [
    "last event lacks its blank line",
    'data: 1\n\ndata: {"a":"😀"}\n',
    [{ data: "1" }, { data: '{"a":"😀"}' }],
  ],
  ["last event lacks its line end", "data: 1\n\ndata: [DONE]", [{ data: "1" }, { data: "[DONE]" }]],
  ["a truncated last event is dropped", 'data: 1\n\ndata: {"a":', [{ data: "1" }]],
  [
    "more blanks around JSON and the end",
    'data:   {"a":1} \n\ndata:  [DONE]  \n\ndata:  two\n\n',
    [{ data: '{"a":1}' }, { data: "[DONE]" }, { data: " two" }],
  ],
  ["an empty stream", "", []],
  ["a field name that starts with data", "datax: 1\ndata: 2\n\n", [{ data: "2" }]],
];

describe("SseDecoder", () => {
  test.each(rows)("decodes the same events at every split: %s", (_name, wire, events) => {
    for (const chunks of everySplit(encoder.encode(wire))) expect(decode(chunks)).toEqual(events);
  });

  test("matches eventsource-parser for complete events, at any split", () => {
    const line = fc.oneof(
      fc.string({ unit: "grapheme" }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
      fc.constantFrom(
        "",
        "",
        "data",
        "data:",
        "data:x",
        "event: tick",
        ": note",
        "id: 4",
        "retry: 9",
        ":",
        "event",
        "foo: bar",
      ),
    );
    const stream = fc
      .array(fc.tuple(line, fc.constantFrom("\n", "\r\n")), { maxLength: 20 })
      .map((lines) => `${lines.map(([text, ending]) => text + ending).join("")}\n\n`);
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200), { maxLength: 4 }), (wire, cuts) => {
        const expected: SseEvent[] = [];
        const parser = createParser({
          onEvent: ({ event, data }) =>
            expected.push(event === undefined ? { data } : { event, data }),
        });
        parser.feed(wire);
        const bytes = encoder.encode(wire);
        const places = [
          0,
          ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
          bytes.length,
        ];
        const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
        expect(decode(chunks)).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  test("does not keep a reference to a chunk", () => {
    const decoder = new SseDecoder();
    const shared = encoder.encode("data: half");
    decoder.push(shared);
    shared.fill(0x78);
    expect(decoder.push(encoder.encode(" whole\n\n"))).toEqual([{ data: "half whole" }]);
  });

  test("refuses an event of 16 MiB, on one line or several", () => {
    const block = new Uint8Array(1024 * 1024).fill(0x61);
    const oneLine = new SseDecoder();
    oneLine.push(encoder.encode("data: "));
    const fill = (): void => {
      for (let count = 0; count <= maxEventBytes / block.length; count += 1) oneLine.push(block);
    };
    expect(fill).toThrow("larger than");

    const manyLines = new SseDecoder();
    const line = encoder.encode(`data: ${"a".repeat(1024 * 1024)}\n`);
    const fillLines = (): void => {
      for (let count = 0; count <= 16; count += 1) manyLines.push(line);
    };
    expect(fillLines).toThrow("larger than");
  });

  test("does not count the size of consecutive events together", () => {
    const decoder = new SseDecoder();
    const event = encoder.encode(`data: ${"a".repeat(1024 * 1024)}\n\n`);
    for (let count = 0; count < 20; count += 1) expect(decoder.push(event)).toHaveLength(1);
  });

  test("decodes a typical event within 50 µs", () => {
    const chunk = encoder.encode(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "hello" } }] })}\n\n`,
    );
    const decoder = new SseDecoder();
    const eachMicroseconds = leastMicroseconds(() => decoder.push(chunk), { calls: 200 });
    console.log(`one event a chunk: ${eachMicroseconds.toFixed(2)} µs`);
    expect(eachMicroseconds).toBeLessThan(50);
    expect(decodeText("")).toEqual([]);
  });
});
