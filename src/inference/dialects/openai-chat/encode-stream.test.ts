import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { ResponseContext } from "../dialect.ts";
import { ChatStreamEncoder } from "./encode-stream.ts";
import { openaiChat } from "./index.ts";
import { decodeReasoning } from "./answer-fields.ts";

const cassettes = readCassettes("openai-chat");

const framesOf = (parts: readonly StreamPart[], context?: ResponseContext): string[] => {
  const encoder = new ChatStreamEncoder(context);
  return parts.flatMap((part) => encoder.encode(part));
};

interface Chunk {
  id: string;
  choices: { index: number; delta: JsonObject; finish_reason: string | null }[];
  usage?: JsonObject;
}

const chunksOf = (frames: readonly string[]): Chunk[] =>
  frames
    .map((frame) => frame.replace(/^data: /, "").trim())
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data) as Chunk);

const start: StreamPart = {
  type: "response-start",
  id: "up_1",
  model: "large-v2",
  createdAtSeconds: 7,
};
const text = (value: string, itemIndex = 0): StreamPart => ({
  type: "text-delta",
  choiceIndex: 0,
  itemIndex,
  text: value,
});
const call = (itemIndex: number): StreamPart => ({
  type: "tool-call-start",
  choiceIndex: 0,
  itemIndex,
  kind: "function",
  id: `c${itemIndex}`,
  name: "f",
});
const end: StreamPart = { type: "response-end" };
const deltas = (parts: StreamPart[], context?: ResponseContext): JsonObject[] =>
  chunksOf(framesOf(parts, context)).flatMap((chunk) =>
    chunk.choices.map((choice) => choice.delta),
  );

describe("every complete stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "response-end")
    .map(({ name, parts }) => [name, parts] as const);

  test.each(rows)("%s: role first, finish once, usage last, then [DONE]", (_name, parts) => {
    const frames = framesOf(parts);
    expect(frames.at(-1)).toBe("data: [DONE]\n\n");
    expect(frames.filter((frame) => frame.includes("[DONE]")).length).toBe(1);
    for (const frame of frames) expect(frame).toMatch(/^data: \S[^\n]*\n\n$/);
    const chunks = chunksOf(frames);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    const entries = chunks.flatMap((chunk) => chunk.choices);
    for (const index of new Set(entries.map((entry) => entry.index))) {
      const own = entries.filter((entry) => entry.index === index);
      expect(own.map((entry) => "role" in entry.delta)).toEqual(
        own.map((_, position) => position === 0),
      );
      expect(own.map((entry) => entry.finish_reason !== null)).toEqual(
        own.map((_, position) => position === own.length - 1),
      );
    }
    const usageAt = chunks.findIndex((chunk) => chunk.usage !== undefined);
    if (usageAt >= 0) {
      expect(usageAt).toBe(chunks.length - 1);
      expect(chunks[usageAt]?.choices).toEqual([]);
    }
  });

  test.each(rows)("%s: OpenAI's own client assembles the same response", async (_name, parts) => {
    const client = new OpenAI({
      apiKey: "none",
      baseURL: "http://gateway.invalid",
      fetch: () =>
        Promise.resolve(
          new Response(framesOf(parts).join(""), {
            headers: { "content-type": "text/event-stream" },
          }),
        ),
    });
    const stream = client.chat.completions.stream({
      model: "m",
      messages: [{ role: "user", content: "Hi" }],
    });
    const completion = await stream.finalChatCompletion();
    const assembler = new ResponseAssembler();
    for (const part of parts) assembler.add(part);
    const expected = assembler.response();
    expect(completion.choices.map((choice) => choice.finish_reason as string)).toEqual(
      expected.choices.map(({ finish }) =>
        finish.reason === "stop_sequence" ? "stop" : finish.reason,
      ),
    );
    for (const { index, parts: made } of expected.choices) {
      const message = completion.choices.find((choice) => choice.index === index)?.message;
      const said = made.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
      expect(message?.content ?? "").toBe(said);
      const calls = made.flatMap((part) =>
        part.type === "tool-call" && part.kind === "function"
          ? [[part.id, part.name, part.arguments]]
          : [],
      );
      const read = (message?.tool_calls ?? []).flatMap((call) =>
        call.type === "function" ? [[call.id, call.function.name, call.function.arguments]] : [],
      );
      expect(read).toEqual(calls);
    }
  });
});

describe("an interrupted stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "error")
    .map(({ name, parts }) => [name, parts] as const);

  test.each(rows)(
    "%s: ends with one error without choices, finish or [DONE], and raises an error",
    async (_name, parts) => {
      const frames = framesOf([...parts, end]);
      const last = JSON.parse(frames.at(-1)?.slice("data: ".length) ?? "") as JsonObject;
      expect(Object.keys(last)).toEqual(["error"]);
      expect(Object.keys(last.error as JsonObject).sort()).toEqual([
        "code",
        "message",
        "metadata",
        "param",
        "type",
      ]);
      expect(frames.join("")).not.toContain("[DONE]");
      expect(frames.slice(0, -1).join("")).not.toMatch(/"finish_reason":"/);
      const client = new OpenAI({
        apiKey: "none",
        baseURL: "http://gateway.invalid",
        maxRetries: 0,
        fetch: () =>
          Promise.resolve(
            new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } }),
          ),
      });
      const stream = client.chat.completions.stream({ model: "m", messages: [] });
      await expect(stream.finalChatCompletion()).rejects.toThrow();
    },
  );
});

describe("the stream encoder", () => {
  test("writes the gateway's id and model, and the settled charge with the usage", () => {
    const frames = framesOf(
      [
        start,
        text("a"),
        { type: "finish", choiceIndex: 0, finish: { reason: "stop" } },
        {
          type: "usage",
          usage: { usage: { inputTokens: 3, outputTokens: 1 }, estimated: false, clamped: false },
        },
        {
          type: "response-end",
          gateway: {
            costUsd: 0.000005,
            upstreamCostUsd: 0.000004,
            requestedModel: "acme/large",
            fallback: { used: true, reason: "upstream_5xx", attempts: [] },
            metadata: { timings: { total: 12 } },
          },
        },
      ],
      { id: "chatcmpl-gw", model: "acme/large" },
    );
    expect(chunksOf(frames).at(-1)).toEqual({
      id: "chatcmpl-gw",
      object: "chat.completion.chunk",
      created: 7,
      model: "acme/large",
      choices: [],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 1,
        total_tokens: 4,
        cost: 0.000005,
        cost_details: { upstream_inference_cost: 0.000004 },
      },
      requested_model: "acme/large",
      fallback: { used: true, reason: "upstream_5xx", attempts: [] },
      service_metadata: { timings: { total: 12 } },
    } as never);
  });

  test("finishes choices without a finish, with tool_calls if they have calls", () => {
    const other: StreamPart = {
      type: "tool-call-start",
      choiceIndex: 1,
      itemIndex: 0,
      kind: "function",
      id: "c",
      name: "f",
    };
    const ends = chunksOf(framesOf([start, text("a"), other, end]))
      .flatMap((chunk) => chunk.choices)
      .filter((choice) => choice.finish_reason !== null);
    expect(ends.map((choice) => [choice.index, choice.finish_reason])).toEqual([
      [0, "stop"],
      [1, "tool_calls"],
    ]);
  });

  test("numbers calls in order, regardless of other items", () => {
    const wire = deltas([
      start,
      text("a"),
      call(1),
      call(4),
      { type: "tool-call-delta", choiceIndex: 0, itemIndex: 4, arguments: "{}" },
      end,
    ]);
    expect(
      wire.flatMap((delta) =>
        ((delta.tool_calls as { index: number }[] | undefined) ?? []).map((one) => one.index),
      ),
    ).toEqual([0, 1, 1]);
  });

  test("writes empty arguments for a call without arguments", () => {
    const place = { choiceIndex: 0, itemIndex: 0 };
    const wire = deltas([
      start,
      { type: "tool-call-start", ...place, kind: "function", id: "c", name: "f" },
      { type: "tool-call-end", ...place },
      end,
    ]);
    expect(wire).toContainEqual({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] });
  });

  test("separates several messages of one response", () => {
    const wire = deltas([
      start,
      { type: "text-start", choiceIndex: 0, itemIndex: 0 },
      text("One."),
      { type: "text-end", choiceIndex: 0, itemIndex: 0 },
      { type: "text-start", choiceIndex: 0, itemIndex: 1, startsMessage: true },
      text("Two.", 1),
      text("!", 1),
      { type: "text-start", choiceIndex: 0, itemIndex: 2 },
      text(" Three", 2),
      end,
    ]);
    expect(wire.map((delta) => delta.content ?? "").join("")).toBe("One.\n\nTwo.! Three");
  });

  test("writes the explanation of a refusal at the end", () => {
    const frames = chunksOf(
      framesOf([
        start,
        { type: "finish", choiceIndex: 0, finish: { reason: "refusal", explanation: "Not this." } },
        end,
      ]),
    );
    expect(frames.flatMap((chunk) => chunk.choices)).toEqual([
      { index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null },
      { index: 0, delta: { refusal: "Not this." }, logprobs: null, finish_reason: null },
      { index: 0, delta: {}, logprobs: null, finish_reason: "content_filter" },
    ] as never);
  });

  test("attaches a signed thought between calls to the next call", () => {
    const wire = deltas([
      start,
      call(0),
      { type: "reasoning-start", choiceIndex: 0, itemIndex: 1 },
      { type: "reasoning-delta", choiceIndex: 0, itemIndex: 1, text: "hm" },
      { type: "reasoning-end", choiceIndex: 0, itemIndex: 1, signature: "s" },
      call(2),
      end,
    ]);
    expect(wire.filter((delta) => "reasoning_details" in delta)).toEqual([
      {
        reasoning_content: "hm",
        reasoning: "hm",
        reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }],
      },
      {
        reasoning_details: [
          { type: "reasoning.text", signature: "s", index: 0, tool_call_id: "c2" },
        ],
      },
    ]);
    const details = wire.flatMap(
      (delta) => (delta as { reasoning_details?: JsonObject[] }).reasoning_details ?? [],
    );
    const thought = {
      type: "reasoning",
      field: "reasoning_details",
      text: "hm",
      signature: "s",
    };
    expect(decodeReasoning({ reasoning_details: details })).toEqual({
      leading: [],
      beforeCall: new Map([["c2", [thought]]]),
    } as never);
  });

  test("numbers reasoning summaries so that clients can join their pieces", () => {
    const piece = (text: string, summaryIndex: number): StreamPart => ({
      type: "reasoning-delta",
      choiceIndex: 0,
      itemIndex: 0,
      text,
      summaryIndex,
    });
    const wire = deltas([
      start,
      { type: "reasoning-start", choiceIndex: 0, itemIndex: 0, id: "rs_1" },
      piece("a", 0),
      piece("b", 0),
      piece("c", 1),
      { type: "reasoning-end", choiceIndex: 0, itemIndex: 0, encrypted: "e" },
      end,
    ]);
    const details = wire.flatMap(
      (delta) => (delta as { reasoning_details?: JsonObject[] }).reasoning_details ?? [],
    );
    const thought = {
      type: "reasoning",
      field: "reasoning_details",
      id: "rs_1",
      summary: ["ab", "c"],
      encrypted: "e",
    };
    expect(decodeReasoning({ reasoning_details: details })).toEqual({
      leading: [thought],
      beforeCall: new Map(),
    } as never);
  });

  const asking = (change: object): ResponseContext => ({
    request: { dialect: "openai-chat", model: "m", stream: true, ...change },
  });

  test("omits reasoning if the client excludes it", () => {
    const thought: StreamPart[] = [
      { type: "reasoning-start", choiceIndex: 0, itemIndex: 0 },
      { type: "reasoning-delta", choiceIndex: 0, itemIndex: 0, text: "hm" },
      { type: "reasoning-end", choiceIndex: 0, itemIndex: 0, signature: "s" },
    ];
    expect(
      deltas(
        [start, ...thought, text("a", 1), end],
        asking({ reasoning: { exclude: true } }),
      ).flatMap((delta) => Object.keys(delta)),
    ).toEqual(["role", "content", "content"]);
  });

  test("uses legacy fields for legacy clients", () => {
    const place = { choiceIndex: 0, itemIndex: 0 };
    const frames = framesOf(
      [
        start,
        { type: "tool-call-start", ...place, kind: "function", id: "c", name: "f" },
        { type: "tool-call-delta", ...place, arguments: "{}" },
        { type: "tool-call-end", ...place },
        { type: "finish", choiceIndex: 0, finish: { reason: "tool_calls" } },
        end,
      ],
      asking({ legacyFunctions: true }),
    );
    const entries = chunksOf(frames).flatMap((chunk) => chunk.choices);
    expect(entries.map((entry) => entry.delta.function_call)).toEqual([
      undefined,
      { name: "f", arguments: "" },
      { arguments: "{}" },
      undefined,
    ] as never);
    expect(entries.at(-1)?.finish_reason).toBe("function_call");
  });

  test("writes nothing after the end", () => {
    const encoder = new ChatStreamEncoder();
    for (const part of [start, text("a"), end]) encoder.encode(part);
    expect([...encoder.encode(text("b")), ...encoder.encode(end)]).toEqual([]);
  });
});

test("gateway errors have OpenAI's four keys and the metadata, and no private details", () => {
  const error = new GatewayError("rate_limit_exceeded", "Try again in 5 s.", {
    param: "model",
    fault: "upstream",
    detail: "secret",
    metadata: { upstream_backend: "acme", upstream_status: 429 },
  });
  const body = {
    error: {
      code: "rate_limit_exceeded",
      message: "Try again in 5 s.",
      type: "rate_limit_error",
      param: "model",
      metadata: {
        type: "rate_limit_error",
        fault: "upstream",
        trace_id: "t1",
        upstream_backend: "acme",
        upstream_status: 429,
      },
    },
  };
  expect(openaiChat.encodeError(error, { traceId: "t1" })).toEqual(body);
  expect(openaiChat.encodeStreamError(error, { traceId: "t1" })).toEqual([
    `data: ${JSON.stringify(body)}\n\n`,
  ]);
});
