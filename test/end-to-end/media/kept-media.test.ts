import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import { provider, testLlmKey } from "../../support/gateway.ts";
import { startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";

const mib = 1024 * 1024;
const base64 =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const png = Buffer.from(base64, "base64");
/** A picture that exceeds what is kept. */
const large = Buffer.concat([png, Buffer.alloc(2 * mib)]);

function wav(bytes: number): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + bytes, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(24_000, 24);
  head.writeUInt32LE(48_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(bytes, 40);
  return Buffer.concat([head, Buffer.alloc(bytes, 7)]);
}

let answer: () => Response = () => Response.json({});
const upstream = Bun.serve({
  port: 0,
  maxRequestBodySize: 64 * mib,
  async fetch(request) {
    if (request.method === "GET")
      return new Response(png, { headers: { "content-type": "image/png" } });
    await request.arrayBuffer();
    return answer();
  },
});
const origin = `http://127.0.0.1:${upstream.port}`;

const directory = mkdtempSync(join(tmpdir(), "kept-media-"));
let workspaces: TwoWorkspaces;
let client: OpenAI;
beforeAll(async () => {
  const model = (id: string, surface: string, pricing: object) => ({
    id: `acme/${id}`,
    upstream_model: id,
    surface,
    pricing,
  });
  workspaces = await startTwoWorkspaces(async () => undefined, {
    sandbox: true,
    contentMediaBytes: mib,
    // One upload of the largest test fits, so that one that is not freed shows.
    spool: { directory, bytesMax: 3 * mib },
    providers: [
      provider({
        id: "acme",
        base_url: `${origin}/v1`,
        api_key: "upstream-secret",
        dialect: {
          chat: "openai-chat",
          images: "openai-images",
          transcriptions: "openai-audio",
          speech: "openai-audio",
        },
        models: [
          model("gpt-image-2", "images", { image: "0.01" }),
          model("whisper-1", "transcriptions", { audio_input_minute: "0.006" }),
          model("tts-1", "speech", { characters: "15" }),
          model("draws", "chat", { prompt: "1", completion: "2" }),
        ],
      }),
    ],
  });
  await keep(true);
  client = new OpenAI({
    baseURL: workspaces.gateway().baseUrl,
    apiKey: testLlmKey,
    maxRetries: 0,
  });
});
afterAll(async () => {
  await workspaces.stop();
  await upstream.stop(true);
  rmSync(directory, { recursive: true });
});

const keep = async (isKept: boolean): Promise<void> => {
  const answered = await workspaces.own("PATCH", "/security/privacy", { keep_contents: isKept });
  expect(answered.status).toBe(200);
};

interface Kept {
  surface: string;
  input: Record<string, never>;
  output: { completion: string | null; reasoning: null; raw: string };
  input_cut: boolean;
  output_cut: boolean;
}

const idOf = (response: Response): string => `gen_${response.headers.get("x-service-trace-id")}`;

/** Returns what is kept of the request that an answer is of, once the answer was read. */
async function keptOf(asked: { asResponse(): Promise<Response> }): Promise<Kept> {
  const response = await asked.asResponse();
  await response.arrayBuffer();
  const read = await workspaces.own("GET", `/generation/content?id=${idOf(response)}`);
  const text = await read.text();
  expect(read.status, text).toBe(200);
  return (JSON.parse(text) as { data: Kept }).data;
}

const picture = (more: object = {}): Response =>
  Response.json({ created: 7, data: [{ b64_json: base64, ...more }] });
const events = (...list: readonly { type: string }[]): Response =>
  new Response(
    list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
    { headers: { "content-type": "text/event-stream" } },
  );

const asked = { model: "acme/gpt-image-2", prompt: "a cat" } as const;

test("a request for pictures is kept with its fields, and its answer with the pictures", async () => {
  answer = () => picture({ revised_prompt: "one cat" });
  const kept = await keptOf(client.images.generate({ ...asked, size: "1024x1024", user: "u" }));
  expect(kept).toMatchObject({
    surface: "images",
    input: { ...asked, size: "1024x1024", user: "u" },
    output: { completion: null, reasoning: null },
    input_cut: false,
    output_cut: false,
  });
  expect(JSON.parse(kept.output.raw)).toMatchObject({
    created: 7,
    data: [{ b64_json: base64, revised_prompt: "one cat" }],
    usage: { cost: 0.01 },
  });
});

test("pictures that are answered by address are kept as their bytes", async () => {
  answer = () => picture();
  const hosted = await keptOf(client.images.generate({ ...asked, response_format: "url" }));
  expect(JSON.parse(hosted.output.raw).data).toEqual([{ b64_json: base64 }]);
  answer = () => Response.json({ data: [{ url: `${origin}/hosted.png` }] });
  const linked = await keptOf(client.images.generate(asked));
  expect(JSON.parse(linked.output.raw).data).toEqual([{ b64_json: base64 }]);
});

test("pictures that a request brings are kept in the form in which JSON names them", async () => {
  answer = () => picture();
  const file = (bytes: Buffer, name: string) => toFile(bytes, name, { type: "image/png" });
  const kept = await keptOf(
    client.images.edit({
      ...asked,
      image: [await file(png, "one.png"), await file(large, "two.png")],
      mask: await file(png, "mask.png"),
    }),
  );
  const url = `data:image/png;base64,${base64}`;
  expect(kept.input).toEqual({
    ...asked,
    images: [
      { image_url: url, filename: "one.png", bytes: png.length },
      { filename: "two.png", type: "image/png", bytes: large.length, kept_bytes: 0 },
    ],
    mask: { image_url: url, filename: "mask.png", bytes: png.length },
  } as never);
  expect([kept.input_cut, kept.output_cut]).toEqual([true, false]);
  const { images: _, ...rest } = kept.input;
  const again = await workspaces.as(testLlmKey)("POST", "/images/edits", {
    ...rest,
    images: [{ image_url: url }],
  });
  expect([again.status, await again.json()]).toEqual([200, expect.anything()]);
});

test("a picture of an answer that exceeds the bound is named, and the others are kept", async () => {
  const data = [large.toString("base64"), base64].map((b64_json) => ({ b64_json }));
  answer = () => Response.json({ data });
  const kept = await keptOf(client.images.generate({ ...asked, n: 2 }));
  expect(JSON.parse(kept.output.raw).data).toEqual([
    { bytes: large.length, kept_bytes: 0 },
    { b64_json: base64 },
  ]);
  expect(kept.output_cut).toBe(true);
});

test("of a stream of pictures, the finished ones are kept", async () => {
  answer = () =>
    events(
      { type: "image_edit.partial_image", b64_json: "AAAA", partial_image_index: 0 } as never,
      { type: "image_edit.completed", b64_json: base64 } as never,
    );
  for (let round = 0; round < 3; round += 1) {
    const kept = await keptOf(
      client.images.edit({
        ...asked,
        image: await toFile(large, "two.png", { type: "image/png" }),
        stream: true,
        partial_images: 1,
      }),
    );
    const lines = kept.output.raw.split("\n").filter((line) => line.startsWith("data:"));
    expect(lines.map((line) => JSON.parse(line.slice(5)))).toEqual([
      { type: "image_edit.completed", b64_json: base64, usage: expect.anything() },
    ]);
    expect([kept.input_cut, kept.output_cut]).toEqual([true, false]);
  }
});

const transcribe = (bytes: number, more: object = {}) =>
  toFile(wav(bytes), "ü speech.wav", { type: "audio/wav" }).then((file) => ({
    asResponse: () =>
      client.audio.transcriptions
        .create({ model: "acme/whisper-1", file, ...more } as never)
        .asResponse(),
  }));

test("a sound is kept with its transcript", async () => {
  answer = () => Response.json({ text: "Hello" });
  const kept = await keptOf(await transcribe(1_000, { language: "en" }));
  expect(kept).toMatchObject({
    surface: "transcriptions",
    input: {
      model: "acme/whisper-1",
      language: "en",
      input_audio: { format: "wav", filename: "ü speech.wav", bytes: 1_044 },
    },
    output: { completion: "Hello" },
    input_cut: false,
  });
  expect(Buffer.from(kept.input["input_audio"]!["data"], "base64").equals(wav(1_000))).toBe(true);
  expect(JSON.parse(kept.output.raw)).toMatchObject({ text: "Hello", usage: expect.anything() });
  answer = () => Response.json({ text: "Hello", segments: [{ start: 0, end: 1, text: "Hello" }] });
  const captions = await keptOf(await transcribe(1_000, { response_format: "srt" }));
  expect(captions.output.completion).toContain("00:00:00,000 --> 00:00:01,000\nHello");
});

test("of a long sound the beginning is kept, also where the transcript is streamed", async () => {
  const said = [
    { type: "transcript.text.delta", delta: "Hello" },
    { type: "transcript.text.done", text: "Hello" },
  ];
  for (const stream of [true, true, false]) {
    answer = () => (stream ? events(...said) : Response.json({ text: "Hello" }));
    const kept = await keptOf(await transcribe(2 * mib, { stream }));
    const { data, ...facts } = (kept.input["input_audio"] ?? {}) as Record<string, unknown>;
    expect(facts).toMatchObject({ bytes: 2 * mib + 44, kept_bytes: mib });
    expect(Buffer.from(`${data}`, "base64").equals(wav(2 * mib).subarray(0, mib))).toBe(true);
    expect([kept.output.completion, kept.input_cut]).toEqual(["Hello", true]);
  }
});

test.each([
  ["mp3", "audio/mpeg", Buffer.alloc(3_000, 3), { format: "mp3", bytes: 3_000 }],
  ["pcm", "audio/pcm", Buffer.alloc(4_800, 7), { format: "wav", bytes: 4_800 }],
  ["wav", "audio/wav", Buffer.alloc(2 * mib, 7), { bytes: 2 * mib, kept_bytes: mib }],
] as const)("speech is kept as sound of a message is: %s", async (format, type, bytes, facts) => {
  answer = () => new Response(bytes, { headers: { "content-type": type } });
  const said = { model: "acme/tts-1", voice: "alloy", input: "Hello" } as const;
  const kept = await keptOf(client.audio.speech.create({ ...said, response_format: format }));
  expect(kept).toMatchObject({ surface: "speech", input: { ...said, response_format: format } });
  const { audio } = JSON.parse(kept.output.raw);
  expect(audio).toMatchObject(facts);
  const data = Buffer.from(audio.data, "base64");
  const expected = format === "pcm" ? wav(4_800) : bytes.subarray(0, mib);
  expect(data.equals(expected)).toBe(true);
  expect(kept.output_cut).toBe(format === "wav");
});

test("pictures within messages are kept whole, or named with their size", async () => {
  const dataUrl = (bytes: Buffer): string => `data:image/png;base64,${bytes.toString("base64")}`;
  const small = Buffer.concat([png, Buffer.alloc(300_000, 5)]);
  const part = (bytes: Buffer) => ({ type: "image_url", image_url: { url: dataUrl(bytes) } });
  const text = { type: "text", text: "Which is larger?" };
  const images = [part(small)];
  for (const stream of [false, true]) {
    const choice = { index: 0, finish_reason: "stop" };
    const said = { role: "assistant", content: "This one.", images };
    answer = () =>
      stream
        ? new Response(
            `data: ${JSON.stringify({ id: "c", choices: [{ ...choice, delta: said }] })}\n\ndata: [DONE]\n\n`,
            { headers: { "content-type": "text/event-stream" } },
          )
        : Response.json({ id: "c", choices: [{ ...choice, message: said }] });
    const kept = await keptOf(
      client.chat.completions.create({
        model: "acme/draws",
        stream,
        messages: [{ role: "user", content: [part(small), part(large), text] }],
      } as never),
    );
    const placeholder = `[image/png of ${large.length} bytes, not kept]`;
    const named = { type: "image_url", image_url: { url: placeholder } };
    expect(kept.input).toMatchObject({
      messages: [{ role: "user", content: [part(small), named, text] }],
    } as never);
    expect(kept.output.raw).toContain(`"${dataUrl(small)}"`);
    expect(kept).toMatchObject({
      output: { completion: "This one." },
      input_cut: true,
      output_cut: false,
    });
  }
});

test("nothing is kept with zero data retention, or once keeping is off; strangers read nothing", async () => {
  answer = () => picture();
  const statusOf = async (id: string, read = workspaces.own): Promise<number> =>
    (await read("GET", `/generation/content?id=${id}`)).status;
  const ask = async (more: object = {}): Promise<string> => {
    const response = await workspaces.as(testLlmKey)("POST", "/images/generations", {
      ...asked,
      model: "sandbox/image:free",
      ...more,
    });
    await response.arrayBuffer();
    return idOf(response);
  };
  const kept = await ask();
  expect(await statusOf(kept)).toBe(200);
  expect(await statusOf(kept, workspaces.stranger)).toBe(404);
  expect(await statusOf(await ask({ provider: { zdr: true } }))).toBe(404);
  expect(await statusOf(await ask({ store: false }))).toBe(404);
  await keep(false);
  expect(await statusOf(await ask())).toBe(404);
  expect(await statusOf(kept)).toBe(404);
  await keep(true);
});

test("with zero data retention no picture is hosted, and the loss is named", async () => {
  for (const [zdr, shown, loss] of [
    [true, "b64_json", "response_format"],
    [false, "url", null],
  ] as const) {
    const response = await workspaces.as(testLlmKey)("POST", "/images/generations", {
      ...asked,
      model: "sandbox/image:free",
      response_format: "url",
      provider: { zdr },
    });
    expect(response.headers.get("x-service-translation-loss")).toBe(loss);
    expect(await response.json()).toEqual(
      expect.objectContaining({ data: [{ [shown]: expect.any(String) }] }),
    );
  }
});
