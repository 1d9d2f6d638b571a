import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

/** A PNG of one pixel. */
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const received: FormData[] = [];
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    received.push((await request.formData()) as FormData);
    return Response.json({ data: [{ b64_json: png.toString("base64") }] });
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [
      provider({
        id: "acme",
        base_url: `http://127.0.0.1:${upstream.port}/v1`,
        api_key: "k",
        dialect: { images: "openai-images" },
        models: [
          {
            id: "acme/gpt",
            upstream_model: "gpt-image-2",
            surface: "images",
            pricing: { image: "0.01" },
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

test.each([
  [{ n: 0 }, "n"],
  [{ n: 11 }, "n"],
  [{ n: 1.5 }, "n"],
  [{ quality: "best" }, "quality"],
  [{ quality: "max" }, "quality"],
  [{ quality: "hd" }, "quality"],
  [{ style: "loud" }, "style"],
  [{ moderation: "high" }, "moderation"],
  [{ complexity: "huge" }, "complexity"],
  [{ response_format: "base64" }, "response_format"],
  [{ stream: "maybe" }, "stream"],
  [{ stream: true, partial_images: 4 }, "partial_images"],
  [{ output_compression: 50 }, "output_compression"],
  [{ output_format: "gif", output_compression: 50 }, "output_compression"],
  [{ output_format: "svg", output_compression: 50 }, "output_compression"],
  [{ output_format: "gif", frame_count: 17 }, "frame_count"],
  [{ output_format: "gif", frame_duration_ms: 655_351 }, "frame_duration_ms"],
  [{ output_format: "gif", stream: true }, "output_format"],
  [{ frame_count: 2 }, "frame_count"],
  [{ svg: { model: "x" } }, "svg"],
  [{ size: "huge" }, "size"],
  [{ size: "1000x1024" }, "size"],
  [{ size: "3072x512" }, "size"],
  [{ prompt: "" }, "prompt"],
  [{ prompt: "x".repeat(32_001) }, "prompt"],
  [{ background: "transparent", output_format: "jpeg" }, "background"],
  [{ partial_images: 2 }, "partial_images"],
  [{ output_compression: 101 }, "output_compression"],
  [{ output_format: "svg", n: 2 }, "output_format"],
  [{ output_format: "svg", svg: "gpt" }, "svg"],
  [
    { output_format: "svg", svg: { model: "m", reasoning: { effort: "vast" } } },
    "svg.reasoning.effort",
  ],
  [{ user: 5 }, "user"],
  [{ safety_identifier: {} }, "safety_identifier"],
])("refuses %j before a provider is asked", async (fields, param) => {
  const before = received.length;
  const response = await gateway.post("/images/generations", {
    model: "acme/gpt",
    prompt: "x",
    ...fields,
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param } });
  expect(received.length).toBe(before);
});

/** A PNG whose head tells other sides. */
function pngOf(width: number, height: number): Buffer {
  const bytes = Buffer.from(png);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

/** Returns a JPEG of such sides, with so many segments of metadata of 64 KB before its frame. */
function jpegOf(
  width: number,
  height: number,
  { segments = 0, fill = Buffer.alloc(0) } = {},
): Buffer {
  const metadata = Buffer.alloc(65_537);
  metadata.writeUInt32BE(0xffe1ffff, 0);
  const frame = Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0]);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  const parts = Array.from({ length: segments }, () => metadata);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), ...parts, fill, frame, Buffer.alloc(20)]);
}

const gif = Buffer.from("R0lGODlhAQABAAAAACwAAAAAAQABAAA=", "base64");

test.each<
  [what: string, model: string, files: (readonly [string, Buffer, string?])[], param: string]
>([
  ["17 pictures", "acme/gpt", Array.from({ length: 17 }, () => ["image[]", png] as const), "image"],
  [
    "17 pictures under two names",
    "acme/gpt",
    Array.from({ length: 17 }, (_, at) => [at % 2 ? "image" : "image[]", png] as const),
    "image",
  ],
  ["no picture", "acme/gpt", [["mask", png]], "image"],
  [
    "a mask of another size",
    "acme/gpt",
    [
      ["image", pngOf(64, 64)],
      ["mask", pngOf(64, 32)],
    ],
    "mask",
  ],
  [
    "a mask that is no PNG",
    "acme/gpt",
    [
      ["image", png],
      ["mask", gif, "image/gif"],
    ],
    "mask",
  ],
  [
    "a mask of 4 MB",
    "acme/gpt",
    [
      ["image", png],
      ["mask", Buffer.concat([png, Buffer.alloc(4 * 1024 * 1024)])],
    ],
    "mask",
  ],
  [
    "markup beside a mask",
    "acme/gpt",
    [
      ["image", png],
      ["mask", png],
      ["markup", png],
    ],
    "markup",
  ],
  [
    "markup before GPT Image 2.5",
    "acme/gpt",
    [
      ["image", png],
      ["markup", png],
    ],
    "markup",
  ],
  ["a GIF", "acme/gpt", [["image", gif, "image/gif"]], "image"],
  [
    "a file of another name",
    "acme/gpt",
    [
      ["image", png],
      ["photo", png],
    ],
    "photo",
  ],
  [
    "two masks",
    "acme/gpt",
    [
      ["image", png],
      ["mask", png],
      ["mask[]", png],
    ],
    "mask",
  ],
  [
    "a mask of other sides than a JPEG behind 320 KB of metadata",
    "acme/gpt",
    [
      ["image", jpegOf(64, 64, { segments: 5 }), "image/jpeg"],
      ["mask", pngOf(32, 32)],
    ],
    "mask",
  ],
  [
    "an empty mask",
    "acme/gpt",
    [
      ["image", png],
      ["mask", Buffer.alloc(0)],
    ],
    "mask",
  ],
])("an edit with %s is refused before a provider is asked", async (_, model, files, param) => {
  const before = received.length;
  const form = new FormData();
  form.append("model", model);
  form.append("prompt", "x");
  for (const [name, bytes, type = "image/png"] of files)
    form.append(name, new File([Uint8Array.from(bytes)], "a.png", { type }));
  const response = await fetch(`${gateway.baseUrl}/images/edits`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
  expect([response.status, await response.json()]).toEqual([
    400,
    expect.objectContaining({ error: expect.objectContaining({ param }) }),
  ]);
  expect(received.length).toBe(before);
});

const edit = (files: readonly (readonly [string, Buffer])[], type: string): Promise<Response> => {
  const form = new FormData();
  form.append("model", "acme/gpt");
  form.append("prompt", "x");
  for (const [name, bytes] of files)
    form.append(name, new File([Uint8Array.from(bytes)], "ä.jpg", { type }));
  return fetch(`${gateway.baseUrl}/images/edits`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
};

test.each([
  ["behind 320 KB of metadata", { segments: 5 }, 413],
  ["behind fill bytes", { fill: Buffer.alloc(1_000, 0xff) }, 413],
  ["behind bytes that are no segment", { fill: Buffer.alloc(1_000, 7) }, 413],
  [
    "behind more segments than any picture has",
    { fill: Buffer.alloc(40_000, Buffer.from([0xff, 0xe1, 0, 2])) },
    400,
  ],
])("a JPEG of too many pixels is found %s", async (_, options, status) => {
  const before = received.length;
  const response = await edit([["image", jpegOf(30_000, 30_000, options)]], "image/jpeg");
  expect([response.status, received.length]).toEqual([status, before]);
});

test("pictures are taken by the names that other clients write", async () => {
  const names = ["image[0]", "image[1]", "images[]", "images"];
  const response = await edit(
    names.map((name) => [name, jpegOf(64, 64)] as const),
    "image/jpeg",
  );
  expect(response.status).toBe(200);
  expect(received.at(-1)?.getAll("image[]")).toHaveLength(4);
});

test("pictures of both names are sent as one list, with a prompt as long as it may be", async () => {
  const form = new FormData();
  form.append("model", "acme/gpt");
  // Longer in bytes than in characters, as long as a prompt may be.
  form.append("prompt", "猫".repeat(32_000));
  for (const name of ["image", "image[]"])
    form.append(name, new File([Uint8Array.from(png)], `${name}.png`, { type: "image/png" }));
  const response = await fetch(`${gateway.baseUrl}/images/edits`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}` },
    body: form,
  });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  expect(received.at(-1)?.getAll("image[]")).toHaveLength(2);
  expect(received.at(-1)?.get("prompt")).toHaveLength(32_000);
});
