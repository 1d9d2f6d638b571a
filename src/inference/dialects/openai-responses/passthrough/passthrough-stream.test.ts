import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readCassettes } from "../../../../../test/support/cassettes.ts";
import { responsesRequest, responsesRoute } from "../../../../../test/support/responses-request.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { SseDecoder, type SseEvent } from "../../../upstream/sse-decoder.ts";
import type { OriginalRequest } from "../../shared/exchange.ts";
import type { RelayOptions, StreamRelay } from "../../shared/stream/stream-relay.ts";
import { StreamFault } from "../../shared/stream/stream-fault.ts";
import { failureOf } from "../../../pipeline/attempt.ts";
import { Relay } from "../../../pipeline/stream/relay.ts";
import { passThrough } from "./passthrough.ts";

const cassettes = new Map(
  readCassettes("openai-responses").map((cassette) => [cassette.name, cassette]),
);

function eventsOf(name: string): SseEvent[] {
  const sse = new SseDecoder();
  return [...sse.push(cassettes.get(name)?.bytes ?? new Uint8Array()), ...sse.end()];
}

interface Relayed {
  frames: string;
  relay: StreamRelay;
  fault: StreamFault | undefined;
  settled: number;
}

const asked = { model: "m", input: "Hi", stream: true };

/** Returns a relay of the answer to a request. */
function relayTo(request: OriginalRequest, options: Partial<RelayOptions>): StreamRelay {
  const { reader, writer } = passThrough(request, responsesRoute()).openStream({
    shown: { id: "resp_own", model: "openai/large" },
    inputTokens: 5,
    windowTokens: 1_000,
    fallback: undefined,
    settle: () => Promise.resolve({ chargedNano: 1_500_000n }),
    metadataText: () => '{"requestId":"r"}',
    ...options,
  });
  return new Relay(reader, writer);
}

async function relayed(
  events: readonly SseEvent[],
  {
    request = responsesRequest(asked),
    more = {},
  }: { request?: OriginalRequest; more?: Partial<RelayOptions> } = {},
): Promise<Relayed> {
  let settled = 0;
  const relay = relayTo(request, {
    settle: () => {
      settled += 1;
      return Promise.resolve({ chargedNano: 1_500_000n });
    },
    ...more,
  });
  let frames = "";
  try {
    for (const event of events) if (!relay.ended) frames += await relay.accept(event);
    if (!relay.ended) frames += await relay.finish();
    return { frames, relay, fault: undefined, settled };
  } catch (error) {
    if (!(error instanceof StreamFault)) throw error;
    return { frames, relay, fault: error, settled };
  }
}

test("a draft of a picture is content, so that it is sent before the picture is made", async () => {
  const relay = relayTo(responsesRequest(asked), {});
  const draft = {
    type: "response.image_generation_call.partial_image",
    output_index: 0,
    item_id: "ig_1",
    partial_image_index: 0,
    partial_image_b64: "AAAA",
  };
  const frames = await relay.accept({ event: draft.type, data: JSON.stringify(draft) });
  expect([relay.hasContent, frames.includes('"partial_image_b64":"AAAA"')]).toEqual([true, true]);
});

interface WireEvent {
  type: string;
  sequence_number: number;
  response?: Record<string, unknown>;
  item?: Record<string, unknown>;
}

const parsed = (frames: string): WireEvent[] =>
  frames
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      const match = /^event: (\S+)\ndata: ([^\n]+)$/.exec(frame);
      const event = JSON.parse(match?.[2] ?? "null") as WireEvent;
      expect(event.type).toBe(match?.[1] ?? "");
      return event;
    });

const whole = [...cassettes.values()]
  .filter(({ parts }) => parts.at(-1)?.type === "response-end")
  .map(({ name }) => name);

test("a stream repeats what the request asked where the provider does not, to its end", async () => {
  const repeated = {
    instructions: "Be brief.",
    metadata: { project: "7" },
    tools: [{ type: "web_search" }],
  };
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Hi", annotations: [] }],
  };
  const bare = { id: "resp_up", object: "response", model: "large-v2" };
  const events = [
    { type: "response.created", response: { ...bare, status: "in_progress", output: [] } },
    { type: "response.output_item.done", output_index: 0, item: message },
    {
      type: "response.completed",
      response: { ...bare, status: "completed", output: [message], tools: [], metadata: {} },
    },
  ].map((event): SseEvent => ({ event: event.type, data: JSON.stringify(event) }) as SseEvent);
  const request = responsesRequest({ model: "m", input: "Hi", background: true, ...repeated });
  const { frames } = await relayed(events, { request });
  const responses = parsed(frames).flatMap(({ response }) => (response ? [response] : []));
  expect(responses.at(-1)?.status).toBe("completed");
  for (const response of responses)
    expect(response).toMatchObject({ background: true, ...repeated });
});

describe("every complete stream", () => {
  test.each(whole)(
    "%s keeps its events, with the gateway's id, consecutive numbers, charge and metadata",
    async (name) => {
      const { frames, relay, settled } = await relayed(eventsOf(name));
      const told = parsed(frames);
      expect(told.map((event) => event.sequence_number)).toEqual(told.map((_, index) => index));
      for (const { response } of told)
        if (response)
          expect(response).toMatchObject({ id: "resp_own", model: "openai/large", store: true });
      expect(told.at(-2)?.response?.usage).toMatchObject({
        input_tokens: 20,
        total_tokens: 29,
        cost: 0.0015,
        is_byok: false,
      });
      expect(told.at(-1)).toMatchObject({
        type: "response.service.metadata",
        service_metadata: { requestId: "r" },
      });
      expect(settled).toBe(1);
      expect(relay).toMatchObject({ ended: true, finished: true });
      if (name !== "unannounced-item") expect(relay.upstreamId).toBe("resp_R1");
    },
  );

  test("forwards events without gateway fields unchanged", async () => {
    const events = eventsOf("web-search");
    const { frames } = await relayed(events);
    for (const { data } of events)
      if (!data.includes('"response":')) expect(frames).toContain(`data: ${data}\n\n`);
  });

  test("marks encrypted reasoning with its provider in every event", async () => {
    const { frames } = await relayed(eventsOf("reasoning-then-text"));
    expect(frames.match(/"encrypted_content":"[^"]+"/g)).toEqual([
      '"encrypted_content":"gw1:acme:early"',
      '"encrypted_content":"gw1:acme:opaque=="',
      '"encrypted_content":"gw1:acme:opaque=="',
    ]);
  });

  test("reports a fallback in the terminal event", async () => {
    const fallback = { requestedModel: "a/b", reason: "rate_limited", attempts: [] };
    const told = parsed((await relayed(eventsOf("plain-text"), { more: { fallback } })).frames);
    expect(told.at(-2)?.response).toMatchObject({
      requested_model: "a/b",
      fallback: { used: true, reason: "rate_limited" },
    });
  });
});

describe("OpenAI's own stream helper", () => {
  let frames = "";
  const server = Bun.serve({
    port: 0,
    fetch: () => new Response(frames, { headers: { "content-type": "text/event-stream" } }),
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

  // These upstreams leave out what the helper insists on; their bytes are kept all the same.
  const lax = new Set(["unannounced-item", "items-only-in-completed"]);
  test.each(whole.filter((name) => !lax.has(name)))(
    "%s: assembles the response, with the metadata",
    async (name) => {
      const request = responsesRequest(asked, { "x-stainless-helper-method": "stream" });
      ({ frames } = await relayed(eventsOf(name), { request }));
      const final = await client.responses.stream({ model: "m", input: "Hi" }).finalResponse();
      const said = (cassettes.get(name)?.parts ?? [])
        .map((part) => (part.type === "text-delta" ? part.text : ""))
        .join("");
      expect(final.output_text).toBe(said);
      expect(final).toMatchObject({ id: "resp_own", service_metadata: { requestId: "r" } });
    },
  );
});

describe("an interrupted stream", () => {
  const rows = [
    ["cut-stream", { code: "bad_gateway" }],
    ["cut-before-completed", { code: "bad_gateway" }],
    ["bad-json", { code: "bad_gateway" }],
    ["error-mid-stream", { code: "rate_limit_exceeded", upstreamCode: "rate_limit_exceeded" }],
    ["failed-alone", { code: "context_length_exceeded", upstreamMessage: "Too long." }],
    ["error-first", { code: "bad_request", upstreamMessage: "No." }],
  ] as const;
  test.each(rows)("%s is a failure and never looks complete", async (name, failure) => {
    const { frames, relay, fault, settled } = await relayed(eventsOf(name));
    expect(failureOf(fault, 200)).toMatchObject(failure);
    expect(frames).not.toContain("response.completed");
    expect(settled).toBe(0);
    const told = parsed(
      frames + relay.fail(new GatewayError("upstream_error", "The provider went away.")),
    );
    expect(told.map((event) => event.sequence_number)).toEqual(told.map((_, index) => index));
    expect(told.slice(-2)).toMatchObject([
      { type: "error", code: "server_error", message: "The provider went away." },
      {
        type: "response.failed",
        response: { id: "resp_own", status: "failed", error: { code: "server_error" } },
      },
    ]);
  });

  test("has the delivered content in the failed response, as incomplete", async () => {
    const { relay } = await relayed(eventsOf("cut-stream"));
    expect(
      parsed(relay.fail(new GatewayError("upstream_error", "Gone."))).at(-1)?.response,
    ).toMatchObject({
      output: [
        { id: "msg_1", status: "incomplete", content: [{ type: "output_text", text: "Par" }] },
      ],
      output_text: "Par",
    });
    const calls = await relayed(eventsOf("parallel-calls").slice(0, -6));
    expect(
      parsed(calls.relay.fail(new GatewayError("upstream_error", "Gone."))).at(-1)?.response,
    ).toMatchObject({
      output: [
        { type: "reasoning", summary: [{ text: "Both." }] },
        { arguments: '{"city":"Paris"}', status: "incomplete" },
        { arguments: '{"zo', status: "incomplete" },
      ],
    });
  });

  test("is an empty stream if it ends without content", async () => {
    const empty = {
      data: '{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}',
    };
    expect(failureOf((await relayed([empty])).fault, 200).code).toBe("empty_stream");
    expect(failureOf((await relayed([])).fault, 200).code).toBe("empty_stream");
  });

  test("has estimated usage for delivered content, and plausible reported usage", async () => {
    expect((await relayed(eventsOf("cut-stream"))).relay.metered()).toMatchObject({
      estimated: true,
      usage: { inputTokens: 5, outputTokens: 1 },
    });
    expect((await relayed(eventsOf("failed-alone"))).relay.metered()).toMatchObject({
      estimated: false,
      usage: { outputTokens: 5, reasoningTokens: 4 },
    });
  });
});

describe("content", () => {
  test("is distinguished from announcements", async () => {
    const events = eventsOf("parallel-calls");
    const at = events.findIndex(({ data }) => data.includes("reasoning_summary_text.delta"));
    expect((await relayed(events.slice(0, at))).relay.hasContent).toBe(false);
    expect((await relayed(events.slice(0, at + 1))).relay.hasContent).toBe(true);
  });

  test("has consecutive numbers if the upstream's are missing or wrong", async () => {
    const events = eventsOf("plain-text").map(({ data, event }) => ({
      event: event ?? "",
      data: data.replace(/,"sequence_number":\d+/, ""),
    }));
    const told = parsed((await relayed(events)).frames);
    expect(told.map((event) => event.sequence_number)).toEqual(told.map((_, index) => index));
  });
});

test("a stream ended at its output cap is incomplete, with its received items and the charge", async () => {
  const isText = ({ data }: SseEvent): boolean => data.includes('"response.output_text.delta"');
  const events = whole.map(eventsOf).find((each) => each.some(isText)) ?? [];
  const delta = events.findIndex(isText);
  const open = relayTo(responsesRequest(asked), {});
  let frames = "";
  for (const event of events.slice(0, delta + 1)) frames += await open.accept(event);
  const told = parsed(frames + (await open.endAtCap()));
  expect(told.map((event) => event.sequence_number)).toEqual(told.map((_, index) => index));
  const last = told.find(({ type }) => type === "response.incomplete")?.response;
  expect(last).toMatchObject({
    id: "resp_own",
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    usage: { cost: 0.0015 },
  });
  expect([open.finishReason, open.ended]).toEqual(["length", true]);
});
