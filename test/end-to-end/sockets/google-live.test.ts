import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { LiveDouble, liveUsageMetadata } from "./support/live-upstream.ts";
import { SocketClient } from "./support/socket-client.ts";

let live: LiveDouble;
let gateway: TestGateway;

beforeAll(async () => {
  live = new LiveDouble();
  gateway = await startGateway({
    providers: [
      provider({
        id: "google",
        base_url: live.baseUrl,
        dialect: { realtime: "google-live" },
        api_key: "live-secret",
        models: [
          {
            id: "google/live",
            upstream_model: "gemini-live",
            surface: "realtime",
            pricing: { prompt: "0.5", completion: "2", audio_input: "3", audio_output: "12" },
          },
        ],
      }),
    ],
  });
});
beforeEach(() => {
  live.frames.length = 0;
  live.waits = false;
});
afterAll(async () => {
  await gateway.stop();
  live.stop();
});

const connect = (key?: string): Promise<SocketClient> =>
  SocketClient.open(gateway.origin, {
    path: "/v1/realtime?model=google/live",
    ...(key && { key }),
  });

const say = (text: string) => ({
  type: "conversation.item.create",
  item: { type: "message", role: "user", content: [{ type: "input_text", text }] },
});

const sound = Buffer.alloc(48_000).toString("base64");

test("a session in text begins with the client's settings, and its key is in no address", async () => {
  const client = await connect();
  expect(await client.next()).toMatchObject({
    type: "session.created",
    session: { model: "google/live" },
  });
  const session = { type: "realtime", output_modalities: ["text"], instructions: "Be brief." };
  client.send({ type: "session.update", session });
  expect(await client.until("session.updated")).toMatchObject({ session });
  client.send(say("Hi"));
  expect(await client.until("conversation.item.done")).toMatchObject({ item: { role: "user" } });
  client.send({ type: "response.create" });
  expect(await client.until("response.output_text.delta")).toMatchObject({ delta: "Ciao." });
  const done = await client.until("response.done");
  expect(done).toMatchObject({
    response: { status: "completed", output: [{ content: [{ text: "Ciao." }] }] },
  });
  expect(live.frames).toEqual([
    {
      setup: {
        model: "models/gemini-live",
        generationConfig: { responseModalities: ["TEXT"] },
        systemInstruction: { parts: [{ text: "Be brief." }] },
        realtimeInputConfig: { automaticActivityDetection: {} },
      },
    },
    { clientContent: { turns: [{ role: "user", parts: [{ text: "Hi" }] }], turnComplete: true } },
  ]);
  expect(live.handshakes.at(-1)?.url.search).toBe("");
  client.close();
});

test("speech is answered in sound with its transcript, and charged as Google counts it", async () => {
  const headers = {
    authorization: `Bearer ${testManagementKey}`,
    "content-type": "application/json",
  };
  const made = await gateway.post("/keys", { name: "k" }, { headers });
  const { key } = (await made.json()) as { key: string };
  const client = await connect(key);
  client.send({ type: "input_audio_buffer.append", audio: sound });
  client.send({ type: "input_audio_buffer.commit" });
  expect(await client.until("response.output_audio.delta")).toMatchObject({
    delta: Buffer.alloc(4_800).toString("base64"),
  });
  expect(await client.until("response.output_audio_transcript.done")).toMatchObject({
    transcript: "Ciao.",
  });
  const done = await client.until("response.done");
  const { promptTokenCount, responseTokenCount } = liveUsageMetadata;
  expect(done["response"]).toMatchObject({
    usage: { input_tokens: promptTokenCount, output_tokens: responseTokenCount },
  });
  client.close();
  await client.closed;
  const found = await fetch(`${gateway.baseUrl}/key`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const { data } = (await found.json()) as { data: { usage: number } };
  expect(data.usage).toBeCloseTo((30 * 0.5 + 100 * 3 + 10 * 2 + 50 * 12) / 1e6, 9);
});

test("a turn that the client ends itself is sent as one activity", async () => {
  const client = await connect();
  const audio = { input: { turn_detection: null } };
  client.send({ type: "session.update", session: { type: "realtime", audio } });
  client.send({ type: "input_audio_buffer.append", audio: sound });
  client.send({ type: "input_audio_buffer.clear" });
  await client.until("input_audio_buffer.cleared");
  client.send({ type: "input_audio_buffer.append", audio: sound });
  client.send({ type: "input_audio_buffer.commit" });
  client.send({ type: "response.create" });
  await client.until("response.done");
  const inputs = live.frames.flatMap(({ realtimeInput }) =>
    realtimeInput === undefined ? [] : Object.keys(Object(realtimeInput) as object),
  );
  expect(inputs).toEqual(["activityStart", "audio", "activityEnd"]);
  client.close();
});

test("functions are called and answered", async () => {
  const client = await connect();
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const tools = [{ type: "function", name: "weather", description: "The weather.", parameters }];
  client.send({
    type: "session.update",
    session: { type: "realtime", output_modalities: ["text"], tools },
  });
  client.send(say("What is the weather in Rome?"));
  client.send({ type: "response.create" });
  const call = await client.until("response.function_call_arguments.done");
  expect(call).toMatchObject({ name: "weather", arguments: '{"city":"Rome"}' });
  await client.until("response.done");
  const output = { type: "function_call_output", call_id: call["call_id"], output: "sunny" };
  client.send({ type: "conversation.item.create", item: output });
  client.send({ type: "response.create" });
  expect(await client.until("response.output_text.done")).toMatchObject({ text: "Ciao." });
  await client.until("response.done");
  expect(live.frames.at(-1)).toEqual({
    toolResponse: {
      functionResponses: [{ id: "call-1", name: "weather", response: { output: "sunny" } }],
    },
  });
  client.close();
});

test("an interruption ends the response as cancelled", async () => {
  live.waits = true;
  const client = await connect();
  client.send(say("Tell me a story."));
  client.send({ type: "response.create" });
  await client.until("response.output_audio.delta");
  live.interrupt();
  await client.until("input_audio_buffer.speech_started");
  expect(await client.until("response.done")).toMatchObject({
    response: { status: "cancelled", status_details: { reason: "turn_detected" } },
  });
  client.close();
});

test.each([
  ["session.prompt", { type: "session.update", session: { prompt: { id: "p" } } }],
  ["session.tools", { type: "session.update", session: { tools: [{ type: "mcp" }] } }],
  [
    "session.audio.input.format",
    { type: "session.update", session: { audio: { input: { format: { type: "audio/pcmu" } } } } },
  ],
  ["conversation.item.truncate", { type: "conversation.item.truncate", item_id: "x" }],
  ["response.instructions", { type: "response.create", response: { instructions: "x" } }],
])("%s is named as lost, and the session goes on", async (param, event) => {
  const client = await connect();
  client.send({ event_id: "mine", ...event });
  expect(await client.until("error")).toMatchObject({ error: { param, event_id: "mine" } });
  client.send({ type: "response.create" });
  await client.until("response.done");
  client.close();
});

test("settings that come too late are named as lost", async () => {
  const client = await connect();
  client.send({ type: "response.create" });
  await client.until("response.done");
  client.send({ type: "session.update", session: { type: "realtime", instructions: "New." } });
  expect(await client.until("error")).toMatchObject({ error: { param: "session.instructions" } });
  client.close();
});

test.each([
  ["is no JSON", `{no "type":"input_audio_buffer.append","audio":"${sound}"}`],
  [
    "is nested too deeply",
    `{"type":"session.update","session":{"x":${"[".repeat(90_000)}${"]".repeat(90_000)}}}`,
  ],
])("a frame that %s ends no session but its own", async (_, frame) => {
  const other = await connect();
  await other.next();
  const client = await connect();
  await client.next();
  client.socket.send(frame);
  client.send({ type: "response.create" });
  await Promise.race([client.until("error", "response.done"), client.closed]);
  other.send({ type: "response.create" });
  expect(await other.until("response.done")).toMatchObject({ response: { status: "completed" } });
  client.close();
  other.close();
});
