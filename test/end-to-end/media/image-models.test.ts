import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { OpenRouterClient } from "../clients/adapters/openrouter-sdk.ts";
import { pixelPng } from "../clients/support/pixel-png.ts";

const received: { path: string; json: Record<string, unknown> }[] = [];
const pixels = (): Response => Response.json({ created: 7, data: [{ b64_json: pixelPng }] });
let answer: () => Response = pixels;
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const json = (await request.json()) as Record<string, unknown>;
    received.push({ path: new URL(request.url).pathname, json });
    return answer();
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  const vendor = (id: string, more: object, models: readonly (readonly [string, object])[]) =>
    provider({
      id,
      base_url: `http://127.0.0.1:${upstream.port}/${id}`,
      api_key: "k",
      dialect: { images: "openai-images" },
      ...more,
      models: models.map(([name, pricing]) => ({
        id: `acme/${name}`,
        upstream_model: name,
        surface: "images",
        capabilities: ["image-generation", "image-editing"],
        pricing,
      })),
    });
  const table = { "1024x1024": { low: "0.01", high: "0.04" }, default: "0.08" };
  const tokens = { prompt: "5", image_input: "8", image_output: "30" };
  gateway = await startGateway({
    sandbox: true,
    aliases: { painter: "acme/gpt-image-2" },
    providers: [
      vendor("one", {}, [
        ["gpt-image-2", tokens],
        ["gpt-image-1.5", tokens],
      ]),
      vendor("two", { data_policy: { zdr: true } }, [
        ["gpt-image-2", { image: table, request: "0.001" }],
      ]),
      vendor("grok", { like: "xai" }, [["grok-imagine-image", { image: "0.02" }]]),
      vendor("goog", { dialect: { images: "google-images" } }, [
        ["gemini-3-pro-image", { prompt: "2", image_output: "120" }],
        ["imagen-4.0-generate-001", { image: "0.04" }],
      ]),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop(true);
});

const ask = (body: object, path = "/images") => gateway.post(path, { prompt: "x", ...body });
const lossOf = (response: Response): string | null =>
  response.headers.get("x-service-translation-loss");
const last = (): Record<string, unknown> => received.at(-1)?.json ?? {};

interface OpenRouterImages {
  images: {
    listModels(): Promise<{ data: { id: string; endpoints: string }[] }>;
    listModelEndpoints(asked: { author: string; slug: string }): Promise<{
      id: string;
      endpoints: { providerSlug: string }[];
    }>;
  };
}

const client = (): OpenRouterImages =>
  new OpenRouterClient({
    apiKey: testLlmKey,
    serverURL: gateway.baseUrl,
    retryConfig: { strategy: "none" },
  }) as unknown as OpenRouterImages;

test("OpenRouter's client lists the models that make pictures, and what each takes", async () => {
  const { data } = await client().images.listModels();
  const ids = data.map(({ id }) => id).filter((id) => /^acme|^sandbox|^painter/.test(id));
  expect(ids).toEqual([
    "acme/gemini-3-pro-image",
    "acme/gpt-image-1.5",
    "acme/gpt-image-2",
    "acme/grok-imagine-image",
    "acme/imagen-4.0-generate-001",
    "painter",
    "sandbox/image:free",
  ]);
  const of = (id: string): unknown => data.find((model) => model.id === id);
  expect(of("acme/gpt-image-2")).toMatchObject({
    architecture: { inputModalities: ["text", "image"], outputModalities: ["image"] },
    endpoints: "/api/v1/images/models/acme/gpt-image-2/endpoints",
    supportsStreaming: true,
    supportedParameters: {
      n: { type: "range", min: 1, max: 10 },
      resolution: { type: "enum", values: ["512", "1K", "2K", "4K"] },
      quality: { type: "enum", values: ["auto", "low", "medium", "high"] },
      output_compression: { type: "range", min: 0, max: 100 },
      input_references: { type: "range", min: 0, max: 16 },
    },
  });
  expect(of("acme/gpt-image-1.5")).toMatchObject({
    supportedParameters: { aspect_ratio: { values: ["auto", "1:1", "3:2", "2:3"] } },
  });
  expect(of("acme/imagen-4.0-generate-001")).toMatchObject({ supportsStreaming: false });
  expect(of("painter")).toMatchObject({
    endpoints: "/api/v1/images/models/acme/gpt-image-2/endpoints",
  });
});

test("OpenRouter's client shows the providers of a model, with each price", async () => {
  const asked = { author: "acme", slug: "gpt-image-2" };
  const { id, endpoints } = await client().images.listModelEndpoints(asked);
  const ordered = endpoints.sort((a, b) => a.providerSlug.localeCompare(b.providerSlug));
  expect({ id, endpoints: ordered }).toMatchObject({
    id: "acme/gpt-image-2",
    endpoints: [
      {
        providerSlug: "one",
        providerTag: "one",
        supportsStreaming: true,
        allowedPassthroughParameters: [],
        pricing: [
          { billable: "input_text", unit: "token", costUsd: 0.000005 },
          { billable: "input_image", unit: "token", costUsd: 0.000008 },
          { billable: "output_image", unit: "token", costUsd: 0.00003 },
        ],
      },
      {
        providerSlug: "two",
        pricing: [
          { billable: "output_image", unit: "request", costUsd: 0.001 },
          { billable: "output_image", unit: "image", costUsd: 0.01, variant: "1024x1024 low" },
          { billable: "output_image", unit: "image", costUsd: 0.04, variant: "1024x1024 high" },
          { billable: "output_image", unit: "image", costUsd: 0.08 },
        ],
      },
    ],
  });
});

test("a key sees only what it may use, and strangers what the service offers", async () => {
  const made = await gateway.post(
    "/keys",
    { name: "one model", allowed_models: ["acme/gpt-image-1.5"] },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const { key } = (await made.json()) as { key: string };
  const listed = await gateway.get("/images/models", {
    authorization: `Bearer ${key}`,
  });
  expect(await listed.json()).toMatchObject({ data: [{ id: "acme/gpt-image-1.5" }] });
  const path = "/images/models/acme/gpt-image-2/endpoints";
  const open = await fetch(gateway.baseUrl + path);
  expect([open.status, ((await open.json()) as { endpoints: object[] }).endpoints.length]).toEqual([
    200, 2,
  ]);
  for (const id of ["sandbox/chat:free", "acme/none"])
    expect((await gateway.get(`/images/models/${id}/endpoints`)).status).toBe(404);
});

test.each<[model: string, ratio: string, sent: unknown, loss: string | null]>([
  ["acme/gemini-3-pro-image", "16:9", "16:9", null],
  ["acme/gemini-3-pro-image", "2.35:1", "21:9", "aspect_ratio"],
  ["acme/gemini-3-pro-image", "auto", undefined, null],
  ["acme/imagen-4.0-generate-001", "3:2", "4:3", "aspect_ratio"],
  ["acme/grok-imagine-image", "9:19.5", "9:19.5", null],
  ["acme/grok-imagine-image", "5:4", "4:3", "aspect_ratio"],
  ["acme/grok-imagine-image", "wide", undefined, "aspect_ratio"],
  ["acme/gpt-image-2", "19.5:9", undefined, null],
  ["acme/gpt-image-2", "auto", undefined, null],
])("%s is asked for %s as it knows ratios", async (model, ratio, sent, loss) => {
  const predicted = { predictions: [{ bytesBase64Encoded: pixelPng }] };
  const drawn = { inlineData: { mimeType: "image/png", data: pixelPng } };
  const candidates = [{ content: { parts: [drawn] }, finishReason: "STOP" }];
  answer = () => Response.json({ data: [{ b64_json: pixelPng }], ...predicted, candidates });
  const response = await ask({ model, aspect_ratio: ratio });
  expect([response.status, lossOf(response)]).toEqual([
    200,
    loss === null ? null : expect.stringContaining(loss),
  ]);
  const {
    generationConfig,
    parameters,
    aspect_ratio: own,
  } = last() as {
    generationConfig?: { imageConfig?: { aspectRatio?: string } };
    parameters?: { aspectRatio?: string };
    aspect_ratio?: string;
  };
  expect(
    own ?? generationConfig?.imageConfig?.aspectRatio ?? (parameters?.aspectRatio as unknown),
  ).toBe(sent);
});

test("a ratio that contradicts the pixels is refused", async () => {
  const before = received.length;
  const body = { model: "acme/gpt-image-2", size: "1024x1024" };
  const response = await ask({ ...body, aspect_ratio: "16:9" });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param: "aspect_ratio" } });
  expect(received.length).toBe(before);
  answer = pixels;
  expect((await ask({ ...body, aspect_ratio: "1:1" })).status).toBe(200);
});

test.each([
  [Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>").toString("base64"), "image/svg+xml"],
  [Buffer.from("ffd8ffe000104a464946", "hex").toString("base64"), "image/jpeg"],
  [Buffer.from("RIFF0000WEBPVP8 ").toString("base64"), "image/webp"],
])("a picture is named and hosted as what it is", async (base64, type) => {
  answer = () => Response.json({ data: [{ b64_json: base64 }] });
  const named = await ask({ model: "acme/gpt-image-2" });
  expect(await named.json()).toMatchObject({ data: [{ media_type: type }] });
  const linked = await ask(
    { model: "acme/gpt-image-2", response_format: "url" },
    "/images/generations",
  );
  const { data } = (await linked.json()) as { data: { url: string }[] };
  const hosted = await fetch(gateway.origin + new URL(data[0]?.url ?? "").pathname);
  expect([hosted.status, hosted.headers.get("content-type")]).toEqual([200, type]);
});

const recordOf = async (response: Response): Promise<Record<string, unknown>> => {
  const id = `gen_${response.headers.get("x-service-trace-id")}`;
  const found = async () => {
    const record = await gateway.get(`/generation?id=${id}`);
    return record.status === 200
      ? ((await record.json()) as { data: Record<string, unknown> }).data
      : undefined;
  };
  let record = await found();
  await pollUntil(async () => (record = await found()) !== undefined);
  return record ?? {};
};

const event = (type: string, more: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: pixelPng, ...more })}\n\n`;
const draft = event("image_generation.partial_image", { partial_image_index: 0 });
const asStream = { headers: { "content-type": "text/event-stream" } };
const streamed = { model: "acme/gpt-image-2", stream: true, partial_images: 2, n: 1 };

test("a client that leaves with a draft pays for the picture", async () => {
  answer = () =>
    new Response(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode(draft)),
      }),
      asStream,
    );
  const body = { ...streamed, size: "1024x1024", quality: "low", provider: { only: ["two"] } };
  const response = await ask(body, "/images/generations");
  const reader = response.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  expect(await recordOf(response)).toMatchObject({ status: "cancelled", total_cost: 0.011 });
});

test.each([
  ["with it", 0],
  ["later", 20],
])("a provider that fails behind a draft is not replaced: %s", async (_, ms) => {
  const failed = { error: { message: "blocked", code: "moderation_blocked" } };
  answer = () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          const write = (text: string): void => controller.enqueue(new TextEncoder().encode(text));
          if (ms > 0) write(draft);
          await Bun.sleep(ms);
          write(ms > 0 ? event("error", failed) : draft + event("error", failed));
          controller.close();
        },
      }),
      asStream,
    );
  const before = received.length;
  const body = { ...streamed, provider: { order: ["one", "two"] } };
  const response = await ask(body, "/images/generations");
  expect(await response.text()).toContain("blocked");
  expect(received.slice(before).map(({ path }) => path)).toEqual(["/one/images/generations"]);
  expect(await recordOf(response)).toMatchObject({ total_cost: 0 });
});

test("a preset sets background and format", async () => {
  const config = { model: "acme/gpt-image-2", background: "transparent", format: "webp" };
  const made = await gateway.post(
    "/presets",
    { name: "Sticker", slug: "sticker", config },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  expect(made.status).toBeLessThan(300);
  answer = pixels;
  for (const path of ["/images/generations", "/images"]) {
    expect((await ask({ model: "@preset/sticker" }, path)).status).toBe(200);
    expect(last()).toMatchObject({ background: "transparent", output_format: "webp" });
  }
  await ask({ model: "@preset/sticker", output_format: "png" }, "/images/generations");
  expect(last()).toMatchObject({ output_format: "png" });
});
