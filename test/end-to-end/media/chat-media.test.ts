import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, type TestGateway } from "../../support/gateway.ts";

const received: { path: string; body: Record<string, unknown> }[] = [];
const parts = [
  { text: "Here it is." },
  { thought: true, inlineData: { mimeType: "image/png", data: "ZHJhZnQ=" } },
  { inlineData: { mimeType: "image/png", data: "cGljdHVyZQ==" } },
];
const answer = {
  candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }],
  usageMetadata: {
    promptTokenCount: 10,
    candidatesTokenCount: 1_125,
    totalTokenCount: 1_135,
    candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1_120 }],
  },
};
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    received.push({ path: pathname, body: (await request.json()) as Record<string, unknown> });
    return pathname.includes("stream")
      ? new Response(`data: ${JSON.stringify(answer)}\n\n`, {
          headers: { "content-type": "text/event-stream" },
        })
      : Response.json(answer);
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [
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
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const cost = (10 * 2 + 5 * 12 + 1_120 * 120) / 1e6;
const picture = { type: "image_url", image_url: { url: "data:image/png;base64,cGljdHVyZQ==" } };
const ask = (more: object = {}) =>
  gateway.post("/chat/completions", {
    model: "goog/banana",
    messages: [{ role: "user", content: "a cat" }],
    modalities: ["image", "text"],
    image_config: { aspect_ratio: "16:9", image_size: "2K" },
    ...more,
  });

test("chat gets pictures of Gemini beside its text, at their own price", async () => {
  const response = await ask();
  const { choices, usage } = (await response.json()) as {
    choices: { message: { content: string; images: object[] } }[];
    usage: { cost: number; completion_tokens_details: { image_tokens: number } };
  };
  expect(choices[0]?.message).toMatchObject({ content: "Here it is.", images: [picture] });
  expect(choices[0]?.message.images).toHaveLength(1);
  expect(usage.cost).toBeCloseTo(cost, 9);
  expect(usage.completion_tokens_details.image_tokens).toBe(1_120);
  expect(response.headers.get("x-service-translation-loss")).toBeNull();
  expect(received.at(-1)?.body).toMatchObject({
    generationConfig: {
      responseModalities: ["IMAGE", "TEXT"],
      imageConfig: { aspectRatio: "16:9", imageSize: "2K" },
    },
  });
});

test("a stream has them in its deltas", async () => {
  const text = await (await ask({ stream: true })).text();
  expect(text.split('"images"').length - 1).toBe(1);
  expect(text).toContain("cGljdHVyZQ==");
  expect(text).not.toContain("ZHJhZnQ=");
});

test("Responses gets an item of image generation", async () => {
  const response = await gateway.post("/responses", { model: "goog/banana", input: "a cat" });
  const { output } = (await response.json()) as { output: { type: string; result?: string }[] };
  expect(output).toContainEqual(
    expect.objectContaining({ type: "image_generation_call", result: "cGljdHVyZQ==" }),
  );
});

test("Messages names the loss of a picture", async () => {
  const response = await gateway.post("/messages", {
    model: "goog/banana",
    max_tokens: 100,
    messages: [{ role: "user", content: "a cat" }],
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-service-translation-loss")).not.toBeNull();
});

test("sound goes to Gemini as a part, and a voice as its setting", async () => {
  await gateway.post("/chat/completions", {
    model: "goog/banana",
    messages: [
      {
        role: "user",
        content: [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }],
      },
    ],
    modalities: ["text", "audio"],
    audio: { voice: "Kore", format: "wav" },
  });
  expect(received.at(-1)?.body).toMatchObject({
    contents: [{ parts: [{ inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }] }],
    generationConfig: {
      responseModalities: ["TEXT", "AUDIO"],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Kore" } } },
    },
  });
});
