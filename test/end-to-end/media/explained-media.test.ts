import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import {
  forgetFailuresOf,
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";

/** A PNG of one pixel. */
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

interface Received {
  path: string;
  authorization: string | null;
  json: Record<string, unknown>;
  form: FormData | undefined;
}

const received: Received[] = [];

/** Providers by the first name in their path: `down` and keys named `bad` are refused. */
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname: path } = new URL(request.url);
    const authorization = request.headers.get("authorization");
    const isForm = request.headers.get("content-type")?.startsWith("multipart/") === true;
    const form = isForm ? ((await request.formData()) as FormData) : undefined;
    const json = isForm ? {} : ((await request.json()) as Record<string, unknown>);
    received.push({ path, authorization, json, form });
    if (path.startsWith("/down/")) return new Response("{}", { status: 503 });
    if (authorization === "Bearer bad-own-key") return new Response("{}", { status: 401 });
    if (path.endsWith("/speech")) return new Response("sound");
    if (path.endsWith("/transcriptions"))
      return Response.json({ text: "Hi", usage: { type: "duration", seconds: 6 } });
    if (path.includes(":generateContent"))
      return Response.json({ candidates: [{ content: { parts: [{ text: "Hi" }] } }] });
    const count = typeof json["n"] === "number" ? json["n"] : 1;
    const data = Array.from({ length: count }, () => ({ b64_json: png.toString("base64") }));
    return Response.json({ created: 1, data });
  },
});
const origin = `http://127.0.0.1:${upstream.port}`;

const pixels = (low: string, high: string) => ({
  id: "acme/pixels",
  upstream_model: "pixels",
  surface: "images",
  pricing: { image: { "512x512": { low, high } } },
});
const voice = (characters: string) => ({
  id: "acme/voice",
  upstream_model: "voice",
  surface: "speech",
  pricing: { characters },
});
const ears = {
  id: "acme/ears",
  upstream_model: "whisper-1",
  surface: "transcriptions",
  pricing: { audio_input_minute: "0.006" },
};
const openai = {
  images: "openai-images",
  speech: "openai-audio",
  transcriptions: "openai-audio",
};

let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  const at = (id: string, changes: object) =>
    provider({
      id,
      base_url: `${origin}/${id}`,
      api_key: `platform-key-of-${id}`,
      dialect: openai,
      ...changes,
    });
  gateway = await startGateway({
    providers: [
      at("one", { models: [pixels("0.01", "0.04"), voice("15"), ears] }),
      at("two", { models: [pixels("0.02", "0.08"), voice("30")] }),
      at("down", { models: [pixels("0.03", "0.09"), voice("40"), ears] }),
      at("grok", {
        like: "xai",
        models: [{ ...pixels("1", "1"), id: "grok/imagine", pricing: { image: "0.02" } }],
      }),
      at("goog", {
        dialect: { transcriptions: "google-audio" },
        models: [{ ...ears, id: "goog/ears", upstream_model: "gemini-3.8-flash" }],
      }),
    ],
  });
  client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: testLlmKey, maxRetries: 0 });
});
beforeEach(() => {
  received.length = 0;
  forgetFailuresOf(gateway, "down");
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const last = (): Received => received.at(-1) as Received;

const manage = (path: string, { method, body }: { method: string; body?: object }) =>
  fetch(`${gateway.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });

/** Returns a WAV of 8,000 bytes in a second, in whose header another number may stand. */
function wav(seconds: number, bytesPerSecond = 8_000): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(bytesPerSecond, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36, "latin1");
  return Buffer.concat([head, Buffer.alloc(seconds * 8_000)]);
}
const inJson = (sound: Buffer) => ({ data: sound.toString("base64"), format: "wav" });

interface Explanation {
  candidates: { provider: string; estimated_cost_usd: number; credential_source: string }[];
  estimate: { parts?: Record<string, number> };
  worst_case_usd: number;
  hold_usd: number;
}
async function explain(body: object): Promise<Explanation> {
  const response = await gateway.post("/routing/explain", body);
  expect(response.status).toBe(200);
  expect(received).toEqual([]);
  return (await response.json()) as Explanation;
}
const costs = ({ candidates }: Explanation): [string, number][] =>
  candidates.map(({ provider: id, estimated_cost_usd: usd }) => [id, usd]);
const byPrice = { provider: { sort: "price" } };

test("the routing of pictures is explained at the price of their size and quality", async () => {
  const request = { model: "acme/pixels", prompt: "x", size: "512x512", n: 2, ...byPrice };
  const low = await explain({ ...request, quality: "low" });
  expect(costs(low)).toEqual([
    ["one", 0.02],
    ["two", 0.04],
    ["down", 0.06],
  ]);
  expect(low).toMatchObject({
    hold_usd: 0.06,
    worst_case_usd: 0.06,
    estimate: { parts: { outputImages: 2 } },
  });
  expect(costs(await explain({ ...request, quality: "high" }))[0]).toEqual(["one", 0.08]);
});

test("the routing of speech and of a transcript is explained", async () => {
  const speech = await explain({ model: "acme/voice", input: "Hello", voice: "a", ...byPrice });
  expect(costs(speech)[0]).toEqual(["one", 0.000_075]);
  expect(speech.estimate.parts).toMatchObject({ characters: 5 });
  const heard = await explain({ model: "acme/ears", input_audio: inJson(wav(6)) });
  expect(costs(heard)).toContainEqual(["one", 0.000_6]);
  expect(heard.estimate.parts).toMatchObject({ inputAudioMs: 6_000 });
});

test("a length is held by samples where a header names more bytes in a second", async () => {
  const sound = wav(6, 4_000_000_000);
  const { estimate } = await explain({ model: "acme/ears", input_audio: inJson(sound) });
  expect(estimate.parts).toMatchObject({ inputAudioMs: 6_000 });
});

test.each([
  [{ model: "acme/pixels", prompt: "x", n: 11 }, "n"],
  [{ model: "acme/pixels" }, "prompt"],
  [{ model: "acme/ears" }, "file"],
  [{ model: "acme/voice", input: "x", speed: 9 }, "speed"],
])("explaining %j names the field %s", async (body, param) => {
  const response = await gateway.post("/routing/explain", body);
  expect(response.status).toBe(400);
  expect(JSON.stringify(await response.json())).toContain(param);
});

/** Returns the explanation of a charge, once its record is written. */
async function chargeOf(response: { headers: Headers }) {
  const path = `/generation/gen_${response.headers.get("x-service-trace-id")}/explain`;
  await pollUntil(async () => (await gateway.get(path)).ok);
  return (await (await gateway.get(path)).json()) as {
    explanation: string[];
    lines: object[];
    charged_usd: number;
  };
}

test("the charge of pictures, speech and a transcript is explained by part", async () => {
  const order = { provider: { order: ["one"] } };
  const made = await gateway.post("/images/generations", {
    model: "acme/pixels",
    prompt: "x",
    size: "512x512",
    quality: "high",
    n: 2,
    ...order,
  });
  const picture = await chargeOf(made);
  expect(picture.charged_usd).toBe(0.08);
  expect(picture.lines).toContainEqual(
    expect.objectContaining({ part: "outputImages", quantity: 2, amount_usd: 0.08 }),
  );
  expect(picture.explanation).toContain("2 images made at $0.04 each made $0.08.");
  const spoken = await gateway.post("/audio/speech", {
    model: "acme/voice",
    input: "Hello",
    voice: "a",
    ...order,
  });
  expect(await spoken.text()).toBe("sound");
  expect(await chargeOf(spoken)).toMatchObject({
    charged_usd: 0.000_075,
    lines: expect.arrayContaining([
      expect.objectContaining({ part: "characters", quantity: 5, amount_usd: 0.000_075 }),
    ]),
  });
  const heard = await gateway.post("/audio/transcriptions", {
    model: "acme/ears",
    input_audio: inJson(wav(6)),
    ...order,
  });
  const { explanation } = await chargeOf(heard);
  expect(explanation).toContain("0.1 minutes of audio sent at $0.006 per minute made $0.0006.");
});

test("a preset gives each surface its own settings alone", async () => {
  const config = {
    model: "acme/pixels",
    size: "512x512",
    quality: "low",
    voice: "coral",
    instructions: "softly",
    language: "de",
    provider: { only: ["one"] },
  };
  const body = { name: "Media", slug: "media", config };
  expect((await manage("/presets", { method: "POST", body })).ok).toBe(true);
  const change = async (model: string) =>
    expect(
      (await manage("/presets/media", { method: "PATCH", body: { config: { model } } })).ok,
    ).toBe(true);
  const made = await gateway.post("/images/generations", { model: "@preset/media", prompt: "x" });
  expect(await made.json()).toMatchObject({ usage: { cost: 0.01 } });
  expect(last().json).toEqual({ model: "pixels", prompt: "x", size: "512x512", quality: "low" });
  const own = { model: "@preset/media", prompt: "x", quality: "high" };
  expect(await (await gateway.post("/images/generations", own)).json()).toMatchObject({
    usage: { cost: 0.04 },
  });
  received.length = 0;
  const explained = await explain({ model: "@preset/media", prompt: "x" });
  expect(costs(explained)).toEqual([["one", 0.01]]);
  await change("acme/voice");
  await (await gateway.post("/audio/speech", { model: "@preset/media", input: "Hi" })).text();
  expect(last().json).toEqual({
    model: "voice",
    input: "Hi",
    voice: "coral",
    instructions: "softly",
  });
  await change("acme/ears");
  const file = await toFile(wav(1), "a.wav");
  await client.audio.transcriptions.create({ model: "@preset/media", file });
  expect([...(last().form?.keys() ?? [])].sort()).toEqual([
    "file",
    "language",
    "model",
    "response_format",
  ]);
});

test("a file is sent whole again where the first provider is down", async () => {
  const order = { provider: { order: ["down", "one"] } };
  const { response } = await client.images
    .edit({
      model: "acme/pixels",
      prompt: "x",
      image: await toFile(png, "a.png", { type: "image/png" }),
      ...(order as object),
    })
    .withResponse();
  expect(response.headers.get("x-service-provider-chain")).toBe("down->one");
  forgetFailuresOf(gateway, "down");
  const spoken = await gateway.post("/audio/speech", {
    model: "acme/voice",
    input: "Hi",
    voice: "a",
    ...order,
  });
  expect(spoken.headers.get("x-service-provider-chain")).toBe("down->one");
  expect(await spoken.text()).toBe("sound");
  forgetFailuresOf(gateway, "down");
  received.length = 0;
  const sound = wav(200);
  const heard = await gateway.post("/audio/transcriptions", {
    model: "acme/ears",
    input_audio: inJson(sound),
    ...order,
  });
  expect(heard.headers.get("x-service-provider-chain")).toBe("down->one");
  expect(await heard.json()).toMatchObject({ usage: { seconds: 6 } });
  for (const { form } of received) {
    const sent = form?.get("file") as File;
    expect(Buffer.from(await sent.arrayBuffer()).equals(sound)).toBe(true);
  }
  expect(received).toHaveLength(2);
});

test("an own provider key makes pictures and sound for no credits", async () => {
  const add = async (apiKey: string): Promise<string> => {
    const body = { provider_id: "two", api_key: apiKey };
    const { id } = (await (await manage("/auth/byok", { method: "POST", body })).json()) as {
      id: string;
    };
    return id;
  };
  const id = await add("good-own-key");
  const only = { provider: { only: ["two"] } };
  const request = { model: "acme/pixels", prompt: "x", size: "512x512", quality: "low", ...only };
  const { candidates, hold_usd: held } = await explain(request);
  expect(candidates[0]).toMatchObject({ credential_source: "own_byok", estimated_cost_usd: 0 });
  expect(held).toBe(0.02);
  const made = await gateway.post("/images/generations", request);
  expect(made.status).toBe(200);
  expect(last().authorization).toBe("Bearer good-own-key");
  expect(await chargeOf(made)).toMatchObject({
    charged_usd: 0,
    generation: { is_byok: true, surface: "images" },
  });
  const spoken = await gateway.post("/audio/speech", {
    model: "acme/voice",
    input: "Hi",
    voice: "a",
    ...only,
  });
  expect(await spoken.text()).toBe("sound");
  expect(last().authorization).toBe("Bearer good-own-key");
  expect(await chargeOf(spoken)).toMatchObject({ charged_usd: 0 });
  expect((await manage(`/auth/byok/keys/${id}`, { method: "DELETE" })).ok).toBe(true);
  await add("bad-own-key");
  received.length = 0;
  const paid = await gateway.post("/images/generations", request);
  expect(await paid.json()).toMatchObject({ usage: { cost: 0.02 } });
  expect(received.map(({ authorization }) => authorization)).toEqual([
    "Bearer bad-own-key",
    "Bearer platform-key-of-two",
  ]);
});

test("a voice of an account, a markup and numbers of a form reach their providers", async () => {
  await client.audio.speech.create({ model: "acme/voice", input: "Hi", voice: { id: "voice_1" } });
  expect(last().json["voice"]).toEqual({ id: "voice_1" });
  const image = await toFile(png, "a.png", { type: "image/png" });
  const markup = await toFile(png, "strokes.png", { type: "image/png" });
  await client.images.edit({ model: "acme/pixels", prompt: "x", image, markup });
  expect((last().form?.get("markup") as File).name).toBe("strokes.png");
  const { response } = await client.images
    .edit({ model: "grok/imagine", prompt: "x", image, markup, n: 2 })
    .withResponse();
  expect(last().json["n"]).toBe(2);
  expect(response.headers.get("x-service-translation-loss")).toContain("markup");
  const file = await toFile(wav(1), "a.wav");
  await client.audio.transcriptions.create({ model: "goog/ears", file, temperature: 0.5 });
  expect(last().json["generationConfig"]).toEqual({ temperature: 0.5 });
});

test("a mask needs a picture, and none beside a markup", async () => {
  const at = `data:image/png;base64,${png.toString("base64")}`;
  const alone = { model: "acme/pixels", prompt: "x", mask: { image_url: at } };
  expect((await gateway.post("/images/generations", alone)).status).toBe(400);
  const both = { ...alone, images: [{ image_url: at }], markup: { image_url: at } };
  const response = await gateway.post("/images/edits", both);
  expect(await response.json()).toMatchObject({ error: { param: "markup" } });
  expect(received).toEqual([]);
});
