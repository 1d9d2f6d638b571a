import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { ResponseContext } from "../dialect.ts";
import { anthropicMessages } from "./index.ts";
import { encodeResponse } from "./encode-response.ts";
import { MessagesStreamEncoder } from "./encode-stream.ts";

/**
 * What upstreams of this dialect said, and what those of chat did: clients of Messages see both.
 */
const cassettes = [...readCassettes("anthropic-messages"), ...readCassettes("openai-chat")];

const framesOf = (parts: readonly StreamPart[], context?: ResponseContext): string[] => {
  const encoder = new MessagesStreamEncoder(context);
  return parts.flatMap((part) => encoder.encode(part));
};

const eventsOf = (frames: readonly string[]): JsonObject[] =>
  frames.map((frame) => {
    const match = /^event: (\w+)\ndata: (\S[^\n]*)\n\n$/.exec(frame);
    const data = JSON.parse(match?.[2] ?? "null") as JsonObject;
    expect(String(data.type)).toBe(match?.[1] ?? "");
    return data;
  });

const sdkOver = (body: string): Anthropic =>
  new Anthropic({
    apiKey: "none",
    baseURL: "http://gateway.invalid",
    maxRetries: 0,
    fetch: () =>
      Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } })),
  });

const read = (frames: readonly string[]): Promise<Anthropic.Message> =>
  sdkOver(frames.join(""))
    .messages.stream({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] })
    .finalMessage();

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
const call = (itemIndex: number): StreamPart => ({
  type: "tool-call-start",
  ...at(itemIndex),
  kind: "function",
  id: `c${itemIndex}`,
  name: "f",
});
const input = (itemIndex: number, value: string): StreamPart => ({
  type: "tool-call-delta",
  ...at(itemIndex),
  arguments: value,
});
const callEnd = (itemIndex: number): StreamPart => ({ type: "tool-call-end", ...at(itemIndex) });
const finish = (reason: "stop" | "tool_calls" = "stop"): StreamPart => ({
  type: "finish",
  choiceIndex: 0,
  finish: { reason },
});
const end: StreamPart = { type: "response-end" };

/** Kinds of the events between the head and the ending, with their block. */
const blocksOf = (parts: StreamPart[]): string[] =>
  eventsOf(framesOf([start, ...parts, end]))
    .filter((event) => String(event.type).startsWith("content_block"))
    .map((event) => `${String(event.type).slice("content_block_".length)} ${String(event.index)}`);

describe("every complete stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "response-end")
    .map(({ name, parts }) => [name, parts] as const);

  test.each(rows)(
    "%s: one open block at a time, then one message_delta and one message_stop",
    (_name, parts) => {
      const events = eventsOf(framesOf(parts));
      const types = events.map((event) => event.type);
      expect(types[0]).toBe("message_start");
      expect(types.slice(-2)).toEqual(["message_delta", "message_stop"]);
      let open: unknown;
      let next = 0;
      for (const event of events.slice(1, -2)) {
        if (event.type === "content_block_start") {
          expect(open).toBeUndefined();
          expect(event.index).toBe(next);
          open = event.index;
          next += 1;
        } else {
          expect(event.index as unknown).toBe(open);
          if (event.type === "content_block_stop") open = undefined;
        }
      }
      expect(open).toBeUndefined();
      expect(JSON.stringify(events)).not.toContain('"text_delta","text":""');
    },
  );

  test.each(rows)(
    "%s: Anthropic's own client reads the same message as the whole response",
    async (_name, parts) => {
      const message = await read(framesOf(parts));
      const assembler = new ResponseAssembler();
      for (const part of parts) assembler.add(part);
      const response = assembler.response();
      const [choice] = response.choices;
      // Messages has one answer.
      const whole = JSON.parse(
        JSON.stringify(encodeResponse({ ...response, choices: choice ? [choice] : [] })),
      ) as JsonObject;
      expect(JSON.parse(JSON.stringify(message.content))).toEqual(whole.content);
      expect([message.stop_reason, message.stop_sequence]).toEqual([
        whole.stop_reason,
        whole.stop_sequence,
      ] as never);
      // Of the last usage the client takes these over; lifetimes and tiers it reads at the start
      // alone.
      const {
        cache_creation: _lifetimes,
        service_tier: _tier,
        ...counts
      } = whole.usage as JsonObject;
      expect(message.usage).toMatchObject(counts);
    },
  );
});

describe("an interrupted stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "error")
    .map(({ name, parts }) => [name, parts] as const);

  test.each(rows)(
    "%s: ends with one error event, never looks complete and raises an error",
    async (_name, parts) => {
      const frames = framesOf([...parts, end]);
      const last = eventsOf(frames).at(-1);
      expect(last).toMatchObject({
        type: "error",
        error: { type: expect.any(String), message: expect.any(String), code: expect.any(String) },
      });
      expect(frames.slice(0, -1).join("")).not.toMatch(/"stop_reason":"|message_stop|event: error/);
      await expect(read(frames)).rejects.toThrow();
    },
  );
});

describe("the stream encoder", () => {
  const usage: StreamPart = {
    type: "usage",
    usage: {
      usage: { inputTokens: 3, cacheReadTokens: 2, outputTokens: 1 },
      estimated: false,
      clamped: false,
    },
  };

  test("writes the gateway's id and model first, the charge with the usage and the metadata last", () => {
    const gateway = {
      costUsd: 0.000005,
      upstreamCostUsd: 0.000004,
      requestedModel: "acme/large",
      fallback: { used: true, reason: "timeout", attempts: [] },
      metadata: { timings: { total: 12 } },
    };
    const events = eventsOf(
      framesOf([start, text("a"), finish(), usage, { type: "response-end", gateway }], {
        id: "msg_gw",
        model: "acme/small",
        inputTokens: 11,
      }),
    );
    expect(events[0]).toEqual({
      type: "message_start",
      message: {
        id: "msg_gw",
        type: "message",
        role: "assistant",
        model: "acme/small",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        stop_details: null,
        usage: { input_tokens: 11, output_tokens: 0 },
      },
    });
    expect(events.slice(-2)).toEqual([
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null, stop_details: null },
        usage: {
          input_tokens: 3,
          cache_read_input_tokens: 2,
          output_tokens: 1,
          cost: 0.000005,
          cost_details: { upstream_inference_cost: 0.000004 },
        },
        requested_model: "acme/large",
        fallback: { used: true, reason: "timeout", attempts: [] },
      },
      { type: "message_stop", service_metadata: { timings: { total: 12 } } },
    ]);
  });

  test("reports a fallback at the start if it is known there, and only once", () => {
    const known = { requestedModel: "acme/large", fallback: { used: true } };
    const events = eventsOf(
      framesOf([start, text("a"), finish(), { type: "response-end", gateway: known }], {
        gateway: known,
      }),
    );
    expect(events[0]).toMatchObject({ requested_model: "acme/large", fallback: { used: true } });
    expect(events.at(-2)).not.toHaveProperty("fallback");
  });

  test("writes interleaved calls one after another (bifrost#5169)", () => {
    const parts = [
      call(0),
      call(1),
      input(0, "{"),
      input(1, "{"),
      input(0, "}"),
      callEnd(0),
      input(1, "}"),
      callEnd(1),
      finish("tool_calls"),
    ];
    expect(blocksOf(parts)).toEqual([
      "start 0",
      "delta 0",
      "delta 0",
      "stop 0",
      "start 1",
      "delta 1",
      "delta 1",
      "stop 1",
    ]);
  });

  test("opens no block for empty text (litellm#31561)", () => {
    const parts: StreamPart[] = [
      { type: "text-start", ...at(0) },
      { type: "text-end", ...at(0) },
      call(1),
      callEnd(1),
      finish("tool_calls"),
    ];
    expect(blocksOf(parts)).toEqual(["start 0", "stop 0"]);
  });

  test("closes each block that the upstream left open, once (litellm#37273)", () => {
    expect(blocksOf([call(0), input(0, "{}"), finish("tool_calls")])).toEqual([
      "start 0",
      "delta 0",
      "stop 0",
    ]);
  });

  test("keeps the text block open for a citation after its end", () => {
    const annotation: StreamPart = {
      type: "annotation",
      ...at(0),
      annotation: { type: "url", url: "https://example.com" },
    };
    expect(
      blocksOf([
        { type: "text-start", ...at(0) },
        text("a"),
        { type: "text-end", ...at(0) },
        annotation,
        finish(),
      ]),
    ).toEqual(["start 0", "delta 0", "delta 0", "stop 0"]);
  });

  test("marks a signature with its provider in a separate delta (bifrost#5638)", () => {
    const events = eventsOf(
      framesOf([
        start,
        { type: "reasoning-start", ...at(0) },
        { type: "reasoning-delta", ...at(0), text: "hm" },
        {
          type: "reasoning-end",
          ...at(0),
          signature: "s",
          encrypted: "e",
          provenance: { providerId: "acme" },
        },
        finish(),
        end,
      ]),
    );
    expect(
      events
        .filter((event) => String(event.type).startsWith("content_block"))
        .map(({ type: _, ...rest }) => rest),
    ).toEqual([
      { index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      { index: 0, delta: { type: "signature_delta", signature: "gw1:acme:s" } },
      { index: 0 },
      { index: 1, content_block: { type: "redacted_thinking", data: "gw1:acme:e" } },
      { index: 1 },
    ]);
  });

  test("omits reasoning if the client excludes it", () => {
    const request = {
      dialect: "openai-chat",
      model: "m",
      stream: true,
      messages: [],
      reasoning: { exclude: true },
    } as const;
    const parts: StreamPart[] = [
      { type: "reasoning-start", ...at(0) },
      { type: "reasoning-delta", ...at(0), text: "hm" },
      text("a", 1),
      end,
    ];
    expect(framesOf(parts, { request }).join("")).not.toContain("thinking");
  });

  test("writes tool_use for calls if the upstream reported stop, and makes ids valid", () => {
    const events = eventsOf(
      framesOf([
        start,
        { type: "tool-call-start", ...at(0), kind: "function", id: "functions.f:0", name: "f" },
        callEnd(0),
        finish("stop"),
        end,
      ]),
    );
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "tool_use" } });
    expect((events[1]?.content_block as JsonObject).id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  test("wraps the input of a custom tool", () => {
    const events = eventsOf(
      framesOf([
        start,
        { type: "tool-call-start", ...at(0), kind: "custom", id: "c", name: "sh" },
        input(0, "l"),
        input(0, "s"),
        callEnd(0),
        end,
      ]),
    );
    expect(events.filter((event) => event.type === "content_block_delta")).toEqual([
      {
        type: "content_block_delta",
        index: 0,
        delta: { type: "input_json_delta", partial_json: '{"input":"ls"}' },
      },
    ]);
  });

  test("writes nothing after the end", () => {
    const encoder = new MessagesStreamEncoder();
    for (const part of [start, text("a"), finish(), end]) encoder.encode(part);
    expect([...encoder.encode(text("late")), ...encoder.encode(end)]).toEqual([]);
  });
});

test("a stream that fails outside of its encoder ends with the same error event", () => {
  const error = new GatewayError("upstream_timeout", "Too slow.");
  const [frame = ""] = anthropicMessages.encodeStreamError(error, { traceId: "t" });
  expect(eventsOf([frame])).toEqual([
    {
      type: "error",
      error: {
        type: "timeout_error",
        message: "Too slow.",
        code: "upstream_timeout",
        metadata: { type: "upstream_timeout", fault: "upstream", trace_id: "t" },
      },
      request_id: "t",
    },
  ]);
});
