import { DallEAPIWrapper } from "@langchain/openai";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { OpenRouterClient } from "../clients/adapters/openrouter-sdk.ts";
import { testClientsFolder } from "../clients/support/test-clients-folder.ts";
import { missingPackage, runScript } from "../clients/python/run-script.ts";
import { pixelPng } from "../clients/support/pixel-png.ts";

const parts = [
  { text: "Here it is." },
  { inlineData: { mimeType: "image/png", data: "cGljdHVyZQ==" } },
];

const pixel = Buffer.from(pixelPng, "base64");

/** Answers as OpenRouter does for a model that makes pictures. */
function routerAnswer(isStream: boolean): Response {
  const images = [
    { type: "image_url", image_url: { url: "data:image/png;base64,cGljdHVyZQ==" }, index: 0 },
  ];
  const said = { role: "assistant", content: "Here it is.", images };
  const head = { id: "gen-1", created: 1, model: "banana" };
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  if (!isStream) {
    const choices = [{ index: 0, message: said, finish_reason: "stop" }];
    return Response.json({ ...head, object: "chat.completion", choices, usage });
  }
  const chunk = (choices: object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices, ...more })}\n\n`;
  const events = [
    chunk([{ index: 0, delta: said, finish_reason: null }]),
    chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
    chunk([], { usage }),
    "data: [DONE]\n\n",
  ];
  return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
}

/** A provider whose chat model makes pictures. */
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const text = await request.text();
    if (pathname.endsWith("/chat/completions")) return routerAnswer(text.includes('"stream":true'));
    const answer = {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }],
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 1_125,
        totalTokenCount: 1_135,
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1_120 }],
      },
    };
    return pathname.includes("stream")
      ? new Response(`data: ${JSON.stringify(answer)}\n\n`, {
          headers: { "content-type": "text/event-stream" },
        })
      : Response.json(answer);
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  let origin = "";
  gateway = await startGateway({
    sandbox: true,
    publicUrl: () => origin,
    providers: [
      provider({
        id: "rout",
        base_url: `http://127.0.0.1:${upstream.port}`,
        api_key: "k",
        dialect: "openai-chat",
        models: [
          {
            id: "rout/banana",
            upstream_model: "banana",
            context_length: 65_536,
            max_completion_tokens: 32_768,
            pricing: { prompt: "2", completion: "12", image_output: "120" },
          },
        ],
      }),
      provider({
        id: "goog",
        base_url: `http://127.0.0.1:${upstream.port}`,
        api_key: "k",
        dialect: "google-generate",
        models: [
          {
            id: "goog/banana",
            upstream_model: "gemini-3-pro-image",
            context_length: 65_536,
            max_completion_tokens: 32_768,
            pricing: { prompt: "2", completion: "12", image_output: "120" },
          },
        ],
      }),
    ],
  });
  origin = gateway.origin;
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

test("LangChain's tool makes pictures, by address and as base64", async () => {
  const fields = {
    model: "sandbox/image:free",
    apiKey: testLlmKey,
    baseUrl: gateway.baseUrl,
    size: "512x512" as const,
  };
  const address = (await new DallEAPIWrapper(fields).invoke("a cat")) as string;
  const fetched = await fetch(address);
  expect([fetched.status, fetched.headers.get("content-type")]).toEqual([200, "image/png"]);
  const base64 = { ...fields, dallEResponseFormat: "b64_json" as const };
  const bytes = Buffer.from(
    (await new DallEAPIWrapper(base64).invoke("a cat")) as string,
    "base64",
  );
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
});

/** What the test asks of OpenRouter's client, whose types the compiler does not find. */
interface OpenRouterMedia {
  images: { generate(asked: object): Promise<unknown> };
  stt: { createTranscription(asked: object): Promise<unknown> };
  tts: { createSpeech(asked: object): Promise<unknown> };
}

test("OpenRouter's client makes pictures, whole and streamed, hears and speaks", async () => {
  const client = new OpenRouterClient({
    apiKey: testLlmKey,
    serverURL: gateway.baseUrl,
    retryConfig: { strategy: "none" },
  }) as unknown as OpenRouterMedia;
  const url = `data:image/png;base64,${pixelPng}`;
  const inputReferences = [{ type: "image_url" as const, imageUrl: { url } }];
  for (const more of [{ aspectRatio: "16:9" as const, seed: 3 }, { inputReferences }]) {
    const asked = { model: "sandbox/image:free", prompt: "a cat", ...more };
    const whole = await client.images.generate({ imageGenerationRequest: asked });
    expect(whole).toMatchObject({ data: [{ mediaType: "image/png" }], usage: { cost: 0 } });
    const stream = (await client.images.generate({
      imageGenerationRequest: { ...asked, stream: true },
    })) as AsyncIterable<unknown>;
    expect(await Array.fromAsync(stream)).toMatchObject([
      {
        type: "image_generation.completed",
        mediaType: "image/png",
        created: expect.any(Number),
        usage: { completionTokens: 272, cost: 0 },
      },
    ]);
  }
  const heard = await client.stt.createTranscription({
    sttRequest: {
      model: "sandbox/transcribe:free",
      inputAudio: { data: Buffer.alloc(3_000, 1).toString("base64"), format: "wav" },
    },
  });
  expect(heard).toMatchObject({ text: expect.stringContaining("3000 bytes"), usage: { cost: 0 } });
  const spoken = await client.tts.createSpeech({
    speechRequest: { model: "sandbox/speech:free", input: "Hi", voice: "alloy" },
  });
  expect((await new Response(spoken as ReadableStream).arrayBuffer()).byteLength).toBeGreaterThan(
    44,
  );
});

test("OpenRouter's client gets pictures through chat, whole and streamed", async () => {
  const client = new OpenRouterClient({
    apiKey: testLlmKey,
    serverURL: gateway.baseUrl,
    retryConfig: { strategy: "none" },
  }) as unknown as { chat: { send(asked: object): Promise<AsyncIterable<unknown>> } };
  const asked = {
    model: "goog/banana",
    messages: [{ role: "user", content: "a cat" }],
    modalities: ["image", "text"],
  };
  const url = "data:image/png;base64,cGljdHVyZQ==";
  const whole = await client.chat.send({ chatRequest: { ...asked, stream: false } });
  expect(JSON.stringify(whole)).toContain(url);
  const stream = await client.chat.send({ chatRequest: { ...asked, stream: true } });
  // The client's types of a stream have no pictures: it drops them, and reads the text around them.
  let text = "";
  for await (const chunk of stream) text += JSON.stringify(chunk);
  expect(text).toContain("Here it is.");
});

interface GoogleAnswer {
  candidates?: { content?: { parts?: { inlineData?: { data?: string } }[] } }[];
}

interface GoogleModels {
  generateContent(asked: object): Promise<GoogleAnswer>;
  generateContentStream(asked: object): Promise<AsyncIterable<GoogleAnswer>>;
}

const picturesIn = ({ candidates }: GoogleAnswer): (string | undefined)[] =>
  (candidates?.[0]?.content?.parts ?? []).flatMap(({ inlineData }) => inlineData?.data ?? []);

describe.each(["google-genai-1", "google-genai-2", "google-genai-3"])(
  "the client in %s",
  (name) => {
    const folder = join(testClientsFolder, name, "node_modules", "@google", "genai");

    test.skipIf(!existsSync(folder)).each(["goog/banana", "rout/banana"])(
      "gets pictures of %s through Google's API, whole and streamed",
      async (model) => {
        const { GoogleGenAI } = (await import(Bun.resolveSync(folder, folder))) as {
          GoogleGenAI: new (options: object) => { models: GoogleModels };
        };
        const { models } = new GoogleGenAI({
          apiKey: testLlmKey,
          httpOptions: { baseUrl: gateway.origin },
        });
        const asked = {
          model,
          contents: "a cat",
          config: { responseModalities: ["IMAGE", "TEXT"] },
        };
        expect(picturesIn(await models.generateContent(asked))).toEqual(["cGljdHVyZQ=="]);
        const streamed: (string | undefined)[] = [];
        for await (const chunk of await models.generateContentStream(asked))
          streamed.push(...picturesIn(chunk));
        expect(streamed).toEqual(["cGljdHVyZQ=="]);
      },
    );
  },
);

const missing = missingPackage("python-google", "google");

test.skipIf(missing !== undefined).each(["goog/banana", "rout/banana"])(
  `Google's client of Python makes and changes pictures of %s, whole, streamed and in turns${missing ? ` (missing: ${missing})` : ""}`,
  async (model) => {
    const script = join(import.meta.dir, "google_pictures.py");
    const parameters = [gateway.origin, testLlmKey, model, pixelPng];
    expect(await runScript(script, { group: "python-google", parameters })).toEqual({
      made: ["cGljdHVyZQ=="],
      text: "Here it is.",
      tokens: expect.any(Number),
      changed: ["cGljdHVyZQ=="],
      streamed: ["cGljdHVyZQ=="],
      turns: [["cGljdHVyZQ=="], ["cGljdHVyZQ=="]],
    });
  },
  240_000,
);

/** A second of silence as a WAV. */
function wav(): Buffer {
  const bytes = Buffer.alloc(44 + 16_000);
  bytes.write("RIFF", 0, "latin1");
  bytes.writeUInt32LE(36 + 16_000, 4);
  bytes.write("WAVEfmt ", 8, "latin1");
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(8_000, 24);
  bytes.writeUInt32LE(16_000, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write("data", 36, "latin1");
  bytes.writeUInt32LE(16_000, 40);
  return bytes;
}

const formOf = (fields: readonly (readonly [string, string | File])[]): FormData => {
  const form = new FormData();
  for (const [name, value] of fields) form.append(name, value);
  return form;
};

/**
 * The requests of chat programs. Sources: open-webui routers/images.py and routers/audio.py,
 * LibreChat services/Files/Audio/STTService.js, TTSService.js and tools/structured/OpenAIImageTools.js
 * (2026-11).
 */
const rows: readonly {
  program: string;
  path: string;
  body: () => FormData | Record<string, unknown>;
  has: string;
}[] = [
  {
    program: "Open WebUI makes a picture",
    path: "/images/generations",
    body: () => ({
      model: "sandbox/image:free",
      prompt: "a cat",
      n: 1,
      size: "512x512",
      response_format: "b64_json",
    }),
    has: '"b64_json":"iVBOR',
  },
  {
    program: "Open WebUI changes a picture",
    path: "/images/edits",
    body: () =>
      formOf([
        ["model", "sandbox/image:free"],
        ["prompt", "a dog"],
        ["n", "1"],
        ["size", "512x512"],
        ["image", new File([pixel], "image.png", { type: "image/png" })],
      ]),
    has: '"b64_json":"iVBOR',
  },
  {
    program: "Open WebUI transcribes",
    path: "/audio/transcriptions",
    body: () =>
      formOf([
        ["model", "sandbox/transcribe:free"],
        ["language", "en"],
        ["file", new File([wav()], "recording.wav")],
      ]),
    has: '"text":',
  },
  {
    program: "Open WebUI speaks",
    path: "/audio/speech",
    body: () => ({ input: "Hello", model: "sandbox/speech:free", voice: "alloy" }),
    has: "",
  },
  {
    program: "LibreChat makes a picture",
    path: "/images/generations",
    body: () => ({
      model: "sandbox/image:free",
      prompt: "a cat",
      n: 1,
      background: "auto",
      output_format: "png",
      quality: "auto",
      size: "auto",
    }),
    has: '"b64_json":"iVBOR',
  },
  {
    program: "LibreChat changes two pictures",
    path: "/images/edits",
    body: () =>
      formOf([
        ["model", "sandbox/image:free"],
        ["prompt", "a dog"],
        ["quality", "auto"],
        ["size", "auto"],
        ["image[]", new File([pixel], "one.png", { type: "image/png" })],
        ["image[]", new File([pixel], "two.png", { type: "image/png" })],
      ]),
    has: '"b64_json":"iVBOR',
  },
  {
    // Its stream of a buffer has a name and no type of its own.
    program: "LibreChat transcribes",
    path: "/audio/transcriptions",
    body: () =>
      formOf([
        ["file", new File([wav()], "audio.wav", { type: "application/octet-stream" })],
        ["model", "sandbox/transcribe:free"],
      ]),
    has: '"text":',
  },
  {
    program: "LibreChat speaks",
    path: "/audio/speech",
    body: () => ({
      input: "Hello",
      model: "sandbox/speech:free",
      voice: "alloy",
      backend: "openai",
    }),
    has: "",
  },
];

test.each(rows)("$program", async ({ path, body, has }) => {
  const content = body();
  const isForm = content instanceof FormData;
  const answer = await fetch(gateway.baseUrl + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testLlmKey}`,
      ...(!isForm && { "content-type": "application/json" }),
    },
    body: isForm ? content : JSON.stringify(content),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  expect([answer.status, answer.status === 200 ? "" : bytes.toString()]).toEqual([200, ""]);
  if (has === "") expect(answer.headers.get("content-type")).toStartWith("audio/");
  else expect(bytes.toString()).toContain(has);
});

test("OpenAI's client streams a picture, a transcript and speech", async () => {
  const openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  const pictures = await openai.images.generate({
    model: "sandbox/image:free",
    prompt: "a cat",
    size: "512x512",
    stream: true,
    partial_images: 1,
  });
  const types: string[] = [];
  for await (const event of pictures) types.push(event.type);
  expect(types.at(-1)).toBe("image_generation.completed");
  const file = new File([wav()], "a.wav", { type: "audio/wav" });
  const transcript = await openai.audio.transcriptions.create({
    model: "sandbox/transcribe:free",
    file,
    stream: true,
  });
  const told: string[] = [];
  for await (const event of transcript) told.push(event.type);
  expect(told.at(-1)).toBe("transcript.text.done");
  const speech = await openai.audio.speech.create({
    model: "sandbox/speech:free",
    input: "Hello",
    voice: "alloy",
    response_format: "wav",
  });
  expect(
    Buffer.from(await speech.arrayBuffer())
      .subarray(0, 4)
      .toString(),
  ).toBe("RIFF");
});
