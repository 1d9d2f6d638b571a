import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import {
  mediaRefusals,
  mediaRules,
  type MediaRequest,
} from "../../support/strict-media/media-rules.ts";

/** An upstream that refuses what each vendor refuses, and answers everything else well. */
const refused: string[] = [];
async function readRequest(request: Request): Promise<MediaRequest> {
  const { pathname: path, searchParams: query } = new URL(request.url);
  const type = request.headers.get("content-type") ?? "";
  const isForm = type.startsWith("multipart/");
  const fields: Record<string, unknown> = {};
  if (isForm) {
    for (const [name, value] of await request.formData())
      fields[name.replace(/\[\]$/, "")] = typeof value === "string" ? value : (value as File).name;
  } else if (type.startsWith("application/json"))
    Object.assign(fields, (await request.json()) as object);
  else await request.arrayBuffer();
  return { path, query, headers: request.headers, fields, isForm };
}

const answerOf = ({ path }: MediaRequest): Response => {
  if (path.includes("/audio/speech") || path.includes("/speak") || path.includes("text-to-speech"))
    return new Response(new Uint8Array(100), { headers: { "content-type": "audio/mpeg" } });
  if (path.endsWith(":predict"))
    return Response.json({ predictions: [{ bytesBase64Encoded: "AAAA" }] });
  if (path.endsWith(":generateContent"))
    return Response.json({
      candidates: [
        {
          finishReason: "STOP",
          content: {
            parts: [{ text: "Hi" }, { inlineData: { mimeType: "image/png", data: "AAAA" } }],
          },
        },
      ],
    });
  if (path.includes("/images/")) return Response.json({ data: [{ b64_json: "AAAA" }] });
  if (path.endsWith("/listen"))
    return Response.json({ results: { channels: [{ alternatives: [{ transcript: "Hi" }] }] } });
  return Response.json({ text: "Hi" });
};

const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const vendor = new URL(request.url).pathname.split("/")[1] ?? "";
    const read = await readRequest(request);
    const [rule] = mediaRefusals(vendor, read);
    if (rule === undefined) return answerOf(read);
    refused.push(`${vendor}/${rule.id}`);
    return Response.json({ error: { message: rule.id } }, { status: rule.status });
  },
});

type Surface = "images" | "transcriptions" | "speech";
const prices = {
  images: { image: "0.01" },
  transcriptions: { audio_input_minute: "0.01" },
  speech: { characters: "15" },
};
const vendors: Record<
  string,
  { dialect: Partial<Record<Surface, string>>; models: Partial<Record<Surface, readonly string[]>> }
> = {
  openai: {
    dialect: { images: "openai-images", transcriptions: "openai-audio", speech: "openai-audio" },
    models: {
      images: ["gpt-image-2", "gpt-image-1.5"],
      transcriptions: ["whisper-1", "gpt-4o-transcribe"],
      speech: ["tts-1"],
    },
  },
  xai: { dialect: { images: "openai-images" }, models: { images: ["grok-imagine-image"] } },
  together: {
    dialect: { images: "openai-images" },
    models: { images: ["black-forest-labs/FLUX.1"] },
  },
  google: {
    dialect: { images: "google-images", transcriptions: "google-audio" },
    models: { images: ["imagen-4", "gemini-3-pro-image"], transcriptions: ["gemini-2.5-flash"] },
  },
  deepgram: {
    dialect: { transcriptions: "deepgram", speech: "deepgram" },
    models: { transcriptions: ["nova-3"], speech: ["aura-2-thalia-en"] },
  },
  elevenlabs: {
    dialect: { transcriptions: "elevenlabs", speech: "elevenlabs" },
    models: { transcriptions: ["scribe_v1"], speech: ["eleven_v3"] },
  },
};

const idOf = (vendor: string, model: string): string =>
  `${vendor}-x/${model.replaceAll("/", "-")}`.toLowerCase();
const cases = Object.entries(vendors).flatMap(([vendor, { models }]) =>
  (Object.entries(models) as [Surface, readonly string[]][]).flatMap(([surface, names]) =>
    names.map((name) => [vendor, surface, name] as const),
  ),
);

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: Object.entries(vendors).map(([vendor, { dialect }]) =>
      provider({
        id: vendor,
        base_url: `http://127.0.0.1:${upstream.port}/${vendor}`,
        api_key: "k",
        dialect,
        models: cases
          .filter(([each]) => each === vendor)
          .map(([, surface, name]) => ({
            id: idOf(vendor, name),
            upstream_model: name,
            surface,
            pricing: prices[surface],
          })),
      }),
    ),
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const form = (fields: Record<string, string>): FormData => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  data.append("file", new File([new Uint8Array(2_000)], "speech.wav", { type: "audio/wav" }));
  return data;
};
const postForm = (path: string, body: FormData) =>
  fetch(gateway.baseUrl + path, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body,
  });

/** Requests of every kind that clients send, by surface. */
const requests: Record<Surface, ((model: string) => Promise<Response>)[]> = {
  images: [
    { n: 2, size: "1024x1024", quality: "high" },
    { response_format: "b64_json", style: "vivid", user: "u1" },
    { background: "opaque", output_format: "jpeg", output_compression: 80, moderation: "low" },
    { input_fidelity: "high", images: [{ image_url: `data:image/png;base64,${png}` }] },
    { seed: 7, negative_prompt: "x" },
  ].map(
    (more) => (model: string) =>
      gateway.post(
        "images" in more ? "/images/edits" : "/images/generations",
        // Servers of OpenAI's form are sent unknown members as they are, so OpenAI is not asked for these.
        { model, prompt: "a cat", ...("seed" in more && model.startsWith("openai") ? {} : more) },
      ),
  ),
  transcriptions: [
    {},
    { response_format: "srt", language: "en" },
    { response_format: "verbose_json", "timestamp_granularities[]": "word" },
    { response_format: "text", prompt: "names", temperature: "0" },
  ].map(
    (more) => (model: string) =>
      postForm("/audio/transcriptions", form({ model, ...more } as Record<string, string>)),
  ),
  speech: [
    {},
    { response_format: "wav" },
    { instructions: "calm", speed: 1.5 },
    { stream_format: "sse" },
  ].map(
    (more) => (model: string) =>
      gateway.post("/audio/speech", { model, input: "Hello", voice: "alloy", ...more }),
  ),
};

test.each(cases)("%s takes every request of %s for %s", async (vendor, surface, name) => {
  for (const ask of requests[surface]) {
    const response = await ask(idOf(vendor, name));
    const body = await response.text();
    // What the gateway itself refuses never reaches the vendor.
    if (response.status >= 500 || refused.length > 0) throw new Error(`${response.status} ${body}`);
  }
  expect(refused).toEqual([]);
});

test("every rule names its source", () => {
  expect(mediaRules.every(({ source }) => source.length > 10)).toBe(true);
});
