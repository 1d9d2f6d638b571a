import { openaiError } from "./plain-surfaces.ts";
import { patternPng, sampleRate, tonePcm } from "./pictures.ts";

type Handler = (request: Request) => Promise<Response>;

const refused = (message: string): Response =>
  Response.json(openaiError({ status: 400, message, requestId: "sandbox" }), { status: 400 });

/** Returns the fields of a request, and its files, as JSON or as a form. */
async function read(request: Request): Promise<{ fields: Map<string, unknown>; files: File[] }> {
  if (request.headers.get("content-type")?.startsWith("application/json") === true)
    return { fields: new Map(Object.entries(Object((await request.json()) as object))), files: [] };
  const form = await request.formData();
  const fields = new Map<string, unknown>();
  const files: File[] = [];
  for (const [name, value] of form) {
    if (typeof value === "string") fields.set(name, value);
    else files.push(value as File);
  }
  return { fields, files };
}

const textOf = (value: unknown, otherwise = ""): string =>
  typeof value === "string" ? value : otherwise;

const sizeOf = (value: unknown): [number, number] | undefined => {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(textOf(value)) ?? [];
  return width === undefined ? undefined : [Number(width), Number(height)];
};

/** Returns usage that the length of a prompt explains. */
const imageUsage = (prompt: string, count: number) => {
  const input = Math.ceil(prompt.length / 4);
  const output = 272 * count;
  return {
    input_tokens: input,
    input_tokens_details: { text_tokens: input, image_tokens: 0 },
    output_tokens: output,
    total_tokens: input + output,
  };
};

const sse = (events: readonly object[]): Response =>
  new Response(
    events
      .map(
        (event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`,
      )
      .join(""),
    { headers: { "content-type": "text/event-stream" } },
  );

/** OpenAI's Images API: a pattern of the prompt's hash, the same for the same prompt. */
const images =
  (name: "image_generation" | "image_edit"): Handler =>
  async (request) => {
    const { fields, files } = await read(request);
    const prompt = textOf(fields.get("prompt"), files[0]?.name ?? "");
    const count = Number(fields.get("n") ?? 1);
    if (!(count >= 1 && count <= 10)) return refused("n must be from 1 to 10.");
    const size = sizeOf(fields.get("size"));
    const picture = (index: number): string =>
      Buffer.from(patternPng(`${prompt}${index === 0 ? "" : ` #${index}`}`, size)).toString(
        "base64",
      );
    const usage = imageUsage(prompt, count);
    if (fields.get("stream") !== true && fields.get("stream") !== "true")
      return Response.json({
        created: 1_767_225_600,
        data: Array.from({ length: count }, (_, index) => ({ b64_json: picture(index) })),
        usage,
      });
    const partials = Number(fields.get("partial_images") ?? 0);
    const settings = {
      created_at: 1_767_225_600,
      size: textOf(fields.get("size"), "auto"),
      quality: textOf(fields.get("quality"), "auto"),
      background: textOf(fields.get("background"), "auto"),
      output_format: "png",
    };
    return sse([
      ...Array.from({ length: partials }, (_, index) => ({
        type: `${name}.partial_image`,
        b64_json: picture(index + 1),
        partial_image_index: index,
        ...settings,
      })),
      ...Array.from({ length: count }, (_, index) => ({
        type: `${name}.completed`,
        b64_json: picture(index),
        ...settings,
        ...(index === count - 1 && { usage }),
      })),
    ]);
  };

/** OpenAI's transcriptions: a text that names the file and its bytes. */
const transcriptions: Handler = async (request) => {
  const { fields, files } = await read(request);
  const [file] = files;
  if (file === undefined || file.size === 0) return refused("file is required.");
  const text = `The sandbox heard ${file.size} bytes of ${file.name}.`;
  const seconds = 1;
  const words = text.split(" ");
  const each = seconds / words.length;
  if (fields.get("stream") === "true")
    return sse([
      ...words.map((word, index) => ({
        type: "transcript.text.delta",
        delta: index === 0 ? word : ` ${word}`,
      })),
      { type: "transcript.text.done", text, usage: { type: "duration", seconds } },
    ]);
  if (fields.get("response_format") !== "verbose_json")
    return Response.json({ text, usage: { type: "duration", seconds } });
  return Response.json({
    task: "transcribe",
    language: "english",
    duration: seconds,
    text,
    segments: [{ id: 0, start: 0, end: seconds, text }],
    words: words.map((word, index) => ({ word, start: index * each, end: (index + 1) * each })),
    usage: { type: "duration", seconds },
  });
};

/** OpenAI's speech: a tone for each character, as WAV or as raw samples. */
const speech: Handler = async (request) => {
  const { fields } = await read(request);
  const input = textOf(fields.get("input"));
  if (input === "") return refused("input is required.");
  const pcm = tonePcm(input);
  const isRaw = fields.get("response_format") === "pcm";
  const sound = isRaw ? Uint8Array.from(pcm) : wav(pcm);
  if (fields.get("stream_format") === "sse")
    return sse([
      { type: "speech.audio.delta", audio: Buffer.from(sound).toString("base64") },
      {
        type: "speech.audio.done",
        usage: {
          input_tokens: Math.ceil(input.length / 4),
          output_tokens: input.length,
          total_tokens: Math.ceil(input.length / 4) + input.length,
        },
      },
    ]);
  return new Response(sound, { headers: { "content-type": isRaw ? "audio/pcm" : "audio/wav" } });
};

/** Returns samples with the header of a WAV file of one channel. */
function wav(pcm: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + pcm.byteLength, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(sampleRate, 24);
  head.writeUInt32LE(sampleRate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(pcm.byteLength, 40);
  return Uint8Array.from(Buffer.concat([head, pcm]));
}

/** The sandbox's surfaces of pictures and sound, by method and path. */
export const mediaHandlers: Readonly<Record<string, Handler>> = {
  "POST /v1/images/generations": images("image_generation"),
  "POST /v1/images/edits": images("image_edit"),
  "POST /v1/images/variations": images("image_generation"),
  "POST /v1/audio/transcriptions": transcriptions,
  "POST /v1/audio/translations": transcriptions,
  "POST /v1/audio/speech": speech,
};
