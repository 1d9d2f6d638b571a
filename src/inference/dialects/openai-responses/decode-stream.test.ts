import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import type { StreamPart } from "../../canonical/response.ts";
import { SseDecoder, type SseEvent } from "../../upstream/sse-decoder.ts";
import type { DecodeContext } from "../dialect.ts";
import { ResponsesStreamDecoder } from "./decode-stream.ts";

const rows = readCassettes("openai-responses").map(
  (cassette) => [cassette.name, cassette] as const,
);

function eventsOf(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()];
}

function partsOf(
  events: readonly SseEvent[],
  context: DecodeContext = { providerId: "acme" },
): StreamPart[] {
  const decoder = new ResponsesStreamDecoder(context);
  return [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()];
}

const event = (type: string, fields: object = {}): SseEvent => ({
  event: type,
  data: JSON.stringify({ type, ...fields }),
});
const completed = event("response.completed", {
  response: { id: "resp_1", status: "completed", output: [] },
});
const added = (outputIndex: number, item: object): SseEvent =>
  event("response.output_item.added", { output_index: outputIndex, item });
const done = (outputIndex: number, item: object): SseEvent =>
  event("response.output_item.done", { output_index: outputIndex, item });

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
    const open = new Set<number>();
    for (const part of parts) {
      const place = "itemIndex" in part ? part.itemIndex : -1;
      if (part.type.endsWith("-start") && place >= 0) {
        expect(open.has(place)).toBe(false);
        open.add(place);
      }
      if (/^(text|reasoning|tool-call)-(delta|end)$/.test(part.type))
        expect(open.has(place)).toBe(true);
      if (part.type.endsWith("-end") && place >= 0) open.delete(place);
      if (part.type === "finish") expect([...open]).toEqual([]);
    }
    expect(parts.filter((part) => part.type === "usage").length).toBeLessThanOrEqual(1);
    expect(["response-end", "error"]).toContain(parts.at(-1)?.type ?? "");
  });

  test.each(rows)("%s is complete only after its terminal event", (name, { bytes }) => {
    const events = eventsOf([bytes]);
    const terminal = events.findIndex(({ data }) =>
      /"type":"(?:response\.(?:completed|incomplete|failed)|error)"/.test(data),
    );
    for (let count = 0; count < (terminal < 0 ? events.length : terminal); count += 1) {
      const last = partsOf(events.slice(0, count)).at(-1);
      expect(last, `${name} after ${count} events`).toMatchObject({ type: "error", fault: "cut" });
    }
  });
});

describe("tool calls", () => {
  test("get back the original name of a renamed tool", () => {
    const toolAliases = new Map([
      ["ns__f", { name: "f", namespace: "ns" }],
      ["patch", { name: "apply patch", unwrapsInput: true }],
    ]);
    const parts = partsOf(
      [
        added(0, { id: "fc_1", type: "function_call", call_id: "a", name: "ns__f", arguments: "" }),
        done(0, {
          id: "fc_1",
          type: "function_call",
          call_id: "a",
          name: "ns__f",
          arguments: "{}",
        }),
        added(1, { id: "fc_2", type: "function_call", call_id: "b", name: "patch", arguments: "" }),
        event("response.function_call_arguments.delta", {
          output_index: 1,
          item_id: "fc_2",
          delta: '{"input":"a',
        }),
        event("response.function_call_arguments.delta", {
          output_index: 1,
          item_id: "fc_2",
          delta: 'b"}',
        }),
        done(1, {
          id: "fc_2",
          type: "function_call",
          call_id: "b",
          name: "patch",
          arguments: '{"input":"ab"}',
        }),
        completed,
      ],
      { toolAliases },
    );
    expect(parts).toContainEqual({
      type: "tool-call-start",
      choiceIndex: 0,
      itemIndex: 0,
      kind: "function",
      name: "f",
      namespace: "ns",
      id: "a",
    });
    expect(parts).toContainEqual({
      type: "tool-call-start",
      choiceIndex: 0,
      itemIndex: 1,
      kind: "custom",
      name: "apply patch",
      id: "b",
    });
    expect(parts.filter((part) => part.type === "tool-call-delta" && part.itemIndex === 1)).toEqual(
      [{ type: "tool-call-delta", choiceIndex: 0, itemIndex: 1, arguments: "ab" }],
    );
  });

  test("without ids get distinct, deterministic ids", () => {
    const events = [
      event("response.created", { response: { id: "resp_77" } }),
      done(3, { type: "function_call", name: "f", arguments: "{}" }),
      done(4, { type: "function_call", name: "f", arguments: "{}" }),
      completed,
    ];
    const ids = partsOf(events).flatMap((part) =>
      part.type === "tool-call-start" ? [part.id] : [],
    );
    expect(ids).toEqual(["call_resp77_3", "call_resp77_4"]);
  });
});

describe("deviations of servers", () => {
  test("interleaved text of two messages keeps its order", () => {
    const delta = (outputIndex: number, text: string): SseEvent =>
      event("response.output_text.delta", {
        output_index: outputIndex,
        item_id: `m${outputIndex}`,
        content_index: 0,
        delta: text,
      });
    const parts = partsOf([delta(0, "a"), delta(1, "b"), delta(0, "c"), completed]);
    expect(parts.filter((part) => part.type === "text-delta").map((part) => part.text)).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(parts.filter((part) => part.type.startsWith("text-")).map((part) => part.type)).toEqual([
      "text-start",
      "text-delta",
      "text-end",
      "text-start",
      "text-delta",
      "text-end",
      "text-start",
      "text-delta",
      "text-end",
    ]);
  });

  test("a final item that differs from its deltas is not sent again", () => {
    const parts = partsOf([
      event("response.output_text.delta", {
        output_index: 0,
        item_id: "m",
        content_index: 0,
        delta: "Hello",
      }),
      done(0, { id: "m", type: "message", content: [{ type: "output_text", text: "Hullo" }] }),
      completed,
    ]);
    expect(parts.filter((part) => part.type === "text-delta")).toHaveLength(1);
  });

  test("an error in chat format, or plain text of an error event, is an error", () => {
    expect(partsOf([{ data: '{"error":{"message":"No.","code":400}}' }])).toEqual([
      { type: "error", fault: "reported", error: { message: "No.", code: "400", status: 400 } },
    ]);
    expect(partsOf([{ event: "error", data: "Out of memory" }])).toEqual([
      { type: "error", fault: "reported", error: { message: "Out of memory" } },
    ]);
  });

  test.each([4e9, -1, 0.5, "1"])(
    "a summary's place %p, which no summary has, is the first",
    (at) => {
      const parts = partsOf([
        event("response.reasoning_summary_text.delta", {
          ...{ output_index: 0, item_id: "r", summary_index: at, delta: "Why" },
        }),
        completed,
      ]);
      expect(parts).toContainEqual(
        expect.objectContaining({ type: "reasoning-delta", summaryIndex: 0 }),
      );
    },
  );
});
