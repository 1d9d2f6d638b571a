import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import type { StreamPart } from "../../canonical/response.ts";
import { SseDecoder, type SseEvent } from "../../upstream/sse-decoder.ts";
import type { DecodeContext } from "../dialect.ts";
import { GenerateStreamDecoder } from "./decode-stream.ts";

const rows = readCassettes("google-generate").map((cassette) => [cassette.name, cassette] as const);

function eventsOf(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()];
}

function partsOf(
  events: readonly SseEvent[],
  context: DecodeContext = { providerId: "acme" },
): StreamPart[] {
  const decoder = new GenerateStreamDecoder(context);
  return [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()];
}

const chunk = (parts: object[], rest: object = {}): SseEvent => ({
  data: JSON.stringify({
    candidates: [{ content: { role: "model", parts }, ...rest }],
    responseId: "R1",
    modelVersion: "m",
  }),
});

describe("cassettes", () => {
  test.each(rows)("%s decodes to the expected parts", (_name, { bytes, parts }) => {
    expect(partsOf(eventsOf([bytes]))).toEqual(parts);
  });

  test.each(rows)("%s gives the same parts at every split", (_name, { bytes, parts }) => {
    const whole = JSON.stringify(parts);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const cutParts = JSON.stringify(
        partsOf(eventsOf([bytes.subarray(0, cut), bytes.subarray(cut)])),
      );
      if (cutParts !== whole) throw new Error(`cut at byte ${cut}: ${cutParts}`);
    }
    expect(JSON.stringify(partsOf(eventsOf([...bytes].map((byte) => Uint8Array.of(byte)))))).toBe(
      whole,
    );
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
    const decoder = new GenerateStreamDecoder();
    decoder.decode(chunk([{ text: "a" }], { finishReason: "STOP" }));
    expect(decoder.end().at(-1)).toEqual({ type: "response-end" });
    expect([...decoder.decode(chunk([{ text: "late" }])), ...decoder.end()]).toEqual([]);
  });

  test("has the latest usage of an abandoned stream", () => {
    const decoder = new GenerateStreamDecoder();
    expect(decoder.latestUsage).toBeUndefined();
    for (const count of [1, 2]) {
      decoder.decode({
        data: JSON.stringify({
          candidates: [],
          usageMetadata: { promptTokenCount: 5, candidatesTokenCount: count },
        }),
      });
    }
    expect(decoder.latestUsage?.usage).toEqual({ inputTokens: 5, outputTokens: 2 });
  });

  test("returns an error for a stream that ends before it starts", () => {
    expect(partsOf([])).toMatchObject([{ type: "error", fault: "cut" }]);
  });

  test("returns an error for a stream with one truncated candidate", () => {
    const other = {
      data: JSON.stringify({ candidates: [{ index: 1, content: { parts: [{ text: "b" }] } }] }),
    };
    expect(partsOf([chunk([{ text: "a" }], { finishReason: "STOP" }), other]).at(-1)).toMatchObject(
      { type: "error", fault: "cut" },
    );
  });

  test("decodes a list of chunks, as in streams without alt=sse", () => {
    const list = `[${chunk([{ text: "a" }]).data},${chunk([{ text: "b" }], { finishReason: "STOP" }).data}]`;
    const texts = partsOf([{ data: list }]).flatMap((part) =>
      part.type === "text-delta" ? [part.text] : [],
    );
    expect(texts).toEqual(["a", "b"]);
  });

  test("infers the end from an unknown finish reason", () => {
    expect(partsOf([chunk([{ text: "a" }], { finishReason: "NEW_WORD" })])).toContainEqual({
      type: "finish",
      choiceIndex: 0,
      finish: { reason: "stop" },
    });
  });

  test("restores the name and the input of a wrapped custom tool", () => {
    const toolAliases = new Map([
      ["apply_patch", { name: "apply_patch", unwrapsInput: true }],
      ["ns__find", { name: "find", namespace: "ns" }],
    ]);
    const parts = partsOf(
      [
        chunk(
          [
            { functionCall: { name: "apply_patch", args: { input: "*** Begin\n" } } },
            { functionCall: { name: "ns__find", args: {} } },
          ],
          { finishReason: "STOP" },
        ),
      ],
      { toolAliases },
    );
    expect(parts.filter((part) => part.type.startsWith("tool-call"))).toEqual([
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 0,
        kind: "custom",
        id: "call_R1_0",
        name: "apply_patch",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 0, arguments: "*** Begin\n" },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 0 },
      {
        type: "tool-call-start",
        choiceIndex: 0,
        itemIndex: 1,
        kind: "function",
        id: "call_R1_1",
        name: "find",
        namespace: "ns",
      },
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 1, arguments: "{}" },
      { type: "tool-call-end", choiceIndex: 0, itemIndex: 1 },
    ]);
  });

  test("leaves a signature without a provider if the provider is unknown", () => {
    const parts = partsOf(
      [chunk([{ functionCall: { name: "f" }, thoughtSignature: "s" }], { finishReason: "STOP" })],
      {},
    );
    expect(parts).toContainEqual({
      type: "tool-call-start",
      choiceIndex: 0,
      itemIndex: 0,
      kind: "function",
      id: "call_R1_0",
      name: "f",
      signature: "s",
    });
  });

  const oddities: [what: string, data: string][] = [
    ["an empty object", "{}"],
    ["candidates that are not a list", '{"candidates":7}'],
    ["invalid parts", '{"candidates":[{"content":{"parts":[1,null]}}]}'],
    ["a call without a name", '{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}'],
    ["a number", "7"],
    ["[DONE]", "[DONE]"],
  ];
  test.each(oddities)("ignores %s", (_what, data) => {
    const parts = partsOf([{ data }, chunk([{ text: "a" }], { finishReason: "STOP" })]);
    expect(parts.some((part) => part.type === "text-delta")).toBe(true);
    expect(parts.at(-1)).toEqual({ type: "response-end" });
  });
});
