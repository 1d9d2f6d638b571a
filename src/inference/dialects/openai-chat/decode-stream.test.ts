import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import type { StreamPart } from "../../canonical/response.ts";
import { SseDecoder, type SseEvent } from "../../upstream/sse-decoder.ts";
import type { DecodeContext } from "../dialect.ts";
import { ChatStreamDecoder } from "./decode-stream.ts";

const cassettes = readCassettes("openai-chat");
const rows = cassettes.map((cassette) => [cassette.name, cassette] as const);

function eventsOf(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()];
}

function partsOf(
  events: readonly SseEvent[],
  context: DecodeContext = { providerId: "acme", toolNames: () => ["look_up"] },
): StreamPart[] {
  const decoder = new ChatStreamDecoder(context);
  return [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()];
}

const chunk = (delta: object, finish: string | null = null): SseEvent => ({
  data: JSON.stringify({
    id: "chatcmpl-C1",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
  }),
});
const done: SseEvent = { data: "[DONE]" };

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
});

/** The rules that every reader of parts relies on. */
describe("every stream", () => {
  test.each(rows)("%s starts items before their deltas and ends once", (_name, { parts }) => {
    const open = new Set<string>();
    const finished = new Set<number>();
    for (const part of parts) {
      const key = "itemIndex" in part ? `${part.choiceIndex}/${part.itemIndex}` : "";
      if (part.type.endsWith("-start") && key !== "") {
        expect(open.has(key)).toBe(false);
        open.add(key);
      }
      if (/^(text|reasoning|tool-call)-(delta|end)$/.test(part.type))
        expect(open.has(key)).toBe(true);
      if (part.type.endsWith("-end") && key !== "") open.delete(key);
      if ("choiceIndex" in part) expect(finished.has(part.choiceIndex)).toBe(false);
      if (part.type === "finish") {
        expect([...open].some((one) => one.startsWith(`${part.choiceIndex}/`))).toBe(false);
        finished.add(part.choiceIndex);
      }
    }
    expect(parts.filter((part) => part.type === "usage").length).toBeLessThanOrEqual(1);
    expect(parts.findIndex((part) => part.type === "response-end" || part.type === "error")).toBe(
      parts.length - 1,
    );
  });
});

describe("the stream decoder", () => {
  test("returns nothing after the end", () => {
    const decoder = new ChatStreamDecoder();
    for (const event of [chunk({ content: "a" }, "stop"), done]) decoder.decode(event);
    expect([
      ...decoder.decode(chunk({ content: "late" })),
      ...decoder.decode(done),
      ...decoder.end(),
    ]).toEqual([]);
  });

  test("has the latest usage of an abandoned stream", () => {
    const decoder = new ChatStreamDecoder();
    expect(decoder.latestUsage).toBeUndefined();
    for (const count of [1, 2]) {
      decoder.decode({
        data: JSON.stringify({
          choices: [{ index: 0, delta: { content: "x" } }],
          usage: { prompt_tokens: 5, completion_tokens: count },
        }),
      });
    }
    expect(decoder.latestUsage?.usage).toEqual({ inputTokens: 5, outputTokens: 2 });
  });

  test("returns an error for a stream that ends before it starts", () => {
    expect(partsOf([])).toMatchObject([{ type: "error", fault: "cut" }]);
  });

  test("decodes a stream with only [DONE] as an empty response", () => {
    expect(partsOf([done])).toEqual([{ type: "response-end" }]);
  });

  test("returns an error for a stream with one truncated choice", () => {
    const other = { data: JSON.stringify({ choices: [{ index: 1, delta: { content: "b" } }] }) };
    expect(partsOf([chunk({ content: "a" }, "stop"), other]).at(-1)).toMatchObject({
      type: "error",
      fault: "cut",
    });
  });

  test("waits for the name of a call", () => {
    const parts = partsOf([
      chunk({
        tool_calls: [{ index: 0, id: "c1", type: "function", function: { arguments: "" } }],
      }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] }),
      chunk({ tool_calls: [{ index: 0, function: { name: "f", arguments: ":1}" } }] }),
      chunk({}, "tool_calls"),
      done,
    ]);
    expect(parts.filter((part) => part.type.startsWith("tool-call"))).toEqual([
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 0,
        kind: "function",
        id: "c1",
        name: "f",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 0, arguments: '{"a":1}' },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 0 },
    ]);
  });

  test("accepts arguments as an object", () => {
    const parts = partsOf([
      chunk({ tool_calls: [{ id: "c1", function: { name: "f", arguments: { a: 1 } } }] }, "stop"),
      done,
    ]);
    expect(parts).toContainEqual({
      type: "tool-call-delta",
      choiceIndex: 0,
      itemIndex: 0,
      arguments: '{"a":1}',
    });
  });

  test("keeps fragments of a server that repeats id and name but not the arguments", () => {
    const call = (text: string): SseEvent =>
      chunk({ tool_calls: [{ index: 0, id: "c1", function: { name: "f", arguments: text } }] });
    const parts = partsOf([call('{"a":'), call('"x'), call('x"}'), chunk({}, "tool_calls"), done]);
    expect(
      parts.flatMap((part) => (part.type === "tool-call-delta" ? [part.arguments] : [])).join(""),
    ).toBe('{"a":"xx"}');
  });

  test("restores the name and the input of a wrapped custom tool", () => {
    const toolAliases = new Map([
      ["apply_patch", { name: "apply_patch", unwrapsInput: true }],
      ["ns__find_1a2b3c4d", { name: "find", namespace: "ns" }],
    ]);
    const parts = partsOf(
      [
        chunk({
          tool_calls: [
            {
              index: 0,
              id: "c1",
              function: { name: "apply_patch", arguments: '{"input":"*** Be' },
            },
          ],
        }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: 'gin\\n"}' } }] }),
        chunk({
          tool_calls: [
            { index: 1, id: "c2", function: { name: "ns__find_1a2b3c4d", arguments: "{}" } },
          ],
        }),
        chunk({}, "tool_calls"),
        done,
      ],
      { toolAliases },
    );
    expect(parts.filter((part) => part.type.startsWith("tool-call"))).toEqual([
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 0,
        kind: "custom",
        id: "c1",
        name: "apply_patch",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 0, arguments: "*** Begin\n" },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 0 },
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 1,
        kind: "function",
        id: "c2",
        name: "find",
        namespace: "ns",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 1, arguments: "{}" },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 1 },
    ]);
  });

  test("starts new text after a call", () => {
    const parts = partsOf([
      chunk({ content: "a" }),
      chunk({ tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "{}" } }] }),
      chunk({ content: "b" }),
      chunk({}, "tool_calls"),
      done,
    ]);
    expect(
      parts.flatMap((part) => ("itemIndex" in part ? [`${part.type} ${part.itemIndex}`] : [])),
    ).toEqual([
      "text-start 0",
      "text-delta 0",
      "text-end 0",
      "tool-call-start 1",
      "tool-call-delta 1",
      "text-start 2",
      "text-delta 2",
      "text-end 2",
      "tool-call-end 1",
    ]);
  });

  const errors: [wire: string, message: string][] = [
    ['{"error":"plain text"}', "plain text"],
    ['{"error":{"message":"m","code":429}}', "m"],
    ['{"object":"error","message":"flat","code":400}', "flat"],
    ['{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "Overloaded"],
    ['[{"error":{"code":503,"message":"in a list","status":"UNAVAILABLE"}}]', "in a list"],
    ['{"error":{}}', "The provider ended the stream with an error."],
  ];
  test.each(errors)("reports %s", (data, message) => {
    expect(partsOf([{ data }, done])).toMatchObject([
      { type: "error", fault: "reported", error: { message } },
    ]);
  });

  test("keeps content in an error event, but not its end", () => {
    const data = JSON.stringify({
      error: { code: 500, message: "gone" },
      choices: [{ index: 0, delta: { content: "last" }, finish_reason: "error" }],
    });
    expect(partsOf([{ data }]).map((part) => part.type)).toEqual([
      "response-start",
      "text-start",
      "text-delta",
      "text-end",
      "error",
    ]);
  });
});

test("a summary's place that no summary has is the first", () => {
  const detail = { type: "reasoning.summary", summary: "Why", summary_index: 4e9 };
  expect(partsOf([chunk({ reasoning_details: [detail] }, "stop"), done])).toContainEqual(
    expect.objectContaining({ type: "reasoning-delta", summaryIndex: 0 }),
  );
});
