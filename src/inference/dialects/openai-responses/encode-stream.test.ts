import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { readCassettes } from "../../../../test/support/cassettes.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { StreamPart } from "../../canonical/response.ts";
import type { ResponseContext } from "../dialect.ts";
import { reportError } from "../errors.ts";
import { ResponsesStreamEncoder } from "./encode-stream.ts";
import { openaiResponses } from "./index.ts";

const framesOf = (parts: readonly StreamPart[], context?: ResponseContext): string[] => {
  const encoder = new ResponsesStreamEncoder(context);
  return parts.flatMap((part) => encoder.encode(part));
};

interface WireEvent {
  type: string;
  sequence_number: number;
  output_index?: number;
  item_id?: string;
  item?: JsonObject & { id: string };
  response?: JsonObject & { id: string; status: string; output: JsonObject[] };
  delta?: string;
}

const eventsOf = (frames: readonly string[]): WireEvent[] =>
  frames.map((frame) => {
    const match = /^event: (\S+)\ndata: ([^\n]+)\n\n$/.exec(frame);
    const event = JSON.parse(match?.[2] ?? "null") as WireEvent;
    expect(event.type).toBe(match?.[1] ?? "");
    return event;
  });
const events = (parts: readonly StreamPart[], context?: ResponseContext): WireEvent[] =>
  eventsOf(framesOf(parts, context));

const start: StreamPart = {
  type: "response-start",
  id: "resp_abc",
  model: "large-v2",
  createdAtSeconds: 7,
};
const place = (itemIndex: number): { choiceIndex: number; itemIndex: number } => ({
  choiceIndex: 0,
  itemIndex,
});
const text = (itemIndex: number, value: string): StreamPart[] => [
  { type: "text-start", ...place(itemIndex) },
  {
    type: "text-delta",
    ...place(itemIndex),
    text: value,
  },
  { type: "text-end", ...place(itemIndex) },
];
const call = (itemIndex: number, more: object = {}): StreamPart => ({
  type: "tool-call-start",
  ...place(itemIndex),
  kind: "function",
  id: `c${itemIndex}`,
  name: "f",
  ...more,
});
const finish = (reason: "stop" | "length" | "tool_calls" = "stop"): StreamPart => ({
  type: "finish",
  choiceIndex: 0,
  finish: { reason },
});
const end: StreamPart = { type: "response-end" };

const whole = ["openai-responses", "openai-chat"].flatMap((dialect) =>
  readCassettes(dialect)
    .filter(({ parts }) => parts.at(-1)?.type === "response-end")
    .map(({ name, parts }) => [`${dialect}/${name}`, parts] as const),
);

describe("every complete stream", () => {
  test.each(whole)(
    "%s: has consecutive numbers, constant ids, and every item opened and closed once",
    (_name, parts) => {
      const told = events(parts, { id: "resp_0123456789abcdef" });
      expect(told.map((event) => event.sequence_number)).toEqual(told.map((_, index) => index));
      expect(told.slice(0, 2).map((event) => event.type)).toEqual([
        "response.created",
        "response.in_progress",
      ]);
      expect(told.at(-1)?.type).toMatch(/^response\.(completed|incomplete|failed)$/);
      expect(new Set(told.flatMap((event) => (event.response ? [event.response.id] : [])))).toEqual(
        new Set(["resp_0123456789abcdef"]),
      );
      const opened = told.filter((event) => event.type === "response.output_item.added");
      const closed = told.filter((event) => event.type === "response.output_item.done");
      expect(opened.map((event) => event.output_index)).toEqual(opened.map((_, index) => index));
      expect(closed.map((event) => event.item?.id).sort()).toEqual(
        opened.map((event) => event.item?.id).sort(),
      );
      const output = told.at(-1)?.response?.output ?? [];
      for (const { output_index: index, item } of closed)
        expect(output[index ?? -1] ?? null).toEqual(item ?? null);
      for (const event of told) {
        if (event.item_id !== undefined)
          expect(output[event.output_index ?? -1]?.id).toBe(event.item_id);
      }
    },
  );

  test.each(whole)("%s: the whole response equals the assembled stream", (_name, parts) => {
    const assembler = new ResponseAssembler();
    for (const part of parts) assembler.add(part);
    const record = openaiResponses.encodeResponse(assembler.response());
    const streamed = JSON.parse(JSON.stringify(events(parts).at(-1)?.response)) as JsonObject;
    expect(JSON.parse(JSON.stringify(record.output))).toEqual(streamed.output);
    expect(record.usage).toEqual(streamed.usage);
    expect(record.status).toBe(streamed.status);
  });
});

test("a citation that comes before its text is about the whole of it", () => {
  const annotation = { type: "url", url: "https://bun.test" } as const;
  const [opening = start, ...said] = text(0, "Once");
  const told = events([
    start,
    opening,
    { type: "annotation", ...place(0), annotation },
    ...said,
    finish(),
    end,
  ]);
  expect(told.map(({ type }) => type)).toContain("response.output_text.annotation.added");
  const cited = { type: "url_citation", url: "https://bun.test", start_index: 0, end_index: 4 };
  expect(told.at(-1)?.response?.output).toMatchObject([{ content: [{ annotations: [cited] }] }]);
});

describe("OpenAI's own stream helper", () => {
  let frames: readonly string[] = [];
  const server = Bun.serve({
    port: 0,
    fetch: () =>
      new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } }),
  });
  let client: OpenAI;
  beforeAll(() => {
    client = new OpenAI({
      apiKey: "none",
      baseURL: `http://127.0.0.1:${server.port}/v1`,
      maxRetries: 0,
    });
  });
  afterAll(() => server.stop(true));

  const finalOf = (
    parts: readonly StreamPart[],
    context?: ResponseContext,
  ): Promise<OpenAI.Responses.Response> => {
    frames = framesOf(parts, context);
    return client.responses
      .stream({ model: "m", input: "Hi" })
      .finalResponse() as Promise<OpenAI.Responses.Response>;
  };

  test.each(whole)("%s: assembles the same response", async (_name, parts) => {
    const final = await finalOf(parts);
    const assembler = new ResponseAssembler();
    for (const part of parts) assembler.add(part);
    const made = assembler.response().choices.find((choice) => choice.index === 0)?.parts ?? [];
    const said = made
      .map((part) =>
        part.type === "text"
          ? part.text
          : part.type === "audio-output"
            ? (part.transcript ?? "")
            : "",
      )
      .join("");
    expect(final.output_text).toBe(said);
    const calls = final.output.flatMap((item) =>
      item.type === "function_call" ? [[item.call_id, item.name, item.arguments]] : [],
    );
    expect(calls).toEqual(
      made.flatMap((part) =>
        part.type === "tool-call" && part.kind === "function"
          ? [[part.id, part.name, part.arguments]]
          : [],
      ),
    );
  });

  test("finds the metadata in the last event, and fails on a separate metadata event", async () => {
    const parts = [
      start,
      ...text(0, "Hi"),
      finish(),
      { ...end, gateway: { costUsd: 0.25, metadata: { requestId: "r" } } },
    ];
    const final = await finalOf(parts, { metadataInLastEvent: true });
    expect((final as unknown as JsonObject).service_metadata).toEqual({ requestId: "r" });
    await expect(finalOf(parts)).rejects.toThrow("Unhandled response stream event");
  });

  test("raises a failure with its message", async () => {
    const error = reportError(new GatewayError("upstream_error", "The provider went away."), {
      traceId: "t",
    });
    await expect(
      finalOf([start, ...text(0, "Hal"), { type: "error", error, fault: "reported" }]),
    ).rejects.toThrow("The provider went away.");
  });
});

describe("the order of events", () => {
  test("for reasoning and text", () => {
    const told = events([
      start,
      { type: "reasoning-start", ...place(0), id: "rs_up" },
      { type: "reasoning-delta", ...place(0), text: "hm" },
      { type: "reasoning-end", ...place(0) },
      ...text(1, "Hi"),
      finish(),
      end,
    ]);
    expect(told.map((event) => event.type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(told[2]?.item?.id).toBe("rs_up");
    expect(told[8]?.item?.id).toBe("msg_abc_1");
  });

  test("for parallel calls: each has its own index, and is closed when complete", () => {
    const told = events([
      start,
      call(0),
      call(1),
      {
        type: "tool-call-delta",
        ...place(1),
        arguments: '{"b"',
      },
      { type: "tool-call-delta", ...place(0), arguments: "{}" },
      {
        type: "tool-call-delta",
        ...place(1),
        arguments: ":1}",
      },
      { type: "tool-call-end", ...place(0) },
      { type: "tool-call-end", ...place(1) },
      finish("tool_calls"),
      end,
    ]);
    const deltas = told.filter((event) => event.type === "response.function_call_arguments.delta");
    expect(deltas.map((event) => [event.output_index, event.delta])).toEqual([
      [1, '{"b"'],
      [0, "{}"],
      [1, ":1}"],
    ]);
    expect(told.some((event) => event.item?.type === "message")).toBe(false);
  });

  test("for a call without arguments: has empty arguments", () => {
    const told = events([
      start,
      call(0),
      { type: "tool-call-end", ...place(0) },
      finish("tool_calls"),
      end,
    ]);
    expect(
      told.find((event) => event.type === "response.function_call_arguments.delta")?.delta,
    ).toBe("{}");
    expect(told.at(-1)?.response?.output[0]).toMatchObject({
      arguments: "{}",
      status: "completed",
    });
  });

  test("for a truncated response: the response and its last item are incomplete", () => {
    const told = events([start, ...text(0, "Once"), finish("length"), end]);
    expect(told.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: {
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
        output: [{ status: "incomplete" }],
      },
    });
  });

  test("for a signed call: an item with the signature comes before the call", () => {
    const told = events([
      start,
      call(0, { signature: "sig", provenance: { providerId: "google" } }),
      { type: "tool-call-end", ...place(0) },
      finish("tool_calls"),
      end,
    ]);
    const output = told.at(-1)?.response?.output ?? [];
    expect(output.map((item) => item.type)).toEqual(["reasoning", "function_call"]);
    const decoded = openaiResponses.decodeRequest({ model: "m", input: output });
    expect(decoded.messages).toMatchObject([
      {
        role: "assistant",
        parts: [
          { type: "tool-call", id: "c0", signature: "sig", provenance: { providerId: "google" } },
        ],
      },
    ]);
  });
});

describe("the end of a stream", () => {
  const gateway = {
    costUsd: 0.5,
    isByok: true,
    requestedModel: "a/b",
    fallback: { used: true },
    metadata: { requestId: "r" },
  };
  const usage: StreamPart = {
    type: "usage",
    usage: { usage: { inputTokens: 3, outputTokens: 2 }, estimated: false, clamped: false },
  };

  test("has the charge in the terminal event and the metadata after it", () => {
    const told = events([start, ...text(0, "Hi"), finish(), usage, { ...end, gateway }]);
    expect(told.slice(-2)).toMatchObject([
      {
        type: "response.completed",
        response: {
          requested_model: "a/b",
          fallback: { used: true },
          usage: { total_tokens: 5, cost: 0.5, is_byok: true },
        },
      },
      { type: "response.service.metadata", service_metadata: { requestId: "r" } },
    ]);
    expect(told.at(-2)?.response).not.toHaveProperty("service_metadata");
  });

  test("has all keys of Open Responses in every record, and repeats the request", () => {
    const requestBody = {
      model: "m",
      input: "Hi",
      temperature: 0.3,
      metadata: { a: "b" },
      tools: [{ type: "function", name: "f" }],
    };
    for (const { response } of events([start, ...text(0, "Hi"), finish(), usage, end], {
      requestBody,
      nowSeconds: () => 9,
    })) {
      if (response === undefined) continue;
      expect(response).toMatchObject({
        temperature: 0.3,
        top_p: 1,
        presence_penalty: 0,
        frequency_penalty: 0,
        top_logprobs: 0,
        service_tier: "default",
        store: true,
        metadata: { a: "b" },
        tools: [{ type: "function", name: "f", description: null, parameters: null, strict: null }],
        text: { format: { type: "text" } },
        created_at: 7,
        completed_at: response.status === "completed" ? 9 : null,
      });
    }
  });

  test("after a failure is an error and a failed response with a code that Codex knows", () => {
    const error = reportError(
      new GatewayError("rate_limit_exceeded", "Too many requests.", { retryAfterSeconds: 3 }),
      { traceId: "t" },
    );
    const told = events([
      start,
      ...text(0, "Hal"),
      call(1),
      { type: "error", error, fault: "reported" },
      end,
    ]);
    expect(told.slice(-2)).toMatchObject([
      {
        type: "error",
        code: "rate_limit_exceeded",
        param: null,
        error: { code: "rate_limit_exceeded", metadata: { trace_id: "t" } },
      },
      {
        type: "response.failed",
        response: {
          status: "failed",
          error: {
            code: "rate_limit_exceeded",
            message: "Too many requests. Please try again in 3s.",
          },
          output: [{ type: "message" }, { type: "function_call", status: "incomplete" }],
        },
      },
    ]);
    expect(told.map((event) => event.sequence_number)).toEqual(told.map((_, index) => index));
  });

  const codes = [
    ["context_length_exceeded", "context_length_exceeded"],
    ["insufficient_balance", "insufficient_quota"],
    ["bad_request", "invalid_prompt"],
    ["upstream_error", "server_error"],
    ["service_unavailable", "server_error"],
  ] as const;
  test.each(codes)("maps the code %s to %s, also before the first event", (code, wire) => {
    const told = eventsOf(
      openaiResponses.encodeStreamError(new GatewayError(code, "No."), {
        traceId: "0".repeat(32),
        model: "acme/small",
        nowSeconds: 7,
        requestBody: { metadata: { a: "b" } },
      }),
    );
    const facts = { id: `resp_${"0".repeat(32)}`, created_at: 7, model: "acme/small" };
    const response = { ...facts, metadata: { a: "b" } };
    expect(told).toMatchObject([
      {
        type: "response.created",
        sequence_number: 0,
        response: { ...response, status: "in_progress" },
      },
      { type: "error", code: wire, sequence_number: 1, error: { code } },
      {
        type: "response.failed",
        sequence_number: 2,
        response: { ...response, status: "failed", error: { code: wire } },
      },
    ]);
  });
});
