import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import OpenAI from "openai";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { ServedRequest } from "../../../src/http/served-request.ts";
import { StreamFault } from "../../../src/inference/dialects/shared/stream/stream-fault.ts";
import { speechDecoder } from "../../../src/inference/surfaces/audio/speech-bytes.ts";

interface Received {
  path: string;
  query: URLSearchParams;
  headers: Headers;
  json: Record<string, unknown>;
}

const received: Received[] = [];
let answer: (request: Received) => Response = () => new Response("");
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const url = new URL(request.url);
    const got = {
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      json: (await request.json()) as Record<string, unknown>,
    };
    received.push(got);
    return answer(got);
  },
});
const origin = `http://127.0.0.1:${upstream.port}`;

let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  const vendor = (id: string, dialect: string, models: Record<string, readonly [string, object]>) =>
    provider({
      id,
      base_url: `${origin}/${id}`,
      api_key: `${id}-secret`,
      dialect: { speech: dialect },
      models: Object.entries(models).map(([model, [upstreamModel, pricing]]) => ({
        id: model,
        upstream_model: upstreamModel,
        surface: "speech",
        pricing,
      })),
    });
  gateway = await startGateway({
    sandbox: true,
    providers: [
      vendor("acme", "openai-audio", {
        "acme/tts": ["tts-1", { characters: "15" }],
        "acme/mini": ["gpt-4o-mini-tts", { prompt: "0.6", audio_output: "12" }],
        "acme/minute": ["tts-1-hd", { audio_output_minute: "0.015" }],
        "acme/both": ["tts-1", { characters: "15" }],
      }),
      vendor("spare", "openai-audio", { "acme/both": ["spare-tts", { characters: "20" }] }),
      vendor("deep", "deepgram", { "deep/aura": ["aura-2-thalia-en", { characters: "30" }] }),
      vendor("eleven", "elevenlabs", { "eleven/v3": ["eleven_v3", { characters: "80" }] }),
      vendor("goog", "google-audio", {
        "goog/tts": ["gemini-3.8-flash-tts", { prompt: "0.5", audio_output: "10" }],
      }),
    ],
  });
  client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey, maxRetries: 0 });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const last = (): Received => received.at(-1) as Received;
const bytesOf = (size: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length: size }, (_, index) => index % 251);
const sound = (bytes: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  new Response(bytes, { headers: { "content-type": "audio/mpeg", ...headers } });

/** Returns the record of an answer, once it is written. */
async function recordOf(response: { headers: Headers }) {
  const id = `gen_${response.headers.get("x-service-trace-id")}`;
  let record: Record<string, unknown> = {};
  await pollUntil(async () => {
    const found = await gateway.get(`/generation?id=${id}`);
    if (found.ok) record = ((await found.json()) as { data: Record<string, unknown> }).data;
    return found.ok;
  });
  return record;
}

test("passes sound on unchanged and charges its characters", async () => {
  const bytes = bytesOf(300_000);
  answer = () => sound(bytes);
  using idle = spyOn(ServedRequest.prototype, "setIdleSeconds");
  const response = await client.audio.speech.create({
    model: "acme/tts",
    input: "Hello there",
    voice: "alloy",
    instructions: "calm",
  });
  // Sent as streams of text are: with their limit for clients that do not read.
  expect(idle.mock.calls.flat().slice(0, 3)).toEqual([0, 75, 0]);
  expect(response.headers.get("content-type")).toBe("audio/mpeg");
  expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  expect(last().json).toEqual({ model: "tts-1", input: "Hello there", voice: "alloy" });
  expect(response.headers.get("x-service-translation-loss")).toBe("instructions");
  const record = await recordOf(response);
  expect(record).toMatchObject({ surface: "speech", total_cost: 0.000165, status: "completed" });
});

test("asks models that are billed by token for events, and sends sound all the same", async () => {
  const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
  const bytes = bytesOf(3_000);
  answer = () =>
    new Response(
      event({
        type: "speech.audio.delta",
        audio: Buffer.from(bytes.subarray(0, 1_000)).toString("base64"),
      }) +
        event({
          type: "speech.audio.delta",
          audio: Buffer.from(bytes.subarray(1_000)).toString("base64"),
        }) +
        event({
          type: "speech.audio.done",
          usage: { input_tokens: 10, output_tokens: 100, total_tokens: 110 },
        }),
      { headers: { "content-type": "text/event-stream" } },
    );
  const response = await client.audio.speech.create({
    model: "acme/mini",
    input: "Hello",
    voice: "coral",
    response_format: "wav",
    instructions: "calm",
  });
  expect(response.headers.get("content-type")).toBe("audio/wav");
  expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
  expect(last().json).toMatchObject({ stream_format: "sse", instructions: "calm" });
  expect((await recordOf(response))["total_cost"]).toBeCloseTo(0.001206, 9);
});

test("samples are charged by their length", async () => {
  answer = () => sound(bytesOf(48_000 * 2));
  const response = await client.audio.speech.create({
    model: "acme/minute",
    input: "Hi",
    voice: "alloy",
    response_format: "pcm",
  });
  await response.arrayBuffer();
  expect((await recordOf(response))["total_cost"]).toBe(0.0005);
});

test("a client may read events", async () => {
  answer = () => sound(bytesOf(10));
  const response = await client.audio.speech.create({
    model: "acme/tts",
    input: "Hello",
    voice: "alloy",
    stream_format: "sse",
  });
  const events = (await response.text())
    .split("\n\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line.slice(6)) as { type: string; usage?: { cost: number } });
  expect(events.map(({ type }) => type)).toEqual(["speech.audio.delta", "speech.audio.done"]);
  expect(events[1]?.usage?.cost).toBe(0.000075);
});

test("the last event of speech shows the provider's tokens", async () => {
  const usage = { input_tokens: 10, output_tokens: 100, total_tokens: 110 };
  const events = [
    { type: "speech.audio.delta", audio: "AAAA" },
    { type: "speech.audio.done", usage },
  ];
  answer = () =>
    new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""), {
      headers: { "content-type": "text/event-stream" },
    });
  const response = await gateway.post("/audio/speech", {
    model: "acme/mini",
    input: "Hello",
    voice: "coral",
    stream_format: "sse",
  });
  const told = (await response.text()).split("\n\n").filter((line) => line !== "");
  expect(told.map((line) => JSON.parse(line.slice(6)) as object)).toEqual([
    { type: "speech.audio.delta", audio: "AAAA" },
    { type: "speech.audio.done", usage: { ...usage, cost: 0.001206 } },
  ]);
});

test("events of speech are read up to the last line, and only so much of one waits", () => {
  const decoder = () =>
    speechDecoder({} as never, {
      answer: { form: "events", type: "audio/mpeg" },
      counts: { byPiece: true },
    });
  const whole = decoder();
  const lines =
    '{"type":"speech.audio.delta","audio":"AAAA"}\r\ndata: {"type":"speech.audio.done"}';
  expect(whole.push(Buffer.from(`data: ${lines}`))).toHaveLength(3);
  expect(whole.end()).toHaveLength(0);
  const endless = decoder();
  const piece = Buffer.alloc(8 * 1024 * 1024, "a");
  expect(() => {
    for (let count = 0; count < 9; count += 1) endless.push(piece);
  }).toThrow(StreamFault);
});

test("a server that knows no events sends its sound in their place", async () => {
  const bytes = bytesOf(1_000);
  answer = () => sound(bytes);
  const response = await client.audio.speech.create({
    model: "acme/mini",
    input: "Hello",
    voice: "coral",
  });
  expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
});

test.each([
  ["cut off", ""],
  ["ended by an error", 'data: {"type":"error","error":{"message":"overloaded"}}\n\n'],
])(
  "speech that is %s ends with an event of an error, and is not asked for again",
  async (_, end) => {
    const before = received.length;
    answer = () =>
      new Response(`data: {"type":"speech.audio.delta","audio":"AAAA"}\n\n${end}`, {
        headers: { "content-type": "text/event-stream" },
      });
    const response = await gateway.post("/audio/speech", {
      model: "acme/mini",
      input: "Hello",
      voice: "coral",
      stream_format: "sse",
    });
    const events = (await response.text()).split("\n\n").filter((line) => line !== "");
    expect(events.map((line) => JSON.parse(line.slice(6)) as object)).toMatchObject([
      { type: "speech.audio.delta" },
      { type: "error", error: { code: "bad_gateway" } },
    ]);
    expect(received.length - before).toBe(1);
  },
);

test("Deepgram, ElevenLabs and Gemini speak in their own ways", async () => {
  answer = () => sound(bytesOf(100));
  const deep = await client.audio.speech.create({
    model: "deep/aura",
    input: "Hello",
    voice: "alloy",
  });
  await deep.arrayBuffer();
  expect(last()).toMatchObject({ path: "/deep/speak", json: { text: "Hello" } });
  expect(last().query.get("model")).toBe("aura-2-thalia-en");
  expect((await recordOf(deep))["total_cost"]).toBe(0.00015);

  answer = () => sound(bytesOf(100), { "character-cost": "3" });
  const eleven = await client.audio.speech.create({
    model: "eleven/v3",
    input: "Hello",
    voice: "voice id",
    response_format: "wav",
  });
  const wav = Buffer.from(await eleven.arrayBuffer());
  expect(wav.toString("latin1", 0, 4)).toBe("RIFF");
  expect(wav.length).toBe(144);
  expect(last().path).toBe("/eleven/text-to-speech/voice%20id/stream");
  expect((await recordOf(eleven))["total_cost"]).toBe(0.00024);

  const pcm = Buffer.from(bytesOf(480)).toString("base64");
  answer = () =>
    Response.json({
      candidates: [
        { content: { parts: [{ inlineData: { mimeType: "audio/L16;rate=24000", data: pcm } }] } },
      ],
      usageMetadata: {
        promptTokenCount: 4,
        candidatesTokenCount: 50,
        candidatesTokensDetails: [{ modality: "AUDIO", tokenCount: 50 }],
      },
    });
  const gemini = await client.audio.speech.create({
    model: "goog/tts",
    input: "Hello",
    voice: "Kore",
    response_format: "wav",
  });
  expect(Buffer.from(await gemini.arrayBuffer()).length).toBe(44 + 480);
  expect((await recordOf(gemini))["total_cost"]).toBeCloseTo((4 * 0.5 + 50 * 10) / 1e6, 9);
});

test("a provider that fails before a byte is replaced, and none after it", async () => {
  answer = ({ path }) =>
    path.startsWith("/acme")
      ? Response.json({ error: { message: "no" } }, { status: 500 })
      : sound(bytesOf(5));
  const response = await gateway.post("/audio/speech", {
    model: "acme/both",
    input: "Hello",
    voice: "alloy",
    provider: { order: ["acme", "spare"] },
  });
  await response.arrayBuffer();
  expect(response.headers.get("x-service-provider-chain")).toBe("acme->spare");
  expect((await recordOf(response))["total_cost"]).toBe(0.0001);
});

test("a provider that may have begun is not replaced", async () => {
  const before = received.length;
  answer = () => new Response("");
  const response = await gateway.post("/audio/speech", {
    model: "acme/both",
    input: "Hello",
    voice: "alloy",
    provider: { order: ["acme", "spare"] },
  });
  expect(response.status).toBe(502);
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect(received.length - before).toBe(1);
});

test("a client that leaves pays for the characters", async () => {
  let cancelled = false;
  answer = () =>
    new Response(
      new ReadableStream({
        async pull(controller) {
          await Bun.sleep(10);
          controller.enqueue(new Uint8Array(1_000));
        },
        cancel() {
          cancelled = true;
        },
      }),
    );
  const response = await client.audio.speech.create({
    model: "acme/tts",
    input: "Hello",
    voice: "alloy",
  });
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  const record = await recordOf(response);
  expect(record).toMatchObject({ total_cost: 0.000075, status: "cancelled" });
  await pollUntil(() => cancelled);
});

test.each([
  [{ input: "" }, "input"],
  [{ input: "x".repeat(4_097) }, "input"],
  [{ speed: 5 }, "speed"],
  [{ speed: 0.2 }, "speed"],
  [{ speed: "fast" }, "speed"],
  [{ voice: { name: "x" } }, "voice"],
  [{ response_format: "ogg" }, "response_format"],
  [{ response_format: "doc" }, "response_format"],
  [{ stream_format: "xml" }, "stream_format"],
])("refuses %j before a provider is asked", async (fields, param) => {
  const before = received.length;
  const response = await gateway.post("/audio/speech", {
    model: "acme/tts",
    input: "x",
    voice: "alloy",
    ...fields,
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param } });
  expect(received.length).toBe(before);
});

test("tells the charge in a header where it is asked for", async () => {
  answer = () => sound(bytesOf(10));
  const response = await gateway.post(
    "/audio/speech",
    { model: "acme/tts", input: "Hello", voice: "alloy" },
    { headers: { "x-service-balance-after-debit": "true" } },
  );
  expect(response.headers.get("x-service-credits-charged")).toBe("0.000075");
  expect((await response.arrayBuffer()).byteLength).toBe(10);
});

test.each(["wav", "mp3"] as const)(
  "the sandbox speaks WAV, and says so, for %s",
  async (format) => {
    const response = await client.audio.speech.create({
      model: "sandbox/speech:free",
      input: "Hello",
      voice: "alloy",
      response_format: format,
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.toString("latin1", 0, 4)).toBe("RIFF");
    expect(response.headers.get("content-type")).toBe("audio/wav");
    expect((await recordOf(response))["total_cost"]).toBe(0);
  },
);

test("with an own key, the events of speech tell that nothing was charged", async () => {
  const headers = { authorization: `Bearer ${testManagementKey}` };
  const key = { provider_id: "acme", api_key: "own-key-0123456789" };
  const made = await gateway.post("/auth/byok", key, { headers });
  const { id } = (await made.json()) as { id: string };
  answer = () => new Response("sound", { headers: { "content-type": "audio/mpeg" } });
  const response = await gateway.post("/audio/speech", {
    model: "acme/tts",
    input: "Hello",
    voice: "alloy",
    stream_format: "sse",
  });
  expect(response.headers.get("x-service-credential-source")).toBe("own_byok");
  expect(await response.text()).toContain('"cost":0}');
  await fetch(`${gateway.baseUrl}/auth/byok/keys/${id}`, { method: "DELETE", headers });
});
