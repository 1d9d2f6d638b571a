import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../../test/support/cassettes.ts";
import { adaptIn, routeIn } from "../../../../../test/support/in-process.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { ResponseAssembler } from "../../../canonical/response-assembler.ts";
import { SseDecoder, type SseEvent } from "../../../upstream/sse-decoder.ts";
import type { RelayOptions, StreamRelay } from "../../shared/stream/stream-relay.ts";
import { StreamFault } from "../../shared/stream/stream-fault.ts";
import { type FailureWithUsage, failureOf } from "../../../pipeline/attempt.ts";
import { MessagesStreamDecoder } from "../decode-stream.ts";
import { encodeResponse } from "../encode-response.ts";

const cassettes = readCassettes("anthropic-messages");
const shown = { id: "msg_gw", model: "anthropic/claude-opus-4.7" };
const adapter = adaptIn("anthropic-messages", {
  body: { model: "acme/large", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
  route: routeIn("anthropic-messages"),
});
const fallback = { requestedModel: "acme/large", reason: "timeout", attempts: [] };

function relayFor(changes: Partial<RelayOptions> = {}): {
  relay: StreamRelay;
  settled: () => number;
} {
  let settlements = 0;
  const relay = adapter.createRelay({
    shown,
    inputTokens: 40,
    windowTokens: 200_000,
    fallback: undefined,
    settle: () => {
      settlements += 1;
      return Promise.resolve({ chargedNano: 5_000n });
    },
    metadataText: () => '{"timings":{"total":1}}',
    ...changes,
  });
  return { relay, settled: () => settlements };
}

async function relayed(relay: StreamRelay, events: readonly SseEvent[]): Promise<string> {
  let frames = "";
  for (const event of events) if (!relay.ended) frames += await relay.accept(event);
  return relay.ended ? frames : frames + (await relay.finish());
}

const eventsOf = (bytes: Uint8Array): SseEvent[] => {
  const sse = new SseDecoder();
  return [...sse.push(bytes), ...sse.end()];
};

const event = (fields: { type: string } & Record<string, unknown>): SseEvent => ({
  event: fields.type,
  data: JSON.stringify(fields),
});
const start = event({
  type: "message_start",
  message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [] },
});
const open = event({
  type: "content_block_start",
  index: 0,
  content_block: { type: "text", text: "" },
});
const hello = event({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text: "Hello" },
});
const close = event({ type: "content_block_stop", index: 0 });
const stop = event({ type: "message_stop" });
const ending = (usage?: object, reason = "end_turn"): SseEvent =>
  event({
    type: "message_delta",
    delta: { stop_reason: reason, stop_sequence: null },
    ...(usage && { usage }),
  });

const faultOf = async (promise: Promise<unknown>): Promise<FailureWithUsage> => {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof StreamFault))
    throw new Error("no stream fault was thrown", { cause: error });
  return failureOf(error, 200);
};

const sdkRead = (body: string): Promise<Anthropic.Message> =>
  new Anthropic({
    apiKey: "none",
    baseURL: "http://gateway.invalid",
    maxRetries: 0,
    fetch: () =>
      Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } })),
  }).messages
    .stream({ model: "m", max_tokens: 9, messages: [] })
    .finalMessage();

describe("a complete stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "response-end")
    .map((cassette) => [cassette.name, cassette] as const);

  test.each(rows)("%s reads the same through the relay", async (_name, { bytes }) => {
    const { relay, settled } = relayFor();
    const frames = await relayed(relay, eventsOf(bytes));
    const message = await sdkRead(frames);
    const decoder = new MessagesStreamDecoder();
    const assembler = new ResponseAssembler();
    for (const each of eventsOf(bytes))
      for (const part of decoder.decode(each)) assembler.add(part);
    for (const part of decoder.end()) assembler.add(part);
    const whole = encodeResponse(assembler.response());
    const said = (blocks: unknown): unknown =>
      (blocks as { type: string; text?: string; input?: unknown }[]).map(
        ({ type, text, input }) => [type, text, input],
      );
    expect(said(message.content)).toEqual(said(whole.content));
    expect([message.id, message.model]).toEqual([shown.id, shown.model]);
    expect(frames).toContain('"cost":0.000005');
    expect(message.usage.output_tokens).toBe(
      (whole.usage as { output_tokens: number }).output_tokens,
    );
    expect(settled()).toBe(1);
    expect(frames.match(/event: message_delta/g)).toHaveLength(1);
    expect(frames).toMatch(/"service_metadata":\{"timings":\{"total":1\}\} *\}\n\n$/);
    expect([relay.ended, relay.finished, relay.hasContent, relay.upstreamId]).toEqual([
      true,
      true,
      true,
      "msg_01",
    ]);
  });

  test("forwards events unchanged except for id, model, charge and metadata", async () => {
    const odd: SseEvent = {
      event: "content_block_delta",
      data: '{ "type":"content_block_delta", "x_foo":1e2, "index":0,"delta":{"type":"text_delta","text":"\\u0041"} }',
    };
    const { relay } = relayFor();
    for (const before of [start, open]) await relay.accept(before);
    expect(await relay.accept(odd)).toBe(`event: content_block_delta\ndata: ${odd.data}\n\n`);
    expect(await relay.accept({ data: '{"type":"vendor_news","a":\n1}' })).toBe(
      'event: vendor_news\ndata: {"type":"vendor_news","a": 1}\n\n',
    );
    expect(await relay.accept({ event: "ping", data: '{"type": "ping"}' })).toBe(relay.pingFrame);
  });

  test("reports a fallback in the first event with usage", async () => {
    const { relay } = relayFor({ fallback });
    const first = JSON.parse((await relay.accept(start)).split("data: ")[1] ?? "") as object;
    expect(first).toMatchObject({
      message: shown,
      requested_model: "acme/large",
      fallback: { used: true, reason: "timeout", attempts: [] },
    });
  });

  test("has the gateway's charge instead of the provider's cost", async () => {
    const { relay } = relayFor();
    const begun = event({
      type: "message_start",
      message: { id: "x", model: "m", usage: { input_tokens: 3, output_tokens: 1, cost: 9 } },
    });
    const frames = await relayed(relay, [
      begun,
      open,
      hello,
      close,
      ending({ input_tokens: 3, output_tokens: 2, cost: 0.5 }),
      stop,
    ]);
    expect(frames).not.toContain('"cost":9');
    expect(frames).toContain(
      '"usage":{"input_tokens":3,"output_tokens":2,"cost":0.000005,"cost_details":{"upstream_inference_cost":0.5}}',
    );
  });

  test("has estimated usage, marked as such, if the provider reports none", async () => {
    const { relay } = relayFor();
    const frames = await relayed(relay, [start, open, hello, close, ending(), stop]);
    expect(relay.metered()).toEqual({
      usage: { inputTokens: 40, outputTokens: 2 },
      estimated: true,
      clamped: false,
    });
    expect(frames).toContain('"usage":{"input_tokens":40,"output_tokens":2,"cost":0.000005}');
  });

  test("has an estimated input if only the output is reported", async () => {
    const { relay } = relayFor();
    await relayed(relay, [start, open, hello, close, ending({ output_tokens: 9 }), stop]);
    expect(relay.metered()).toEqual({
      usage: { inputTokens: 40, outputTokens: 9 },
      estimated: true,
      clamped: false,
    });
  });

  test("clamps impossible token counts", async () => {
    const { relay } = relayFor({ windowTokens: 1_000 });
    await relayed(relay, [
      start,
      open,
      hello,
      ending({ input_tokens: 5, output_tokens: 900_000 }),
      stop,
    ]);
    expect(relay.metered()).toEqual({
      usage: { inputTokens: 5, outputTokens: 1_000 },
      estimated: false,
      clamped: true,
    });
  });

  test("gets the missing end of an open block before the missing message_delta", async () => {
    const { relay } = relayFor();
    const types = (await relayed(relay, [start, open, hello, stop])).match(/(?<=^event: ).*$/gm);
    expect(types).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
  });

  test("is accepted without content if it was cut off or refused", async () => {
    const { relay } = relayFor();
    expect(
      await relayed(relay, [start, ending({ input_tokens: 5, output_tokens: 0 }, "refusal"), stop]),
    ).toContain("message_stop");
  });
});

describe("an interrupted stream", () => {
  const rows = cassettes
    .filter(({ parts }) => parts.at(-1)?.type === "error")
    .map((cassette) => [cassette.name, cassette] as const);

  test.each(rows)("%s is a failure and never looks complete", async (_name, { bytes }) => {
    const { relay, settled } = relayFor();
    const failure = await faultOf(relayed(relay, eventsOf(bytes)));
    expect(settled()).toBe(0);
    expect(failure.failover || failure.code === "context_length_exceeded").toBe(true);
    const last = relay.fail(new GatewayError("upstream_error", "It broke."));
    expect(last).toStartWith(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"It broke."',
    );
    expect(relay.ended).toBe(true);
  });

  test("without content is an empty stream, whether it ends or is cut", async () => {
    expect(
      await faultOf(relayed(relayFor().relay, [start, ending({ output_tokens: 0 }), stop])),
    ).toMatchObject({ code: "empty_stream" });
    expect(await faultOf(relayed(relayFor().relay, [start]))).toMatchObject({
      code: "empty_stream",
    });
  });

  test("after content without a stop reason is cut", async () => {
    const { relay } = relayFor();
    expect(await faultOf(relayed(relay, [start, open, hello]))).toMatchObject({
      code: "bad_gateway",
    });
    expect(relay.metered()).toMatchObject({
      usage: { inputTokens: 40, outputTokens: 2 },
      estimated: true,
    });
  });

  const reported: [type: string, code: string][] = [
    ["overloaded_error", "upstream_error"],
    ["rate_limit_error", "rate_limit_exceeded"],
    ["invalid_request_error", "bad_request"],
    ["authentication_error", "upstream_401"],
    ["api_error", "upstream_error"],
  ];
  test.each(reported)("with the error event %s has the code %s", async (type, code) => {
    const failure = event({ type: "error", error: { type, message: "Words." } });
    expect(await faultOf(relayed(relayFor().relay, [start, failure]))).toMatchObject({
      code,
      upstreamMessage: "Words.",
    });
  });

  test("with a plain text error keeps the text", async () => {
    expect(
      await faultOf(relayed(relayFor().relay, [start, { event: "error", data: "gone" }])),
    ).toMatchObject({ upstreamMessage: "gone" });
  });
});

test("a stream ended at its output cap closes its block with max_tokens and the charge", async () => {
  const { relay, settled } = relayFor();
  let frames = "";
  for (const each of [start, open, hello]) frames += await relay.accept(each);
  const message = await sdkRead(frames + (await relay.endAtCap()));
  expect([message.stop_reason, message.content, settled(), relay.ended]).toMatchObject([
    "max_tokens",
    [{ text: "Hello" }],
    1,
    true,
  ]);
});

describe("a deviating Messages stream is corrected:", () => {
  const usage = { input_tokens: 9, output_tokens: 2 };
  const call = event({
    type: "content_block_start",
    index: 0,
    content_block: { type: "tool_use", id: "a", name: "f", input: {} },
  });
  const rows: [what: string, block: SseEvent[], reason: string, seen: string][] = [
    ["a turn with calls and end_turn", [call, close], "end_turn", "tool_use"],
    ["a turn with calls and tool_use", [call, close], "tool_use", "tool_use"],
    ["a truncated call", [call, close], "max_tokens", "max_tokens"],
    ["a turn with tool_use and no call", [open, hello, close], "tool_use", "end_turn"],
    ["a turn without a stop reason", [open, hello, close], "", "end_turn"],
    ["an unknown stop reason", [open, hello, close], "weariness", "weariness"],
  ];

  test.each(rows)("%s", async (_, block, reason, seen) => {
    for (const apart of [false, true]) {
      const { relay } = relayFor();
      const end = apart
        ? [ending(undefined, reason), event({ type: "message_delta", delta: {}, usage })]
        : [ending(usage, reason)];
      const frames = await relayed(relay, [start, ...block, ...end, stop]);
      const { stop_reason: stopReason } = await sdkRead(frames);
      expect([stopReason, relay.finishReason]).toEqual([seen, seen] as never);
    }
  });

  test.each<[what: string, events: SseEvent[]]>([
    ["message_start", [open, hello, close, ending(usage), stop]],
    ["content_block_start", [start, hello, ending(usage), stop]],
    ["any start event", [event({ type: "vendor_news" }), hello, close, ending(usage), stop]],
    [
      "the fields of message_start",
      [
        event({ type: "message_start", message: { id: "msg_1" } }),
        open,
        hello,
        close,
        ending(usage),
        stop,
      ],
    ],
  ])("without %s", async (_, events) => {
    const { relay } = relayFor();
    const frames = await relayed(relay, events);
    expect(await sdkRead(frames)).toMatchObject({
      ...shown,
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "Hello" }],
      stop_reason: "end_turn",
      usage: { output_tokens: 2 },
    });
    expect(frames.split("event: content_block_start")).toHaveLength(2);
    expect(frames.split("event: content_block_stop")).toHaveLength(2);
  });

  test("a block that was never opened is not closed, and a delta for another closes the previous one", async () => {
    const thought = event({
      type: "content_block_delta",
      index: 0,
      delta: { type: "thinking_delta", thinking: "Hm." },
    });
    const words = event({
      type: "content_block_delta",
      index: 1,
      delta: { type: "text_delta", text: "Hello" },
    });
    const { relay } = relayFor();
    const stray = event({ type: "content_block_stop", index: 7 });
    const frames = await relayed(relay, [start, thought, words, stray, ending(usage), stop]);
    expect((await sdkRead(frames)).content).toMatchObject([
      { type: "thinking", thinking: "Hm." },
      { type: "text", text: "Hello" },
    ]);
    expect(frames.split("event: content_block_stop")).toHaveLength(3);
  });

  test("a late message_start is used, and unknown events before it are forwarded", async () => {
    const { relay } = relayFor();
    const begun = event({
      type: "message_start",
      message: { id: "msg_1", usage: { input_tokens: 10, output_tokens: 1 } },
    });
    const news = [event({ type: "vendor_news" }), event({ type: "ping" })];
    await relayed(relay, [...news, begun, open, hello, close, ending({ output_tokens: 2 }), stop]);
    expect(relay.metered().usage).toMatchObject({ inputTokens: 10, outputTokens: 2 });
  });

  test.each<[what: string, last: object, seen: object]>([
    [
      "repeats the counts of message_start",
      { output_tokens: 2 },
      { input_tokens: 9, cache_read_input_tokens: 4, cache_creation_input_tokens: 0 },
    ],
    [
      "keeps its own counts",
      { input_tokens: 11, cache_read_input_tokens: 5, output_tokens: 2 },
      { input_tokens: 11, cache_read_input_tokens: 5, cache_creation_input_tokens: 0 },
    ],
  ])("the last usage %s", async (_, last, seen) => {
    const begun = event({
      type: "message_start",
      message: {
        id: "msg_1",
        usage: {
          input_tokens: 9,
          cache_read_input_tokens: 4,
          cache_creation_input_tokens: 0,
          output_tokens: 1,
        },
      },
    });
    const { relay } = relayFor();
    const frames = await relayed(relay, [begun, open, hello, close, ending(last), stop]);
    const told = eventsOf(Buffer.from(frames)).find((each) => each.event === "message_delta");
    expect(JSON.parse(told?.data ?? "null")).toMatchObject({
      usage: { ...seen, output_tokens: 2, cost: 0.000005 },
    });
  });

  test("a second message_start is dropped with its usage", async () => {
    const counted = (tokens: number): SseEvent =>
      event({
        type: "message_start",
        message: {
          ...(JSON.parse(start.data) as { message: object }).message,
          usage: { input_tokens: tokens, output_tokens: 1 },
        },
      });
    const { relay } = relayFor();
    const frames = await relayed(relay, [
      counted(10),
      counted(1),
      open,
      hello,
      close,
      ending({ output_tokens: 2 }),
      stop,
    ]);
    expect(frames.split("event: message_start")).toHaveLength(2);
    expect((await sdkRead(frames)).content).toMatchObject([{ type: "text", text: "Hello" }]);
    expect(relay.metered().usage).toMatchObject({ inputTokens: 10, outputTokens: 2 });
  });
});

test("a whole response in place of a stream has its input usage in message_start", () => {
  const { answerDeviations } = adapter;
  const whole = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "Hello" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 17, output_tokens: 2 },
  };
  const [first] = eventsOf(
    Buffer.from(answerDeviations?.eventsOfWhole?.(JSON.stringify(whole)) ?? ""),
  );
  expect(JSON.parse(first?.data ?? "null")).toMatchObject({
    type: "message_start",
    message: { usage: { input_tokens: 17 } },
  });
});
