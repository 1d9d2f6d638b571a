import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI, { toFile } from "openai";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

/** Returns a WAV of so many seconds, whose header may tell another length. */
function wav(seconds: number, told = seconds): Buffer {
  const rate = 8_000;
  const bytes = seconds * rate * 2;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(Math.min(0xffffffff, 36 + told * rate * 2), 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(Math.min(0xffffffff, told * rate * 2), 40);
  return Buffer.concat([head, Buffer.alloc(bytes)]);
}

interface Received {
  path: string;
  query: URLSearchParams;
  headers: Headers;
  form: FormData | undefined;
  bytes: number;
  raw: Buffer;
  json: unknown;
}

const received: Received[] = [];
let answer: (request: Received) => Response = () => Response.json({});
const upstream = Bun.serve({
  port: 0,
  maxRequestBodySize: 1024 ** 3,
  async fetch(request) {
    const url = new URL(request.url);
    const type = request.headers.get("content-type") ?? "";
    const bytes = await request.arrayBuffer();
    const again = new Response(bytes, { headers: { "content-type": type } });
    const got: Received = {
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      form: type.startsWith("multipart/") ? ((await again.formData()) as FormData) : undefined,
      json: type.startsWith("application/json")
        ? JSON.parse(Buffer.from(bytes).toString())
        : undefined,
      bytes: bytes.byteLength,
      raw: Buffer.from(bytes),
    };
    received.push(got);
    return answer(got);
  },
});
const origin = `http://127.0.0.1:${upstream.port}`;

let gateway: TestGateway;
let client: OpenAI;
beforeAll(async () => {
  const models = (entries: Record<string, readonly [string, object]>) =>
    Object.entries(entries).map(([id, [upstreamModel, pricing]]) => ({
      id,
      upstream_model: upstreamModel,
      surface: "transcriptions",
      pricing,
    }));
  const vendor = (id: string, dialect: string, entries: Parameters<typeof models>[0]) =>
    provider({
      id,
      base_url: `${origin}/${id}`,
      api_key: `${id}-secret`,
      dialect: { transcriptions: dialect },
      models: models(entries),
    });
  gateway = await startGateway({
    sandbox: true,
    audioBytesMax: 4 * 1024 * 1024,
    providers: [
      vendor("acme", "openai-audio", {
        "acme/whisper": ["whisper-1", { audio_input_minute: "0.006" }],
        "acme/voxtral": ["voxtral-mini-latest", { audio_input_minute: "0.002" }],
        "acme/speakers": ["gpt-4o-transcribe-diarize", { audio_input_minute: "0.006" }],
        "acme/4o": ["gpt-4o-transcribe", { audio_input: "2.5", prompt: "2.5", completion: "10" }],
        "acme/fast": [
          "whisper-large-v3-turbo",
          { audio_input_minute: "0.0006", minimum_ms: 10_000 },
        ],
      }),
      vendor("deep", "deepgram", { "deep/nova": ["nova-3", { audio_input_minute: "0.0043" }] }),
      vendor("eleven", "elevenlabs", {
        "eleven/scribe": ["scribe_v1", { audio_input_minute: "0.006" }],
      }),
      vendor("goog", "google-audio", {
        "goog/flash": ["gemini-2.5-flash", { prompt: "0.3", audio_input: "1", completion: "2.5" }],
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
const sound = (bytes: Buffer = wav(2), name = "ü speech.wav") =>
  toFile(bytes, name, { type: "audio/wav" });
const costOf = (result: unknown): number => (result as { usage: { cost: number } }).usage.cost;
const verbose = {
  task: "transcribe",
  language: "english",
  duration: 2,
  text: "Hello there. Bye.",
  segments: [
    { id: 0, start: 0, end: 1.25, text: " Hello there." },
    { id: 1, start: 1.25, end: 3661.5, text: " Bye." },
  ],
  words: [{ word: "Hello", start: 0, end: 0.5 }],
};

test("json is charged by the provider's seconds, and the file arrives unchanged", async () => {
  answer = () => Response.json({ text: "Hello", usage: { type: "duration", seconds: 2 } });
  const bytes = wav(2);
  const result = await client.audio.transcriptions.create({
    model: "acme/whisper",
    file: await sound(bytes),
    language: "en",
  });
  expect(result.text).toBe("Hello");
  expect(costOf(result)).toBe(0.0002);
  const file = last().form?.get("file") as File;
  expect(file.name).toBe("ü speech.wav");
  // Bun's own parser would show another type.
  expect(last().raw.toString("latin1")).toContain("content-type: audio/wav\r\n");
  expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true);
  expect(last().form?.get("model")).toBe("whisper-1");
  expect(last().headers.get("authorization")).toBe("Bearer acme-secret");
});

test("an answer without usage is charged by the length of the file", async () => {
  answer = () => Response.json({ text: "Hello" });
  const result = await client.audio.transcriptions.create({
    model: "acme/whisper",
    file: await sound(wav(3)),
  });
  expect(costOf(result)).toBe(0.0003);
});

test("the least that a provider bills is charged", async () => {
  answer = () => Response.json({ text: "Hello" });
  const result = await client.audio.transcriptions.create({
    model: "acme/fast",
    file: await sound(wav(1)),
  });
  expect(costOf(result)).toBe(0.0001);
});

test("tokens are charged as such, and without details as sound", async () => {
  answer = () =>
    Response.json({
      text: "Hello",
      usage: {
        type: "tokens",
        input_tokens: 30,
        input_token_details: { text_tokens: 10, audio_tokens: 20 },
        output_tokens: 5,
        total_tokens: 35,
      },
    });
  const result = await client.audio.transcriptions.create({
    model: "acme/4o",
    file: await sound(),
  });
  expect(costOf(result)).toBeCloseTo(0.000125, 9);
  expect(result.usage).toMatchObject({ type: "tokens", input_tokens: 30, output_tokens: 5 });
});

test("Mistral's usage is charged, and its events are OpenAI's", async () => {
  const usage = {
    prompt_audio_seconds: 90,
    prompt_tokens: 4,
    completion_tokens: 9,
    total_tokens: 13,
  };
  answer = () => Response.json({ model: "voxtral", text: "Hello", segments: [], usage });
  const file = await sound(wav(100));
  const whole = await client.audio.transcriptions.create({ model: "acme/voxtral", file });
  expect(costOf(whole)).toBe(0.003);
  const events = [
    { type: "transcription.language", audio_language: "en" },
    { type: "transcription.text.delta", text: "Hel" },
    { type: "transcription.text.delta", text: "lo" },
    { type: "transcription.segment", text: "Hello", start: 0, end: 1, speaker_id: "speaker_1" },
    { type: "transcription.done", model: "voxtral", text: "Hello", language: "en", usage },
  ];
  answer = () =>
    new Response(events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(""), {
      headers: { "content-type": "text/event-stream" },
    });
  const stream = await client.audio.transcriptions.create({
    model: "acme/voxtral",
    file,
    stream: true,
  });
  const seen = await Array.fromAsync(stream);
  expect(seen as unknown[]).toMatchObject([
    { type: "transcript.text.delta", delta: "Hel" },
    { type: "transcript.text.delta", delta: "lo" },
    { type: "transcript.text.segment", text: "Hello", speaker: "speaker_1" },
    { type: "transcript.text.done", text: "Hello", usage: { input_tokens: 4, cost: 0.003 } },
  ]);
});

test.each([
  ["text", "Hello there. Bye.\n", "text/plain; charset=utf-8"],
  [
    "srt",
    "1\n00:00:00,000 --> 00:00:01,250\nHello there.\n\n2\n00:00:01,250 --> 01:01:01,500\nBye.\n",
    "text/plain; charset=utf-8",
  ],
  [
    "vtt",
    "WEBVTT\n\n00:00:00.000 --> 00:00:01.250\nHello there.\n\n00:00:01.250 --> 01:01:01.500\nBye.\n",
    "text/plain; charset=utf-8",
  ],
] as const)("makes %s from what the provider has", async (format, expected, type) => {
  answer = () => Response.json(verbose);
  const { data, response } = await client.audio.transcriptions
    .create({ model: "acme/whisper", file: await sound(), response_format: format })
    .withResponse();
  expect(data as unknown).toBe(expected);
  expect(response.headers.get("content-type")).toBe(type);
  expect(last().form?.get("response_format")).toBe(format === "text" ? "json" : "verbose_json");
});

test("verbose_json keeps segments and words", async () => {
  answer = () => Response.json(verbose);
  const result = await client.audio.transcriptions.create({
    model: "acme/whisper",
    file: await sound(),
    response_format: "verbose_json",
    timestamp_granularities: ["word"],
  });
  expect(result).toMatchObject({ duration: 2, language: "english", words: verbose.words });
  expect(result.segments).toHaveLength(2);
  expect(last().form?.getAll("timestamp_granularities[]")).toEqual(["word"]);
  const { segments: _, ...byWord } = verbose;
  answer = () => Response.json(byWord);
  const words = await client.audio.transcriptions.create({
    model: "acme/whisper",
    file: await sound(),
    response_format: "verbose_json",
    timestamp_granularities: ["word"],
  });
  expect(words).toMatchObject({ words: verbose.words });
  expect(words.segments).toBeUndefined();
});

test("a model that tells no times has one segment, and the loss is named", async () => {
  answer = () => Response.json({ text: "Hello" });
  const { data, response } = await client.audio.transcriptions
    .create({ model: "acme/4o", file: await sound(), response_format: "srt" })
    .withResponse();
  expect(data as unknown).toBe("1\n00:00:00,000 --> 00:00:02,000\nHello\n");
  expect(response.headers.get("x-service-translation-loss")).toBe("response_format");
});

test("a stream ends with the charge, also where the provider ignores it", async () => {
  const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
  answer = () =>
    new Response(
      event({ type: "transcript.text.delta", delta: "Hel" }) +
        event({ type: "transcript.text.delta", delta: "lo" }) +
        event({
          type: "transcript.text.done",
          text: "Hello",
          usage: { type: "tokens", input_tokens: 20, output_tokens: 2, total_tokens: 22 },
        }),
      { headers: { "content-type": "text/event-stream" } },
    );
  const ask = async (model: string) =>
    Array.fromAsync(
      await client.audio.transcriptions.create({ model, file: await sound(), stream: true }),
    );
  const events = await ask("acme/4o");
  expect(events.map(({ type }) => type)).toEqual([
    "transcript.text.delta",
    "transcript.text.delta",
    "transcript.text.done",
  ]);
  expect(costOf(events[2])).toBeCloseTo(0.00007, 9);
  answer = () => Response.json({ text: "Hello" });
  expect(await ask("acme/whisper")).toMatchObject([
    { type: "transcript.text.delta", delta: "Hello" },
    { type: "transcript.text.done", text: "Hello", usage: { cost: 0.0002 } },
  ]);
});

test("translations go to their own path", async () => {
  answer = () => Response.json({ text: "Hello" });
  const { response } = await client.audio.translations
    .create({ model: "acme/whisper", file: await sound(), language: "de" } as never)
    .withResponse();
  expect(last().path).toBe("/acme/audio/translations");
  expect(last().form?.has("language")).toBe(false);
  expect(response.headers.get("x-service-translation-loss")).toBe("language");
});

test("Deepgram is sent the bytes, ElevenLabs a form, and Gemini a part", async () => {
  answer = () =>
    Response.json({
      metadata: { duration: 60 },
      results: {
        channels: [{ alternatives: [{ transcript: "Hello.", words: [] }] }],
        utterances: [{ start: 0, end: 1, transcript: "Hello." }],
      },
    });
  const bytes = wav(60);
  const deep = await client.audio.transcriptions.create({
    model: "deep/nova",
    file: await sound(bytes),
  });
  expect([deep.text, costOf(deep)]).toEqual(["Hello.", 0.0043]);
  expect(last()).toMatchObject({ path: "/deep/listen", bytes: bytes.byteLength });
  expect(last().headers.get("authorization")).toBe("Token deep-secret");
  expect(last().headers.get("content-type")).toBe("audio/wav");
  answer = () =>
    Response.json({
      language_code: "eng",
      text: "Hello.",
      audio_duration_secs: 1.5,
      words: [{ text: "Hello.", start: 0, end: 0.5, type: "word" }],
    });
  const scribe = { model: "eleven/scribe", file: await sound() };
  expect(costOf(await client.audio.transcriptions.create(scribe))).toBe(0.00015);
  const srt = await client.audio.transcriptions.create({ ...scribe, response_format: "srt" });
  expect(srt as unknown).toBe("1\n00:00:00,000 --> 00:00:00,500\nHello.\n");
  expect(last().headers.get("xi-api-key")).toBe("eleven-secret");
  expect(last().form?.get("model_id")).toBe("scribe_v1");
  answer = () =>
    Response.json({
      candidates: [{ content: { parts: [{ text: "Hello." }] }, finishReason: "STOP" }],
      usageMetadata: {
        promptTokenCount: 100,
        promptTokensDetails: [{ modality: "AUDIO", tokenCount: 64 }],
        candidatesTokenCount: 4,
      },
    });
  const gemini = await client.audio.transcriptions.create({
    model: "goog/flash",
    file: await sound(),
  });
  expect(costOf(gemini)).toBeCloseTo((36 * 0.3 + 64 + 4 * 2.5) / 1e6, 9);
  expect(last().json).toMatchObject({
    contents: [
      { parts: [{}, { inlineData: { mimeType: "audio/wav", data: wav(2).toString("base64") } }] },
    ],
  });
});

test("OpenRouter's JSON is taken and answered in its form", async () => {
  answer = () => Response.json({ text: "Hello", usage: { type: "duration", seconds: 2 } });
  const response = await gateway.post("/audio/transcriptions", {
    model: "acme/whisper",
    input_audio: { data: wav(2).toString("base64"), format: "wav" },
  });
  expect(await response.json()).toMatchObject({
    text: "Hello",
    usage: { seconds: 2, cost: 0.0002 },
  });
  const sent = { input_audio: { data: "AAAA", format: "wav" }, user: "p-1" };
  for (const temperature of [true, [0.5], {}, "warm"]) {
    const body = { model: "acme/whisper", ...sent, temperature };
    const refused = await gateway.post("/audio/transcriptions", body);
    expect(await refused.json()).toMatchObject({ error: { param: "temperature" } });
  }
  await gateway.post("/audio/transcriptions", { model: "acme/whisper", ...sent, metadata: {} });
  expect([...(last().form?.keys() ?? [])].sort()).toEqual(["file", "model", "response_format"]);
});

test("a header that lies cannot overdraw", async () => {
  answer = () => Response.json({ text: "Hi", usage: { type: "duration", seconds: 36_000 } });
  const result = await client.audio.transcriptions.create({
    model: "acme/whisper",
    file: await sound(wav(1, 36_000)),
  });
  expect(costOf(result)).toBe(0.0001);
});

const form = (fields: Record<string, string | Blob>): FormData => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
};
const postForm = (
  path: string,
  body: NonNullable<RequestInit["body"]>,
  headers: Record<string, string> = {},
) =>
  fetch(gateway.baseUrl + path, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}`, ...headers },
    body,
  });

test.each<[string, Record<string, string | Blob>, number, string]>([
  ["no file", { model: "acme/whisper" }, 400, "file"],
  ["an empty file", { model: "acme/whisper", file: new File([], "a.wav") }, 400, "file"],
  [
    "a file of another name",
    {
      model: "acme/whisper",
      file: new File([wav(1)], "a.wav"),
      second: new File([wav(1)], "b.wav"),
    },
    400,
    "file",
  ],
  [
    "an unknown format",
    { model: "acme/whisper", file: new File([wav(1)], "a.wav"), response_format: "doc" },
    400,
    "response_format",
  ],
  [
    "times without verbose_json",
    {
      model: "acme/whisper",
      file: new File([wav(1)], "a.wav"),
      "timestamp_granularities[]": "word",
    },
    400,
    "timestamp_granularities",
  ],
  ...(
    [
      ["a list of include", { "include[]": "tokens" }, "include"],
      ["logprobs in captions", { "include[]": "logprobs", response_format: "srt" }, "include"],
      ["logprobs of whisper-1", { "include[]": "logprobs" }, "include"],
      ["a way to cut", { chunking_strategy: "manual" }, "chunking_strategy"],
      [
        "a threshold",
        { "chunking_strategy[type]": "server_vad", "chunking_strategy[threshold]": "2" },
        "chunking_strategy.threshold",
      ],
      ["keywords of whisper-1", { "keywords[]": "Xyz" }, "keywords"],
      [
        "a voice without a name",
        { "known_speaker_references[]": "data:audio/wav;base64,AAAA" },
        "known_speaker_references",
      ],
      [
        "a voice by address",
        {
          "known_speaker_names[]": "agent",
          "known_speaker_references[]": "https://example.com/a.wav",
        },
        "known_speaker_references",
      ],
      [
        "times with speakers",
        {
          model: "acme/speakers",
          response_format: "verbose_json",
          "timestamp_granularities[]": "word",
        },
        "timestamp_granularities",
      ],
      ["a prompt with speakers", { model: "acme/speakers", prompt: "Hi" }, "prompt"],
      [
        "speakers in 31 seconds in one block",
        { model: "acme/speakers", file: new File([wav(31)], "a.wav") },
        "chunking_strategy",
      ],
    ] as const
  ).map(([what, more, param]): [string, Record<string, string | Blob>, number, string] => [
    what,
    { model: "acme/whisper", file: new File([wav(1)], "a.wav"), ...more },
    400,
    param,
  ]),
  [
    "a temperature",
    { model: "acme/whisper", file: new File([wav(1)], "a.wav"), temperature: "2" },
    400,
    "temperature",
  ],
  [
    "a file that is too large",
    { model: "acme/whisper", file: new File([Buffer.alloc(5 * 1024 * 1024)], "a.wav") },
    413,
    "file",
  ],
])("refuses %s before a provider is asked", async (_, fields, status, param) => {
  const before = received.length;
  const response = await postForm("/audio/transcriptions", form(fields));
  expect(response.status).toBe(status);
  const { error } = (await response.json()) as { error: { param: string | null } };
  if (status !== 413) expect(error.param).toBe(param);
  expect(received.length).toBe(before);
});

test("a voice of a known speaker may be long, and a file without a name gets one by its type", async () => {
  answer = () => Response.json({ text: "Hello" });
  const voice = `data:audio/wav;base64,${wav(5).toString("base64")}`;
  const boundary = "xyz";
  const part = (head: string, content: Buffer | string): Buffer =>
    Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
      Buffer.from(content as string),
      Buffer.from("\r\n"),
    ]);
  const body = Buffer.concat([
    part('name="model"', "acme/speakers"),
    part('name="known_speaker_names[]"', "agent"),
    part('name="known_speaker_references[]"', voice),
    part('name="chunking_strategy"', "auto"),
    part('name="file"\r\nContent-Type: audio/wav', wav(1)),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
  const response = await postForm("/audio/transcriptions", body as unknown as ReadableStream, {
    "content-type": `multipart/form-data; boundary=${boundary}`,
  });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  expect(last().form?.get("known_speaker_references[]")).toBe(voice);
  expect((last().form?.get("file") as File).name).toBe("file.wav");
});

test("reads a form whose file comes first, without length, with the boundary in its bytes", async () => {
  answer = () => Response.json({ text: "Hello" });
  const boundary = "xyz";
  const content = Buffer.concat([
    wav(1),
    Buffer.from(`--${boundary}\r\n\0--${boundary}--`),
    Buffer.alloc(64),
  ]);
  const body = Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n`,
    ),
    content,
    Buffer.from(
      `\r\n--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nacme/whisper\r\n--${boundary}--\r\n`,
    ),
  ]);
  async function* pieces() {
    for (let start = 0; start < body.length; start += 1_000)
      yield body.subarray(start, start + 1_000);
  }
  const response = await postForm("/audio/transcriptions", pieces() as unknown as ReadableStream, {
    "content-type": `multipart/form-data; boundary=${boundary}`,
  });
  expect(response.status).toBe(200);
  const file = last().form?.get("file") as File;
  expect(Buffer.from(await file.arrayBuffer()).equals(content)).toBe(true);
});

test("the sandbox hears", async () => {
  const result = await client.audio.transcriptions.create({
    model: "sandbox/transcribe:free",
    file: await sound(wav(1), "a.wav"),
  });
  expect(result.text).toContain("a.wav");
});

test("a stored file is transcribed by its id", async () => {
  const sound = wav(2);
  const stored = await client.files.create({
    file: await toFile(sound, "talk.wav", { type: "audio/wav" }),
    purpose: "user_data",
  });
  answer = () => Response.json({ text: "hello" });
  const sent = await gateway.post("/audio/transcriptions", {
    model: "acme/whisper",
    file_id: stored.id,
  });
  expect([sent.status, await sent.json()]).toMatchObject([200, { text: "hello" }]);
  const file = received.at(-1)?.form?.get("file") as File | null;
  expect([file?.name, file?.type, file?.size]).toEqual([
    "talk.wav",
    "audio/x-wav",
    sound.byteLength,
  ]);
  expect(received.at(-1)?.form?.has("file_id")).toBe(false);
});
