import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";

/** A PNG of one pixel. */
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const base64 = png.toString("base64");

interface Received {
  path: string;
  headers: Headers;
  json: Record<string, unknown> | undefined;
  form: FormData | undefined;
}

const received: Received[] = [];
let answer: (request: Received) => Response | Promise<Response> = () => Response.json({});
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/hosted.png")
      return new Response(png, { headers: { "content-type": "image/png" } });
    const isForm = request.headers.get("content-type")?.startsWith("multipart/") === true;
    const got: Received = {
      path: pathname,
      headers: request.headers,
      json: isForm ? undefined : ((await request.json()) as Record<string, unknown>),
      form: isForm ? ((await request.formData()) as FormData) : undefined,
    };
    received.push(got);
    return answer(got);
  },
});
const origin = `http://127.0.0.1:${upstream.port}`;

const table = { "1024x1024": { low: "0.01", high: "0.04" }, "1536x1024": { high: "0.08" } };
const tokens = { prompt: "5", image_input: "8", image_output: "30" };

let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  const model = (id: string, upstreamModel: string, pricing: object) => ({
    id,
    upstream_model: upstreamModel,
    surface: "images",
    pricing,
  });
  gateway = await startGateway({
    sandbox: true,
    providers: [
      provider({
        id: "acme",
        base_url: `${origin}/v1`,
        api_key: "upstream-secret",
        dialect: { images: "openai-images" },
        models: [
          model("acme/pixels", "pixels-1", { image: table }),
          model("acme/gpt", "gpt-image-2", tokens),
          model("acme/gpt-1", "gpt-image-1.5", tokens),
          model("acme/gpt-piece", "gpt-image-2", { image: "0.04" }),
          model("acme/dall-e-3", "dall-e-3", { image: "0.04" }),
        ],
      }),
      provider({
        id: "grok",
        like: "xai",
        base_url: `${origin}/xai/v1`,
        api_key: "xai-secret",
        dialect: { images: "openai-images" },
        models: [model("grok/imagine", "grok-imagine-image", { image: "0.02" })],
      }),
      provider({
        id: "goog",
        base_url: `${origin}/g`,
        api_key: "google-secret",
        dialect: { images: "google-images" },
        models: [
          model("goog/imagen", "imagen-4.0-generate-001", { image: "0.04" }),
          model("goog/banana", "gemini-3-pro-image", {
            prompt: "2",
            completion: "12",
            image_output: "120",
          }),
        ],
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
const costOf = (result: unknown): number => (result as { usage: { cost: number } }).usage.cost;
const pixels = (count = 1, more: object = {}): Response =>
  Response.json({
    created: 7,
    data: Array.from({ length: count }, () => ({ b64_json: base64 })),
    ...more,
  });

test("generations charge each picture at its size and quality", async () => {
  answer = () => pixels(2);
  const result = await client.images.generate({
    model: "acme/pixels",
    prompt: "a cat",
    n: 2,
    size: "1024x1024",
    quality: "low",
  });
  expect(result.data).toEqual([{ b64_json: base64 }, { b64_json: base64 }]);
  expect(result.created).toBe(7);
  expect(costOf(result)).toBe(0.02);
  expect(last()).toMatchObject({
    path: "/v1/images/generations",
    json: { model: "pixels-1", prompt: "a cat", n: 2, size: "1024x1024", quality: "low" },
  });
  expect(last().headers.get("authorization")).toBe("Bearer upstream-secret");
});

test("an answer's own quality takes precedence, and an open one costs the dearest", async () => {
  answer = () => pixels(1, { size: "1024x1024", quality: "low" });
  expect(costOf(await client.images.generate({ model: "acme/pixels", prompt: "x" }))).toBe(0.01);
  answer = () => pixels();
  expect(costOf(await client.images.generate({ model: "acme/pixels", prompt: "x" }))).toBe(0.08);
});

test.each([
  [{ total_tokens: 1100, input_tokens: 100, output_tokens: 1000 }, 0.0305],
  [
    {
      total_tokens: 1300,
      input_tokens: 300,
      input_tokens_details: { text_tokens: 100, image_tokens: 200 },
      output_tokens: 1000,
      output_tokens_details: { text_tokens: 0, image_tokens: 1000 },
    },
    0.0005 + 0.0016 + 0.03,
  ],
])("charges tokens of pictures as such: %j", async (usage, cost) => {
  answer = () => pixels(1, { usage });
  const result = await client.images.generate({ model: "acme/gpt", prompt: "a cat" });
  expect(costOf(result)).toBeCloseTo(cost, 9);
  expect(result.usage).toMatchObject({ output_tokens: 1000 });
});

test("the hold is what the pictures may cost, and a balance below it refuses", async () => {
  answer = () => pixels(1);
  const before = received.length;
  const keys = await fetch(`${gateway.baseUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "small", limit: 0.05 }),
  });
  const { key } = (await keys.json()) as { key: string };
  const poor = new OpenAI({ baseURL: gateway.baseUrl, apiKey: key, maxRetries: 0 });
  const refused = poor.images.generate({
    model: "acme/pixels",
    prompt: "x",
    size: "1024x1024",
    quality: "high",
    n: 2,
  });
  expect(await refused.catch((error: unknown) => error)).toMatchObject({ status: 402 });
  expect(received.length).toBe(before);
  const served = await poor.images.generate({
    model: "acme/pixels",
    prompt: "x",
    size: "1024x1024",
    quality: "high",
  });
  expect(costOf(served)).toBe(0.04);
});

test("a stream passes partial pictures on and ends with the charge", async () => {
  const event = (data: { type: string }): string =>
    `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  answer = () =>
    new Response(
      event({
        type: "image_generation.partial_image",
        b64_json: "AAAA",
        partial_image_index: 0,
      } as never) +
        event({
          type: "image_generation.completed",
          b64_json: base64,
          usage: { input_tokens: 10, output_tokens: 100, total_tokens: 110 },
        } as never),
      { headers: { "content-type": "text/event-stream" } },
    );
  const stream = await client.images.generate({
    model: "acme/gpt",
    prompt: "a cat",
    stream: true,
    partial_images: 1,
  });
  const events = await Array.fromAsync(stream);
  expect(events.map(({ type }) => type)).toEqual([
    "image_generation.partial_image",
    "image_generation.completed",
  ]);
  expect(costOf(events[1])).toBeCloseTo(0.00305, 9);
  expect(last().json).toMatchObject({ stream: true, partial_images: 1 });
});

test("a stream that its provider ignores becomes one all the same", async () => {
  answer = () => pixels();
  const stream = await client.images.generate({ model: "acme/gpt", prompt: "a cat", stream: true });
  const events = await Array.fromAsync(stream);
  expect(events).toMatchObject([
    {
      type: "image_generation.completed",
      b64_json: base64,
      created_at: 7,
      size: "auto",
      quality: "auto",
      background: "auto",
      output_format: "png",
    },
  ]);
});

test("edits send files with their names and types", async () => {
  answer = () => pixels();
  const result = await client.images.edit({
    model: "acme/gpt-1",
    prompt: "a hat",
    image: [
      await toFile(png, "cat.png", { type: "image/png" }),
      await toFile(png, "a dog ü.png", { type: "image/png" }),
    ],
    mask: await toFile(png, "mask.png", { type: "image/png" }),
    input_fidelity: "high",
  });
  expect(result.data).toHaveLength(1);
  const { form, path } = last();
  expect(path).toBe("/v1/images/edits");
  const files = form?.getAll("image[]") as File[];
  expect(files.map(({ name, type }) => [name, type])).toEqual([
    ["cat.png", "image/png"],
    ["a dog ü.png", "image/png"],
  ]);
  expect(Buffer.from(await (files[0] as File).arrayBuffer()).equals(png)).toBe(true);
  expect(form?.get("input_fidelity")).toBe("high");
  expect((form?.get("mask") as File).name).toBe("mask.png");
});

test("variations go to their own path", async () => {
  answer = () => pixels();
  await client.images.createVariation({
    model: "acme/pixels",
    image: await toFile(png, "cat.png", { type: "image/png" }),
  });
  expect(last().path).toBe("/v1/images/variations");
});

test("edits take JSON with data URLs", async () => {
  answer = () => pixels();
  const response = await gateway.post("/images/edits", {
    model: "acme/gpt",
    prompt: "a hat",
    images: [{ image_url: `data:image/png;base64,${base64}` }],
  });
  expect(response.status).toBe(200);
  expect((last().form?.get("image") as File).type).toBe("image/png");
});

test("edits take files of the workspace by their ids", async () => {
  answer = () => pixels();
  const { id } = await client.files.create({
    file: await toFile(png, "cat.png", { type: "image/png" }),
    purpose: "vision",
  });
  const edit = (fileId: string) =>
    gateway.post("/images/edits", {
      model: "acme/gpt",
      prompt: "a hat",
      images: [{ file_id: fileId }],
    });
  expect((await edit(id)).status).toBe(200);
  const file = last().form?.get("image") as File;
  expect([file.name, file.type]).toEqual(["cat.png", "image/png"]);
  expect(Buffer.from(await file.arrayBuffer()).equals(png)).toBe(true);
  const foreign = await edit("file-01a223fceafa00023773c90d6235589e");
  expect(foreign.status).toBe(404);
  expect(await foreign.json()).toMatchObject({ error: { param: "images[0]" } });
});

test("pictures come by an address of the gateway where one is asked for", async () => {
  answer = () => pixels();
  const result = await client.images.generate({
    model: "acme/pixels",
    prompt: "x",
    response_format: "url",
  });
  const url = result.data?.[0]?.url ?? "";
  expect(url).toStartWith("http://127.0.0.1/api/v1/images/content/");
  const fetched = await fetch(url.replace("http://127.0.0.1/api/v1", gateway.baseUrl));
  expect(fetched.headers.get("content-type")).toBe("image/png");
  expect(Buffer.from(await fetched.arrayBuffer()).equals(png)).toBe(true);
});

test("a provider's address becomes base64 or an address of the gateway", async () => {
  answer = () => Response.json({ created: 1, data: [{ url: `${origin}/hosted.png` }] });
  const inline = await client.images.generate({
    model: "acme/pixels",
    prompt: "x",
    response_format: "b64_json",
  });
  expect(inline.data).toEqual([{ b64_json: base64 }]);
  const linked = await client.images.generate({ model: "acme/pixels", prompt: "x" });
  expect(linked.data?.[0]?.url).toStartWith("http://127.0.0.1/api/v1/images/content/");
});

test("xAI is asked by aspect ratio, and the loss is named", async () => {
  answer = () => pixels();
  const response = await gateway.post("/images/generations", {
    model: "grok/imagine",
    prompt: "x",
    size: "1536x1024",
    quality: "high",
  });
  expect(last().json).toEqual({
    model: "grok-imagine-image",
    prompt: "x",
    aspect_ratio: "3:2",
    response_format: "b64_json",
  });
  expect(response.headers.get("x-service-translation-loss")).toBe("size, quality");
  expect(costOf(await response.json())).toBe(0.02);
});

test("Imagen is asked by predict; fewer predictions are charged as fewer", async () => {
  answer = () =>
    Response.json({ predictions: [{ bytesBase64Encoded: base64, mimeType: "image/png" }] });
  const result = await client.images.generate({
    model: "goog/imagen",
    prompt: "x",
    n: 2,
    size: "1024x1024",
  });
  expect(last()).toMatchObject({
    path: "/g/models/imagen-4.0-generate-001:predict",
    json: { instances: [{ prompt: "x" }], parameters: { sampleCount: 2, aspectRatio: "1:1" } },
  });
  expect(last().headers.get("x-goog-api-key")).toBe("google-secret");
  expect(costOf(result)).toBe(0.04);
});

test("Gemini is asked once for each picture, and drafts are not shown", async () => {
  const before = received.length;
  answer = () =>
    Response.json({
      candidates: [
        {
          finishReason: "STOP",
          content: {
            parts: [
              { thought: true, inlineData: { mimeType: "image/png", data: "AAAA" } },
              { inlineData: { mimeType: "image/png", data: base64 } },
            ],
          },
        },
      ],
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 1120,
        thoughtsTokenCount: 100,
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1120 }],
      },
    });
  const result = await client.images.generate({ model: "goog/banana", prompt: "x", n: 2 });
  expect(received.length - before).toBe(2);
  expect(result.data).toEqual([{ b64_json: base64 }, { b64_json: base64 }]);
  expect(costOf(result)).toBeCloseTo(2 * (0.00002 + 0.1344 + 0.0012), 9);
  const streamed = await client.images.generate({
    model: "goog/banana",
    prompt: "x",
    n: 2,
    stream: true,
    response_format: "url",
  });
  const completed = { type: "image_generation.completed", b64_json: base64, size: "auto" };
  expect(await Array.fromAsync(streamed)).toMatchObject([completed, completed]);
});

test("a picture that fails leaves the others, which alone are charged", async () => {
  let asked = 0;
  answer = () => {
    asked += 1;
    if (asked === 2) return Response.json({ error: { message: "no" } }, { status: 500 });
    const parts = [{ inlineData: { mimeType: "image/png", data: base64 } }];
    return Response.json({
      candidates: [{ finishReason: "STOP", content: { parts } }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1000 },
    });
  };
  const result = await client.images.generate({ model: "goog/banana", prompt: "x", n: 3 });
  expect(result.data?.length).toBe(2);
  expect(costOf(result)).toBeCloseTo(2 * (0.00002 + 0.12), 9);
});

test("a withheld picture is an error that says why, and costs nothing", async () => {
  answer = () => Response.json({ predictions: [{ raiFilteredReason: "not this" }] });
  const response = await gateway.post("/images/generations", { model: "goog/imagen", prompt: "x" });
  expect(response.ok).toBe(false);
  expect(JSON.stringify(await response.json())).toContain("not this");
});

test("OpenRouter's form has its own answer", async () => {
  answer = () => pixels(1, { usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } });
  const response = await gateway.post("/images", {
    model: "acme/gpt",
    prompt: "x",
    resolution: "1K",
  });
  expect(await response.json()).toMatchObject({
    data: [{ b64_json: base64, media_type: "image/png" }],
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  });
});

test.each([
  ["acme/gpt", { aspect_ratio: "16:9" }, { size: "1360x768" }, null],
  ["acme/gpt", { aspect_ratio: "16:9", resolution: "4K" }, { size: "3840x2160" }, null],
  ["acme/gpt", { aspect_ratio: "1:1", resolution: "2K", seed: 4 }, { size: "2048x2048" }, "seed"],
  ["acme/gpt", { size: "2K" }, { size: "2048x2048" }, null],
  ["acme/gpt-1", { aspect_ratio: "16:9" }, { size: "1536x1024" }, "aspect_ratio"],
  ["acme/gpt", { aspect_ratio: "3:1" }, { size: "1728x576" }, null],
  ["acme/gpt", { aspect_ratio: "1:8" }, { size: "576x1728" }, "aspect_ratio"],
  ["acme/gpt", { aspect_ratio: "wide" }, {}, "aspect_ratio"],
])("OpenAI's %s is asked for pixels in place of %j", async (model, asked, sent, loss) => {
  answer = () => pixels();
  const response = await gateway.post("/images", { model, prompt: "x", ...asked });
  expect([response.status, response.headers.get("x-service-translation-loss")]).toEqual([
    200,
    loss,
  ]);
  expect(last().json).toEqual({ model: expect.any(String), prompt: "x", ...sent });
});

test("the author of an SVG is charged beside the picture, and refused without a price", async () => {
  const usage = { input_tokens: 100, output_tokens: 1_000, total_tokens: 1_100 };
  const svg_usage = { input_tokens: 200, output_tokens: 400, reasoning_tokens: 100, model: "m" };
  answer = () => pixels(1, { usage, svg_usage });
  const asked = { prompt: "x", output_format: "svg" } as const;
  const made = await client.images.generate({ model: "acme/gpt", ...asked });
  expect(made).toMatchObject({ usage, svg_usage });
  expect(costOf(made)).toBeCloseTo(0.0305 + (200 * 5 + 400 * 30) / 1e6, 9);
  const before = received.length;
  const refused = await gateway.post("/images/generations", { model: "acme/gpt-piece", ...asked });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { param: "output_format", message: expect.stringContaining("pricing.image_output") } },
  ]);
  expect(received.length).toBe(before);
});

test("the end user of an answer has the caller's own id", async () => {
  answer = ({ json, form }) =>
    pixels(1, { safety_identifier: json?.["safety_identifier"] ?? form?.get("user") });
  const made = await client.images.generate({
    model: "acme/gpt",
    prompt: "x",
    safety_identifier: "person-1",
  });
  expect(made.safety_identifier).toBe("person-1");
  expect(last().json?.["safety_identifier"]).not.toBe("person-1");
  const image = await toFile(png, "cat.png", { type: "image/png" });
  const edited = await client.images.edit({ model: "acme/gpt", prompt: "x", image, user: "p-2" });
  expect(edited.safety_identifier).toBe("p-2");
  expect(last().form?.get("user")).not.toBe("p-2");
});

test("a model without streams is asked for a whole answer, which becomes a stream", async () => {
  answer = () => pixels();
  const stream = await client.images.generate({
    model: "acme/dall-e-3",
    prompt: "a cat",
    stream: true,
  });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  expect(types).toEqual(["image_generation.completed"]);
  // Events have base64, and this model answers with an address otherwise.
  expect(last().json).toEqual({
    model: "dall-e-3",
    prompt: "a cat",
    response_format: "b64_json",
  });
});

test("refuses an empty file, another format and a bomb of pixels", async () => {
  const bomb = Buffer.from(png);
  bomb.writeUInt32BE(60_000, 16);
  bomb.writeUInt32BE(60_000, 20);
  for (const [bytes, status] of [
    [Buffer.alloc(0), 400],
    [Buffer.from("text"), 400],
    [bomb, 413],
  ] as const) {
    const edit = client.images.edit({
      model: "acme/gpt",
      prompt: "x",
      image: await toFile(bytes, "a.png", { type: "image/png" }),
    });
    expect(await edit.catch((error: unknown) => error)).toMatchObject({ status });
  }
});

test("an Idempotency-Key repeats the answer without a second charge", async () => {
  answer = () => pixels();
  const before = received.length;
  const ask = () =>
    gateway.post(
      "/images/generations",
      { model: "acme/pixels", prompt: "once" },
      { headers: { "idempotency-key": "one" } },
    );
  const [first, second] = [await ask(), await ask()];
  expect(await second.json()).toEqual(await first.json());
  expect(second.headers.get("idempotent-replayed")).toBe("true");
  expect(received.length - before).toBe(1);
});

test("a chat model is refused, and a model of pictures on chat", async () => {
  const response = await gateway.post("/chat/completions", {
    model: "acme/gpt",
    messages: [{ role: "user", content: "hi" }],
  });
  expect(response.status).toBe(404);
});

test("the sandbox makes a picture", async () => {
  const result = await client.images.generate({
    model: "sandbox/image:free",
    prompt: "a cat",
    n: 2,
  });
  const bytes = Buffer.from(result.data?.[0]?.b64_json ?? "", "base64");
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
  const again = await client.images.generate({
    model: "sandbox/image:free",
    prompt: "a cat",
    n: 2,
  });
  expect(again.data?.[0]).toEqual(result.data?.[0] as object);
});

test("edits and masks name stored files by their id, of this workspace alone", async () => {
  const stored = await client.files.create({
    file: await toFile(png, "cat.png", { type: "image/png" }),
    purpose: "vision",
  });
  answer = () => Response.json({ created: 1, data: [{ b64_json: base64 }] });
  const body = {
    model: "acme/gpt",
    prompt: "a hat",
    images: [{ file_id: stored.id }, { file_id: stored.id }],
    mask: { file_id: stored.id },
  };
  const edited = await gateway.post("/images/edits", body);
  expect([edited.status, await edited.text()]).toEqual([200, expect.stringContaining(base64)]);
  const form = received.at(-1)?.form;
  const sent = [...(form?.getAll("image") ?? []), ...(form?.getAll("image[]") ?? [])] as File[];
  expect(sent.map(({ name, size }) => [name, size])).toEqual([
    ["cat.png", png.byteLength],
    ["cat.png", png.byteLength],
  ]);
  expect((form?.get("mask") as File | null)?.name).toBe("cat.png");
  const foreign = await gateway.post("/images/edits", {
    ...body,
    images: [{ file_id: "file-ffffffffffffffffffffffff" }],
    mask: undefined,
  });
  expect([foreign.status, await foreign.json()]).toMatchObject([
    404,
    { error: { param: "images[0]" } },
  ]);
});
