import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { at, listAt, textAt } from "../api/at.ts";
import { pixelPng } from "../clients/support/pixel-png.ts";
import { rpc, sendMcp } from "./mcp-client.ts";

const received: { path: string; text: string }[] = [];
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    const path = new URL(request.url).pathname;
    received.push({ path, text: await request.text() });
    if (path.includes("/audio/transcriptions"))
      return Response.json({ text: "Hello", usage: { type: "duration", seconds: 60 } });
    if (path.includes("/audio/speech"))
      return new Response(Buffer.from("ID3sound"), { headers: { "content-type": "audio/mpeg" } });
    return Response.json({ created: 7, data: [{ b64_json: pixelPng, revised_prompt: "A cat." }] });
  },
});

let gateway: TestGateway;
beforeAll(async () => {
  const model = (id: string, surface: string, pricing: object) => ({
    id: `acme/${id}`,
    upstream_model: id,
    surface,
    pricing,
  });
  let origin = "";
  gateway = await startGateway({
    sandbox: true,
    publicUrl: () => origin,
    providers: [
      provider({
        id: "acme",
        base_url: `http://127.0.0.1:${upstream.port}/v1`,
        api_key: "k",
        dialect: {
          images: "openai-images",
          transcriptions: "openai-audio",
          speech: "openai-audio",
        },
        models: [
          model("draw", "images", { image: "0.04" }),
          model("gpt-image-2", "images", { image: "0.04" }),
          model("hear", "transcriptions", { audio_input_minute: "0.006" }),
          model("speak", "speech", { characters: "15" }),
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

const call = async (name: string, given: object, secret = testLlmKey): Promise<unknown> => {
  const message = rpc("tools/call", { name, arguments: given });
  return at((await sendMcp(`${gateway.origin}/mcp`, message, { secret })).body, "result");
};
const refusalOf = (result: unknown): string => {
  expect(at(result, "isError")).toBe(true);
  return textAt(result, "content.0.text");
};
const asked = (): number => received.length;
const keyWith = async (fields: object): Promise<string> => {
  const headers = { authorization: `Bearer ${testManagementKey}` };
  return textAt(await (await gateway.post("/keys", fields, { headers })).json(), "key");
};

test("a picture is a block, with its charge in the result and in the record", async () => {
  const result = await call("generate_image", { model: "acme/draw", prompt: "a cat" });
  expect(result).toMatchObject({
    content: [{ type: "text" }, { type: "image", data: pixelPng, mimeType: "image/png" }],
    structuredContent: {
      pictures: [{ media_type: "image/png", bytes: 70, revised_prompt: "A cat." }],
      cost: 0.04,
    },
  });
  expect(JSON.stringify(at(result, "structuredContent"))).not.toContain(pixelPng);
  const id = textAt(result, "structuredContent.generation_id");
  expect(await (await gateway.get(`/generation?id=${id}`)).json()).toMatchObject({
    data: { id, surface: "images", total_cost: 0.04 },
  });
});

test("with link, pictures are addresses of the gateway", async () => {
  const given = { model: "acme/draw", prompt: "a cat", link: true };
  const result = await call("generate_image", given);
  expect(result).toMatchObject({
    content: [{ type: "text" }, { type: "resource_link", mimeType: "image/png" }],
    structuredContent: { pictures: [{ url: textAt(result, "content.1.uri") }] },
  });
  const hosted = await fetch(textAt(result, "content.1.uri"));
  expect([hosted.status, hosted.headers.get("content-type")]).toEqual([200, "image/png"]);
});

test("pictures are changed, by data URL and by the id of a file", async () => {
  const url = `data:image/png;base64,${pixelPng}`;
  const form = new FormData();
  form.append("purpose", "vision");
  form.append("file", new File([Buffer.from(pixelPng, "base64")], "a.png", { type: "image/png" }));
  const authorization = `Bearer ${testLlmKey}`;
  const stored = await fetch(`${gateway.baseUrl}/files`, {
    method: "POST",
    headers: { authorization },
    body: form,
  });
  const id = textAt(await stored.json(), "id");
  for (const images of [[url], [id, id]]) {
    const given = { model: "acme/gpt-image-2", prompt: "at night", images, background: "opaque" };
    expect(at(await call("edit_image", given), "content.1.type")).toBe("image");
    expect(received.at(-1)).toMatchObject({
      path: "/v1/images/edits",
      text: expect.stringContaining(images.length > 1 ? 'name="image[]"' : 'name="image"'),
    });
  }
  const before = asked();
  const foreign = { model: "acme/draw", prompt: "x", images: ["file-00000000000000000000000000"] };
  expect(refusalOf(await call("edit_image", foreign))).toContain("file");
  expect(asked()).toBe(before);
});

test("speech is a block of sound, and a transcript is text", async () => {
  const spoken = await call("generate_speech", { model: "acme/speak", input: "Hello" });
  const data = Buffer.from("ID3sound").toString("base64");
  expect(spoken).toMatchObject({
    content: [{ type: "text" }, { type: "audio", data, mimeType: "audio/mpeg" }],
    structuredContent: { media_type: "audio/mpeg", bytes: 8, cost: 0.000075 },
  });
  const wav = `data:audio/wav;base64,${Buffer.alloc(60_000).toString("base64")}`;
  expect(await call("transcribe_audio", { model: "acme/hear", audio: wav })).toMatchObject({
    structuredContent: { text: "Hello", cost: 0.006 },
  });
  expect(received.at(-1)?.text).toContain('filename="audio.wav"');
  const srt = { model: "acme/hear", audio: wav, response_format: "srt" };
  expect(textAt(await call("transcribe_audio", srt), "structuredContent.text")).toContain("-->");
});

test.each<[name: string, given: object, names: string]>([
  ["generate_image", { model: "acme/draw", prompt: "x", n: 5 }, "n:"],
  ["generate_image", { model: "acme/draw", prompt: "x", quality: "best" }, "quality:"],
  ["generate_image", { model: "acme/draw", prompt: "" }, "prompt"],
  ["generate_image", { model: "acme/speak", prompt: "x" }, "makes no pictures"],
  ["edit_image", { model: "acme/draw", prompt: "x", images: [] }, "images:"],
  ["edit_image", { model: "acme/draw", prompt: "x", images: ["AAAA"] }, "images"],
  ["generate_speech", { model: "acme/speak", input: "x", speed: 5 }, "speed:"],
  ["generate_speech", { model: "acme/draw", input: "x" }, "does not speak"],
  ["transcribe_audio", { model: "acme/hear" }, "audio:"],
  ["transcribe_audio", { model: "acme/hear", audio: "AA", file_id: "file-1" }, "audio:"],
  ["transcribe_audio", { model: "acme/hear", audio: "AA", format: "../x" }, "format:"],
])("%s with %j names %s before a provider is asked", async (name, given, names) => {
  const before = asked();
  expect(refusalOf(await call(name, given))).toContain(names);
  expect(asked()).toBe(before);
});

test("limits, allowed models and allowed endpoints of a key hold", async () => {
  const poor = await keyWith({ name: "poor", limit: 0.03 });
  const bound = await keyWith({ name: "bound", allowed_models: ["acme/hear"] });
  const talks = await keyWith({ name: "talks", allowed_endpoints: ["/mcp", "/chat/completions"] });
  const before = asked();
  const given = { model: "acme/draw", prompt: "x" };
  for (const key of [poor, bound, talks]) {
    const refusal = refusalOf(await call("generate_image", given, key));
    expect(refusal.length).toBeGreaterThan(10);
  }
  expect(asked()).toBe(before);
});

test("fifty calls at once do not pass the limit of a key", async () => {
  const key = await keyWith({ name: "five pictures", limit: 0.2 });
  const given = { model: "acme/draw", prompt: "x" };
  const results = await Promise.all(
    Array.from({ length: 50 }, () => call("generate_image", given, key)),
  );
  expect(results.filter((result) => at(result, "isError") !== true)).toHaveLength(5);
});

test("a call with the same idempotency key makes one picture", async () => {
  const before = asked();
  const given = { model: "acme/draw", prompt: "once", idempotency_key: "one-picture" };
  const [first, second] = [
    await call("generate_image", given),
    await call("generate_image", given),
  ];
  expect(at(second, "content.1")).toEqual(at(first, "content.1"));
  expect(asked() - before).toBe(1);
  // The repetition has no record of its own.
  expect(textAt(first, "structuredContent.generation_id")).toStartWith("gen_");
  expect(at(second, "structuredContent.generation_id")).toBeUndefined();
});

test("speech is not kept, so that a repeated call is refused", async () => {
  const before = asked();
  const given = { model: "acme/speak", input: "Once", idempotency_key: "one-speech" };
  expect(at(await call("generate_speech", given), "content.1.type")).toBe("audio");
  expect(refusalOf(await call("generate_speech", given))).toContain("Use a new key");
  expect(asked() - before).toBe(1);
});

test("calls of one request have a charge and a record each", async () => {
  const given = { name: "generate_image", arguments: { model: "acme/draw", prompt: "x" } };
  const calls = [1, 2, 3].map((id) => ({ ...rpc("tools/call", given), id }));
  const { body } = await sendMcp(`${gateway.origin}/mcp`, calls, { secret: testLlmKey });
  const results = listAt({ body }, "body").map((answer) => at(answer, "result"));
  const ids = results.map((result) => textAt(result, "structuredContent.generation_id"));
  expect(new Set(ids).size).toBe(3);
  for (const id of ids)
    expect(await (await gateway.get(`/generation?id=${id}`)).json()).toMatchObject({
      data: { id, total_cost: 0.04 },
    });
});

test("calls are requests of the run of their key, or of the one that a header names", async () => {
  const given = { model: "acme/draw", prompt: "x" };
  const fields = { name: "pictures", limit: 1, max_requests: 1 };
  const secret = textAt(await (await gateway.post("/runs", fields)).json(), "key");
  const before = asked();
  expect(at(await call("generate_image", given, secret), "isError")).not.toBe(true);
  expect(refusalOf(await call("generate_image", given, secret))).toContain(
    "has made its 1 request:",
  );
  const headers = { "x-service-run": "named; limit=0.05" };
  const message = rpc("tools/call", { name: "generate_image", arguments: given });
  const send = async (): Promise<unknown> =>
    at(
      (await sendMcp(`${gateway.origin}/mcp`, message, { secret: testLlmKey, headers })).body,
      "result",
    );
  expect(at(await send(), "isError")).not.toBe(true);
  expect(refusalOf(await send())).toContain("this run");
  expect(asked() - before).toBe(2);
});

test("management keys neither see nor call them", async () => {
  const url = `${gateway.origin}/mcp`;
  const listed = await sendMcp(url, rpc("tools/list"), { secret: testManagementKey });
  const names = listAt(listed.body, "result.tools").map((tool) => at(tool, "name"));
  expect(names).not.toContain("generate_image");
  const given = { model: "acme/draw", prompt: "x" };
  expect(refusalOf(await call("generate_image", given, testManagementKey))).toStartWith(
    "Permission denied: generate_image needs the scope inference",
  );
});

test("models are listed by what they make", async () => {
  const listed = await call("list_models", { category: "image" });
  const ids = listAt(listed, "structuredContent.data").map((model) => at(model, "id"));
  expect(ids).toEqual(["acme/draw", "acme/gpt-image-2", "sandbox/image:free"]);
});
