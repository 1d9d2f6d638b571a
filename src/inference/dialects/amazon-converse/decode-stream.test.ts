import { beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { messagesOfLines } from "../../../../test/support/upstream/event-stream-message.ts";
import type { StreamPart } from "../../canonical/response.ts";
import { openEventStream, type EventStreamDecoder } from "../../upstream/event-stream-decoder.ts";
import type { SseEvent } from "../../upstream/sse-decoder.ts";
import type { DecodeContext } from "../dialect.ts";
import { ConverseStreamDecoder } from "./decode-stream.ts";

const rows = readCassettes("amazon-converse").map(({ name, bytes, parts }) => {
  const messages = messagesOfLines(Buffer.from(bytes).toString());
  return [name, { messages, parts }] as const;
});

let frames: EventStreamDecoder;
beforeAll(async () => {
  frames = await openEventStream("named");
});

function eventsOf(chunks: readonly Uint8Array[]): SseEvent[] {
  const events = chunks.flatMap((chunk) => frames.push(chunk));
  return [...events, ...frames.end()];
}

function partsOf(
  events: readonly SseEvent[],
  context: DecodeContext = { providerId: "acme" },
): StreamPart[] {
  const decoder = new ConverseStreamDecoder(context);
  return [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()];
}

const event = (name: string, payload: object): SseEvent => ({
  event: name,
  data: JSON.stringify(payload),
});

describe("cassettes", () => {
  test.each(rows)("%s decodes to the expected parts", (_name, { messages, parts }) => {
    expect(partsOf(eventsOf([messages]))).toEqual(parts);
  });

  test.each(rows)("%s gives the same parts at every split", (_name, { messages, parts }) => {
    const whole = JSON.stringify(parts);
    for (let cut = 0; cut <= messages.length; cut += 1) {
      const pieces = [messages.subarray(0, cut), messages.subarray(cut)];
      const cutParts = JSON.stringify(partsOf(eventsOf(pieces)));
      if (cutParts !== whole) throw new Error(`cut at byte ${cut}: ${cutParts}`);
    }
  });
});

/** The rules that every reader of parts relies on. */
describe("every stream", () => {
  test.each(rows)("%s starts items before their deltas and ends once", (_name, { parts }) => {
    const open = new Map<string, string>();
    let finished = false;
    for (const part of parts) {
      const key = "itemIndex" in part ? `${part.choiceIndex}/${part.itemIndex}` : "";
      if ("itemIndex" in part) expect(finished).toBe(false);
      if (part.type.endsWith("-start") && key !== "") {
        if (part.type !== "tool-call-start") expect([...open.values()]).not.toContain(part.type);
        open.set(key, part.type);
      }
      if (/^(text|reasoning|tool-call)-(delta|end)$/.test(part.type))
        expect(open.has(key)).toBe(true);
      if (part.type.endsWith("-end") && key !== "") open.delete(key);
      if (part.type === "finish") {
        expect([...open.keys()]).toEqual([]);
        finished = true;
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
    const decoder = new ConverseStreamDecoder();
    decoder.decode(event("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "a" } }));
    decoder.decode(event("messageStop", { stopReason: "end_turn" }));
    expect(
      decoder.decode(event("metadata", { usage: { inputTokens: 1, outputTokens: 1 } })).at(-1),
    ).toEqual({ type: "response-end" });
    const late = event("contentBlockDelta", { contentBlockIndex: 1, delta: { text: "late" } });
    expect([...decoder.decode(late), ...decoder.end()]).toEqual([]);
  });

  test("returns an error for a stream that ends before it starts", () => {
    expect(partsOf([])).toMatchObject([{ type: "error", fault: "cut" }]);
  });

  test("restores the name and the input of a wrapped tool", () => {
    const toolAliases = new Map([
      ["ns__shell", { name: "shell", namespace: "ns", unwrapsInput: true }],
    ]);
    const parts = partsOf(
      [
        event("contentBlockStart", {
          contentBlockIndex: 0,
          start: { toolUse: { toolUseId: "t", name: "ns__shell" } },
        }),
        event("contentBlockDelta", {
          contentBlockIndex: 0,
          delta: { toolUse: { input: '{"inp' } },
        }),
        event("contentBlockDelta", {
          contentBlockIndex: 0,
          delta: { toolUse: { input: 'ut":"ls"}' } },
        }),
        event("contentBlockStop", { contentBlockIndex: 0 }),
      ],
      { toolAliases },
    );
    const place = { choiceIndex: 0, itemIndex: 0 };
    expect(parts.slice(1, 4)).toEqual([
      {
        type: "tool-call-start",
        ...place,
        kind: "custom",
        id: "t",
        name: "shell",
        namespace: "ns",
      },
      { type: "tool-call-delta", ...place, arguments: "ls" },
      { type: "tool-call-end", ...place },
    ]);
  });

  test("ends once on malformed events and returns only valid parts", () => {
    const names = fc.constantFrom(
      "messageStart",
      "contentBlockStart",
      "contentBlockDelta",
      "contentBlockStop",
      "messageStop",
      "metadata",
      "exception:throttlingException",
      "other",
    );
    const member = fc.constantFrom(
      "contentBlockIndex",
      "start",
      "delta",
      "text",
      "toolUse",
      "reasoningContent",
      "citation",
      "location",
      "image",
      "stopReason",
      "usage",
      "message",
    );
    const payload = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<unknown>("x", 1, -1, null, true, [], "end_turn", "malformed_tool_use"),
        fc.dictionary(member, tie("value"), { maxKeys: 4 }),
      ),
    })).value;
    const garbled = fc.array(fc.tuple(names, payload), { maxLength: 8 });
    fc.assert(
      fc.property(garbled, (events) => {
        const parts = partsOf(
          events.map(([name, value]) => ({ event: name, data: JSON.stringify(value) })),
        );
        expect(parts.findIndex(({ type }) => type === "response-end" || type === "error")).toBe(
          parts.length - 1,
        );
      }),
      { numRuns: 2_000 },
    );
  });
});
