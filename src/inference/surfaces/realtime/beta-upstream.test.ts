import { expect, test } from "bun:test";
import { BetaUpstream } from "./beta-upstream.ts";
import type { RealtimeUpstreamEvents } from "./realtime-upstream.ts";

/** A provider of the beta in memory. */
function betaProvider() {
  const sent: unknown[] = [];
  const received: Record<string, unknown>[] = [];
  let events: RealtimeUpstreamEvents | undefined;
  const upstream = new BetaUpstream({
    listen: (listener) => void (events = listener),
    send: (text) => void sent.push(JSON.parse(text)),
    waitingBytes: 0,
    close: () => undefined,
  });
  upstream.listen({
    received: (text) => void received.push(JSON.parse(text) as Record<string, unknown>),
    closed: () => undefined,
  });
  const tell = (event: object): void => events?.received(JSON.stringify(event));
  return { upstream, sent, received, tell };
}

test("settings of GA reach a provider of the beta under their names there", () => {
  const { upstream, sent } = betaProvider();
  const session = {
    type: "realtime",
    model: "m",
    instructions: "Be brief.",
    output_modalities: ["audio"],
    max_output_tokens: 100,
    audio: {
      input: { format: { type: "audio/pcm", rate: 24_000 }, turn_detection: null },
      output: { format: { type: "audio/pcmu" }, voice: "alloy" },
    },
  };
  upstream.send(JSON.stringify({ type: "session.update", session }));
  expect(sent).toEqual([
    {
      type: "session.update",
      session: {
        model: "m",
        instructions: "Be brief.",
        modalities: ["audio", "text"],
        max_response_output_tokens: 100,
        input_audio_format: "pcm16",
        turn_detection: null,
        output_audio_format: "g711_ulaw",
        voice: "alloy",
      },
    },
  ]);
});

test("requests for responses and items keep their meaning", () => {
  const { upstream, sent } = betaProvider();
  const response = { output_modalities: ["text"], max_output_tokens: 9 };
  upstream.send(JSON.stringify({ type: "response.create", response }));
  const content = [{ type: "output_text", text: "Hi" }];
  const item = { type: "message", role: "assistant", content };
  upstream.send(JSON.stringify({ type: "conversation.item.create", item }));
  expect(sent).toEqual([
    { type: "response.create", response: { modalities: ["text"], max_output_tokens: 9 } },
    {
      type: "conversation.item.create",
      item: { ...item, content: [{ type: "text", text: "Hi" }] },
    },
  ]);
});

test.each([
  ["response.text.delta", ["response.output_text.delta"]],
  ["response.audio.delta", ["response.output_audio.delta"]],
  ["response.audio_transcript.done", ["response.output_audio_transcript.done"]],
  ["response.function_call_arguments.done", ["response.function_call_arguments.done"]],
])("%s comes as %j", (type, names) => {
  const { received, tell } = betaProvider();
  tell({ type, delta: "x" });
  expect(received.map((event) => event["type"])).toEqual(names);
});

test("an item that was created whole is added and done; one in progress is done with its response", () => {
  const { received, tell } = betaProvider();
  tell({ type: "conversation.item.created", item: { id: "1", status: "completed" } });
  tell({ type: "conversation.item.created", item: { id: "2", status: "in_progress" } });
  tell({ type: "response.output_item.done", response_id: "r", output_index: 0, item: { id: "2" } });
  expect(received.map(({ type }) => type)).toEqual([
    "conversation.item.added",
    "conversation.item.done",
    "conversation.item.added",
    "response.output_item.done",
    "conversation.item.done",
  ]);
});

test("sessions and usage come in the form of GA", () => {
  const { received, tell } = betaProvider();
  tell({
    type: "session.created",
    session: { model: "m", modalities: ["audio", "text"], voice: "alloy" },
  });
  const usage = { total_tokens: 3 };
  tell({ type: "response.done", response: { id: "r", modalities: ["text"], usage } });
  expect(received).toEqual([
    {
      type: "session.created",
      session: {
        type: "realtime",
        model: "m",
        output_modalities: ["audio"],
        audio: { output: { voice: "alloy" } },
      },
    },
    { type: "response.done", response: { id: "r", output_modalities: ["text"], usage } },
  ]);
});
