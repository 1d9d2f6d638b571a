import { z } from "zod";
import { badField, GatewayError } from "../../../platform/kernel/errors.ts";
import { MediaResult } from "../../media-result.ts";
import { defineTool, idempotencyField } from "../../tool.ts";
import { answeredCall, answeredFields, askModel } from "./answered-call.ts";

const speechFormats = ["mp3", "opus", "aac", "flac", "wav"] as const;

const soundTypes: Readonly<Record<(typeof speechFormats)[number], string>> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
};

const eventSchema = z.looseObject({
  type: z.string(),
  audio: z.string().optional(),
  usage: z.unknown().optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});

/** Reads the events of speech. Throws `bad_gateway` where the provider broke it off. */
function spokenIn(text: string): { sound: Buffer; usage: unknown } {
  const pieces: Buffer[] = [];
  let usage: unknown;
  for (const line of text.split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const event = eventSchema.parse(JSON.parse(line.slice("data: ".length)));
    if (event.error !== undefined) throw new GatewayError("bad_gateway", event.error.message);
    if (event.audio !== undefined) pieces.push(Buffer.from(event.audio, "base64"));
    if (event.type === "speech.audio.done") ({ usage } = event);
  }
  return { sound: Buffer.concat(pieces), usage };
}

/** The first bytes of sound that a provider makes in place of what was asked for. */
const isWav = (sound: Buffer): boolean => sound.toString("latin1", 0, 4) === "RIFF";

export const generateSpeech = defineTool({
  name: "generate_speech",
  title: "Speak a text",
  description:
    "Speaks a text of up to 4,096 characters; the sound is in an audio block. list_models with category audio lists the models and " +
    "their prices.",
  scope: "inference",
  effect: "adds",
  endpoint: "POST /audio/speech",
  output: z.looseObject({
    media_type: z.string(),
    bytes: z.int().describe("Size of the sound."),
    ...answeredFields,
  }),
  input: z.object({
    model: z.string().min(1).max(256).describe("Id of a model that speaks, from list_models."),
    input: z.string().min(1).max(4_096).describe("The text."),
    voice: z.string().max(200).optional().describe("Name or id of a voice of the model."),
    instructions: z.string().max(8_192).optional().describe("How the text is to be spoken."),
    speed: z
      .number()
      .min(0.25, "must be at least 0.25")
      .max(4, "must be at most 4")
      .optional()
      .describe("Speed, 0.25 to 4."),
    response_format: z
      .enum(speechFormats, `must be one of ${speechFormats.join(", ")}`)
      .default("mp3")
      .describe("Format of the sound."),
    idempotency_key: idempotencyField.idempotency_key.describe(
      "Idempotency key of this call, such as a UUID. A repeated call with the same key speaks nothing more, and is refused: sound is " +
        "not kept.",
    ),
  }),
  async run({ idempotency_key: idempotencyKey, ...given }, context) {
    const body = { ...given, stream_format: "sse" };
    const answer = await askModel(context, {
      endpoint: "POST /audio/speech",
      body,
      idempotencyKey,
    });
    const { sound, usage } = spokenIn(String(answer.body));
    const mimeType = isWav(sound) ? "audio/wav" : soundTypes[given.response_format];
    return new MediaResult(
      { media_type: mimeType, bytes: sound.byteLength, ...answeredCall(answer, usage) },
      [{ type: "audio", data: sound.toString("base64"), mimeType }],
    );
  },
});

const transcriptFormats = ["json", "srt", "vtt", "verbose_json", "diarized_json"] as const;

/** Formats of sound by their media types, where the names differ. */
const formatOfType: Readonly<Record<string, string>> = {
  mpeg: "mp3",
  "x-wav": "wav",
  wave: "wav",
  mp4: "m4a",
  "x-m4a": "m4a",
  "x-flac": "flac",
};

/** Returns the format of sound in base64: that of its data URL, or the one that was named. */
function formatOf(audio: string, named: string | undefined): string {
  const [, type] = /^data:(?:audio|video)\/([\w.+-]+)/i.exec(audio) ?? [];
  const found = named ?? type?.toLowerCase() ?? "wav";
  return formatOfType[found] ?? found;
}

/** Returns how the endpoint is given the sound. Throws `bad_request` for none, and for two. */
function soundIn({
  audio,
  format,
  file_id: id,
}: {
  audio?: string | undefined;
  format?: string | undefined;
  file_id?: string | undefined;
}): Record<string, unknown> {
  if ((audio === undefined) === (id === undefined))
    throw badField("audio", "send either audio or file_id.");
  return audio === undefined
    ? { file_id: id }
    : { input_audio: { data: audio, format: formatOf(audio, format) } };
}

const answerSchema = z.looseObject({ text: z.string(), usage: z.unknown().optional() });

export const transcribeAudio = defineTool({
  name: "transcribe_audio",
  title: "Transcribe sound",
  description:
    "Writes down what a sound says, as text, as captions, or with times and speakers. The sound is base64 of up to 3 MB, or a file of " +
    "the workspace. list_models with category audio lists the models and their prices.",
  scope: "inference",
  effect: "adds",
  endpoint: "POST /audio/transcriptions",
  output: z.looseObject({ text: z.string().describe("What was said."), ...answeredFields }),
  input: z.object({
    model: z.string().min(1).max(256).describe("Id of a model that transcribes, from list_models."),
    audio: z.string().min(1).optional().describe("The sound as base64 or as a data URL."),
    format: z
      .string()
      .regex(/^[a-z0-9]{1,10}$/, "must be a format such as wav or mp3")
      .optional()
      .describe("Format of the sound, such as wav or mp3. Default: that of the data URL, or wav."),
    file_id: z.string().min(1).optional().describe("Id of a file of the workspace, in its place."),
    language: z.string().max(100).optional().describe("Language that is spoken, such as en."),
    prompt: z.string().max(8_192).optional().describe("Names and words that may occur."),
    response_format: z
      .enum(transcriptFormats, `must be one of ${transcriptFormats.join(", ")}`)
      .default("json")
      .describe("srt and vtt: captions in text. verbose_json: times. diarized_json: speakers."),
    ...idempotencyField,
  }),
  async run({ idempotency_key: idempotencyKey, audio, format, file_id, ...given }, context) {
    const answer = await askModel(context, {
      endpoint: "POST /audio/transcriptions",
      body: { ...given, ...soundIn({ audio, format, file_id }) },
      idempotencyKey,
    });
    const body = typeof answer.body === "string" ? { text: answer.body } : answer.body;
    const heard = answerSchema.parse(body);
    return { ...heard, ...answeredCall(answer, heard.usage) };
  },
});
