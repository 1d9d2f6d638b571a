import { z } from "zod";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { MediaResult } from "../../media-result.ts";
import { defineTool, idempotencyField } from "../../tool.ts";
import { answeredCall, answeredFields, askModel } from "./answered-call.ts";

const formats = ["mp3", "opus", "aac", "flac", "wav"] as const;

const soundTypes: Readonly<Record<(typeof formats)[number], string>> = {
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
      .enum(formats, `must be one of ${formats.join(", ")}`)
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
