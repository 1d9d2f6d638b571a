import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import type { StreamPart } from "../../canonical/response.ts";
import { SseDecoder, type SseEvent } from "../../upstream/sse-decoder.ts";
import type { DecodeContext } from "../dialect.ts";
import { MessagesStreamDecoder } from "./decode-stream.ts";

const cassettes = readCassettes("anthropic-messages");
const rows = cassettes.map((cassette) => [cassette.name, cassette] as const);

function eventsOf(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()];
}

function partsOf(
  events: readonly SseEvent[],
  context: DecodeContext = { providerId: "acme" },
): StreamPart[] {
  const decoder = new MessagesStreamDecoder(context);
  return [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()];
}

const event = (fields: { type: string } & Record<string, unknown>): SseEvent => ({
  event: fields.type,
  data: JSON.stringify(fields),
});
const start = event({
  type: "message_start",
  message: { id: "msg_1", model: "m", usage: { input_tokens: 5, output_tokens: 1 } },
});
const ending = (reason: string): SseEvent =>
  event({ type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 9 } });
const stop = event({ type: "message_stop" });

describe("cassettes", () => {
  test.each(rows)("%s decodes to the expected parts", (_name, { bytes, parts }) => {
    expect(partsOf(eventsOf([bytes]))).toEqual(parts);
  });

  test.each(rows)("%s gives the same events at every split", (_name, { bytes }) => {
    const whole = JSON.stringify(eventsOf([bytes]));
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const events = JSON.stringify(eventsOf([bytes.subarray(0, cut), bytes.subarray(cut)]));
      if (events !== whole) throw new Error(`cut at byte ${cut}: ${events}`);
    }
    expect(JSON.stringify(eventsOf([...bytes].map((byte) => Uint8Array.of(byte))))).toBe(whole);
  });

  test.each(rows)("%s starts items before their deltas and ends once", (_name, { parts }) => {
    const open = new Set<number>();
    for (const part of parts) {
      if (/^(text|reasoning|tool-call)-start$/.test(part.type) && "itemIndex" in part)
        open.add(part.itemIndex);
      if (/^(text|reasoning|tool-call)-(delta|end)$/.test(part.type) && "itemIndex" in part)
        expect(open.has(part.itemIndex)).toBe(true);
      if (/^(text|reasoning|tool-call)-end$/.test(part.type) && "itemIndex" in part)
        open.delete(part.itemIndex);
      if (part.type === "finish") expect(open.size).toBe(0);
    }
    expect(parts.filter((part) => part.type === "finish").length).toBeLessThanOrEqual(1);
    expect(parts.filter((part) => part.type === "usage").length).toBeLessThanOrEqual(1);
    expect(parts.findIndex((part) => part.type === "response-end" || part.type === "error")).toBe(
      parts.length - 1,
    );
  });
});

describe("the stream decoder", () => {
  test("returns nothing after the end", () => {
    const decoder = new MessagesStreamDecoder();
    for (const each of [start, ending("end_turn"), stop]) decoder.decode(each);
    expect([
      ...decoder.decode(start),
      ...decoder.decode(ending("end_turn")),
      ...decoder.decode(stop),
      ...decoder.end(),
    ]).toEqual([]);
  });

  test("counts the delivered content of a stream that is abandoned before its usage", () => {
    const decoder = new MessagesStreamDecoder();
    expect(decoder.latestUsage).toBeUndefined();
    decoder.decode(start);
    expect(decoder.latestUsage).toEqual({
      usage: { inputTokens: 5, outputTokens: 1 },
      estimated: false,
      clamped: false,
    });
    decoder.decode(
      event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    );
    decoder.decode(
      event({
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text: "x".repeat(400) },
      }),
    );
    expect(decoder.latestUsage).toEqual({
      usage: { inputTokens: 5, outputTokens: 100 },
      estimated: true,
      clamped: false,
    });
    decoder.decode(ending("end_turn"));
    expect(decoder.latestUsage?.usage).toEqual({ inputTokens: 5, outputTokens: 9 });
  });

  test("returns an error for a stream that ends before it starts", () => {
    expect(partsOf([])).toMatchObject([{ type: "error", fault: "cut" }]);
  });

  test("decodes a stream with only an end as an empty response", () => {
    expect(partsOf([stop])).toEqual([{ type: "response-end" }]);
  });

  test("restores the name and the input of a wrapped custom tool", () => {
    const toolAliases = new Map([
      ["apply_patch", { name: "apply_patch", unwrapsInput: true }],
      ["ns__find_1a2b3c4d", { name: "find", namespace: "ns" }],
    ]);
    const open = (index: number, name: string): SseEvent =>
      event({
        type: "content_block_start",
        index,
        content_block: { type: "tool_use", id: `c${index}`, name, input: {} },
      });
    const input = (index: number, text: string): SseEvent =>
      event({
        type: "content_block_delta",
        index,
        delta: { type: "input_json_delta", partial_json: text },
      });
    const parts = partsOf(
      [
        start,
        open(0, "apply_patch"),
        input(0, '{"input":"*** Be'),
        input(0, 'gin\\n"}'),
        event({ type: "content_block_stop", index: 0 }),
        open(1, "ns__find_1a2b3c4d"),
        input(1, "{}"),
        ending("tool_use"),
        stop,
      ],
      { toolAliases },
    );
    expect(parts.filter((part) => part.type.startsWith("tool-call"))).toEqual([
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 0,
        kind: "custom",
        id: "c0",
        name: "apply_patch",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 0, arguments: "*** Begin\n" },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 0 },
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 1,
        kind: "function",
        id: "c1",
        name: "find",
        namespace: "ns",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 1, arguments: "{}" },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 1 },
    ]);
  });

  const errors: [wire: SseEvent, error: object][] = [
    [
      {
        event: "error",
        data: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
      },
      { message: "Overloaded", type: "overloaded_error", status: 529 },
    ],
    [{ data: '{"error":{"message":"m","code":429}}' }, { message: "m", code: "429", status: 429 }],
    [{ event: "error", data: "gone" }, { message: "gone" }],
    [
      { event: "error", data: '{"type":"error"}' },
      { message: "The provider ended the stream with an error." },
    ],
  ];
  test.each(errors)("reports %j", (wire, error) => {
    expect(partsOf([start, wire, stop]).at(-1)).toEqual(
      expect.objectContaining({ type: "error", fault: "reported", error }),
    );
  });
});

test("names of Object.prototype in events are ignored", () => {
  const odd = [
    start,
    { data: '{"type":"constructor"}' },
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "a" } }),
    event({
      type: "content_block_delta",
      index: 0,
      delta: { type: "citations_delta", citation: { type: "valueOf" } },
    }),
    ending("toString"),
    stop,
  ];
  expect(
    partsOf(odd).filter((part) => part.type === "finish" || part.type === "annotation"),
  ).toEqual([
    {
      type: "annotation",
      choiceIndex: 0,
      itemIndex: 0,
      annotation: { type: "opaque", dialect: "anthropic-messages", value: { type: "valueOf" } },
    },
    { type: "finish", choiceIndex: 0, finish: { reason: "stop" } },
  ]);
});
