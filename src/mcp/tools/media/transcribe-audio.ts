import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { defineTool, idempotencyField } from "../../tool.ts";
import { answeredCall, answeredFields, askModel } from "./answered-call.ts";

const formats = ["json", "srt", "vtt", "verbose_json", "diarized_json"] as const;

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
    throw new GatewayError("bad_request", "audio: send either audio or file_id.", {
      param: "audio",
    });
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
      .enum(formats, `must be one of ${formats.join(", ")}`)
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
