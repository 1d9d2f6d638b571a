import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { ResponseContext } from "../dialect.ts";
import { objectsIn, asObject, asString } from "../shared/wire-fields.ts";
import { openSeals } from "./contents/seals.ts";
import { encodeResponse } from "./encode-response.ts";
import { GenerateStreamEncoder } from "./encode-stream.ts";
import { googleGenerate } from "./index.ts";

/** What upstreams of every dialect said: clients of Google's dialect see all of them. */
const cassettes = [
  "google-generate",
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "amazon-converse",
].flatMap((dialect) =>
  readCassettes(dialect).map(({ name, parts }) => [`${dialect}, ${name}`, parts] as const),
);

const framesOf = (parts: readonly StreamPart[], context?: ResponseContext): string[] => {
  const encoder = new GenerateStreamEncoder(context);
  return parts.flatMap((part) => encoder.encode(part));
};

const chunksOf = (frames: readonly string[]): JsonObject[] =>
  frames.map((frame) => {
    const data = /^data: (\{[^\n]*\})\n\n$/.exec(frame)?.[1];
    return JSON.parse(data ?? `"no chunk: ${frame}"`) as JsonObject;
  });

const candidatesOf = ({ candidates }: JsonObject): readonly JsonObject[] => objectsIn(candidates);
const partsOf = ({ content }: JsonObject): readonly JsonObject[] =>
  objectsIn(asObject(content)?.parts);

/** Returns what a client has of one candidate, of the chunks of a stream or of a whole answer. */
function meaningOf(answers: readonly JsonObject[], index: unknown): unknown {
  const own = answers.flatMap(candidatesOf).filter((candidate) => candidate.index === index);
  const parts = own.flatMap(partsOf);
  const textOf = (isThought: boolean): string =>
    parts
      .filter(({ thought }) => (thought === true) === isThought)
      .map(({ text }) => asString(text) ?? "")
      .join("");
  return {
    text: textOf(false),
    thoughts: textOf(true),
    calls: parts.flatMap(({ functionCall }) => functionCall ?? []),
    // Sound comes in pieces.
    media: parts.map(({ inlineData }) => asString(asObject(inlineData)?.data) ?? "").join(""),
    carried: parts.flatMap(({ thoughtSignature }) =>
      typeof thoughtSignature === "string" ? (openSeals(thoughtSignature) ?? []) : [],
    ),
    ends: own.flatMap(({ finishReason }) => finishReason ?? []),
    sources: own.flatMap(({ groundingMetadata }) => groundingMetadata ?? []),
  };
}

const start: StreamPart = {
  type: "response-start",
  id: "up_1",
  model: "large-v2",
  createdAtSeconds: 7,
};
const at = (itemIndex: number): { choiceIndex: number; itemIndex: number } => ({
  choiceIndex: 0,
  itemIndex,
});
const text = (value: string, itemIndex = 0): StreamPart => ({
  type: "text-delta",
  ...at(itemIndex),
  text: value,
});
const call = (itemIndex: number, pieces: readonly string[]): StreamPart[] => [
  { type: "tool-call-start", ...at(itemIndex), kind: "function", id: `c${itemIndex}`, name: "f" },
  ...pieces.map(
    (piece): StreamPart => ({ type: "tool-call-delta", ...at(itemIndex), arguments: piece }),
  ),
  { type: "tool-call-end", ...at(itemIndex) },
];
const thought = (itemIndex: number, signature?: string): StreamPart[] => [
  { type: "reasoning-start", ...at(itemIndex) },
  { type: "reasoning-delta", ...at(itemIndex), text: "hm" },
  {
    type: "reasoning-end",
    ...at(itemIndex),
    ...(signature !== undefined && { signature, provenance: { providerId: "acme" } }),
  },
];
const finish: StreamPart = { type: "finish", choiceIndex: 0, finish: { reason: "stop" } };
const end: StreamPart = { type: "response-end" };

describe("every complete stream", () => {
  const rows = cassettes.filter(([, parts]) => parts.at(-1)?.type === "response-end");

  test.each(rows)("%s: is chunks alone, and ends once with its usage", (_name, parts) => {
    const chunks = chunksOf(framesOf(parts));
    for (const { responseId, modelVersion } of chunks)
      expect([typeof responseId, typeof modelVersion]).toEqual(["string", "string"]);
    const endings = chunks.map((chunk) =>
      candidatesOf(chunk).some(({ finishReason }) => finishReason !== undefined),
    );
    expect(endings.indexOf(true)).toBe(chunks.length - 1);
    const { candidates, usageMetadata } = chunks.at(-1) ?? {};
    for (const candidate of objectsIn(candidates))
      expect(candidate).toMatchObject({
        content: { role: "model" },
        finishReason: expect.any(String),
      });
    expect(usageMetadata).toMatchObject({ totalTokenCount: expect.any(Number) });
  });

  test.each(rows)("%s: adds up to the whole answer", (_name, parts) => {
    const chunks = chunksOf(framesOf(parts));
    const assembler = new ResponseAssembler();
    for (const part of parts) assembler.add(part);
    const whole = encodeResponse(assembler.response());
    for (const { index } of candidatesOf(whole))
      expect(meaningOf(chunks, index)).toEqual(meaningOf([whole], index));
    expect(asObject(chunks.at(-1)?.usageMetadata)).toEqual(
      asObject(JSON.parse(JSON.stringify(whole.usageMetadata))),
    );
  });
});

describe("an interrupted stream", () => {
  const rows = cassettes.filter(([, parts]) => parts.at(-1)?.type === "error");

  test.each(rows)("%s: ends with the error in both forms and names no end", (_name, parts) => {
    const frames = framesOf([...parts, end]);
    const [event = "", bare = ""] = frames.slice(-2);
    expect(event).toBe(`data: ${bare}`);
    expect(JSON.parse(bare)).toMatchObject({
      error: {
        code: expect.any(Number),
        message: expect.any(String),
        status: expect.stringMatching(/^[A-Z_]+$/),
        details: expect.arrayContaining([
          expect.objectContaining({ "@type": "type.googleapis.com/google.rpc.ErrorInfo" }),
        ]),
      },
    });
    expect(frames.slice(0, -2).join("")).not.toContain("finishReason");
  });
});

describe("the stream encoder", () => {
  test("writes the gateway's id and model on every chunk, and the charge and the metadata last", () => {
    const gateway = {
      costUsd: 0.000005,
      upstreamCostUsd: 0.000004,
      requestedModel: "acme/large",
      fallback: { used: true, reason: "timeout", attempts: [] },
      metadata: { timings: { total: 12 } },
    };
    const usage: StreamPart = {
      type: "usage",
      usage: { usage: { inputTokens: 3, outputTokens: 1 }, estimated: false, clamped: false },
    };
    const chunks = chunksOf(
      framesOf([start, text("a"), finish, usage, { type: "response-end", gateway }], {
        id: "gw",
        model: "acme/small",
      }),
    );
    expect(chunks).toEqual([
      {
        candidates: [{ content: { parts: [{ text: "a" }], role: "model" }, index: 0 }],
        modelVersion: "acme/small",
        responseId: "gw",
      },
      {
        candidates: [
          { content: { parts: [{ text: "" }], role: "model" }, finishReason: "STOP", index: 0 },
        ],
        usageMetadata: {
          promptTokenCount: 3,
          candidatesTokenCount: 1,
          totalTokenCount: 4,
          cost: 0.000005,
          cost_details: { upstream_inference_cost: 0.000004 },
        },
        modelVersion: "acme/small",
        responseId: "gw",
        requested_model: "acme/large",
        fallback: { used: true, reason: "timeout", attempts: [] },
        service_metadata: { timings: { total: 12 } },
      },
    ]);
  });

  test("writes each call whole, though others come between its arguments", () => {
    const [first, ...rest] = call(0, ['{"a"', ":1}"]);
    const [second, ...others] = call(1, ["{}"]);
    const mixed = [first, second, ...rest, ...others].filter((part) => part !== undefined);
    const chunks = chunksOf(framesOf([start, ...mixed, end]));
    expect(chunks.flatMap(candidatesOf).flatMap(partsOf)).toMatchObject([
      { functionCall: { id: "c0", name: "f", args: { a: 1 } } },
      { functionCall: { id: "c1", name: "f", args: {} } },
      { text: "" },
    ]);
  });

  test("carries the reasoning before a call in the call's signature, shown or not", () => {
    for (const exclude of [undefined, false] as const) {
      const request = {
        dialect: "google-generate",
        model: "m",
        stream: true,
        messages: [],
        ...(exclude === false && { reasoning: { exclude } }),
      } as const;
      const frames = framesOf([start, ...thought(0, "s"), ...call(1, ["{}"]), end], { request });
      const parts = chunksOf(frames).flatMap(candidatesOf).flatMap(partsOf);
      expect(parts.filter((part) => part.thought === true)).toHaveLength(exclude === false ? 1 : 0);
      const signature = parts.find((part) => part.functionCall !== undefined)?.thoughtSignature;
      expect(openSeals(String(signature))).toEqual({
        thoughts: [
          { type: "reasoning", text: "hm", signature: "s", provenance: { providerId: "acme" } },
        ],
      });
    }
  });

  test("writes nothing after the end", () => {
    const encoder = new GenerateStreamEncoder();
    for (const part of [start, text("a"), finish, end]) encoder.encode(part);
    expect([...encoder.encode(text("late")), ...encoder.encode(end)]).toEqual([]);
  });
});

test("a stream that fails outside of its encoder ends with the same two frames", () => {
  const error = new GatewayError("upstream_timeout", "Too slow.");
  const frames = googleGenerate.encodeStreamError(error, { traceId: "t" });
  expect(frames).toHaveLength(2);
  expect(JSON.parse(frames[1] ?? "null")).toMatchObject({
    error: {
      code: 504,
      message: "Too slow.",
      status: "DEADLINE_EXCEEDED",
      metadata: { code: "upstream_timeout", trace_id: "t" },
    },
  });
});
