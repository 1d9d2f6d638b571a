import { badField } from "../../../platform/kernel/errors.ts";
import type { Loss } from "../../canonical/request.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { encodeForm, encodeJson, formFieldsOf } from "../media/uploads.ts";
import { soundTypes, type SoundDialect, type SpeechExchange } from "./sound-dialect.ts";
import type { Segment, Transcript, Word } from "./transcripts/transcript.ts";
import type {
  TranscriptFormat,
  TranscriptionRequest,
} from "./transcripts/transcription-request.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** Models that answer in JSON alone, and those that tell who speaks (npm openai 7.55). */
const isJsonOnly = (name: string): boolean => /^(?:gpt-4o|gpt-)(?:.*)transcribe/.test(name);
const tellsSpeakers = (name: string): boolean => name.includes("diarize");

/** OpenAI's own models of transcription; other servers have other bounds. */
const isOwnModel = (name: string): boolean =>
  name === "whisper-1" || /^gpt-(?:.*)transcribe/.test(name);

/** The longest sound that is transcribed with speakers in one block. */
const undividedMs = 30_000;

/** Throws for what OpenAI's page of a model says that it refuses (npm openai 7.59). */
function checkModel(
  name: string,
  { fields, prompt, length, granularities }: TranscriptionRequest,
): void {
  if (!isOwnModel(name)) return;
  const isPlain = /^gpt-transcribe/.test(name);
  for (const field of ["keywords", "languages"])
    if (fields[field] !== undefined && !isPlain)
      throw badField(field, `${name} takes none; gpt-transcribe does.`);
  if (fields["include"] !== undefined && (!/^gpt-4o/.test(name) || tellsSpeakers(name)))
    throw badField("include", `${name} tells no logprobs.`);
  if (!tellsSpeakers(name)) return;
  if (prompt !== undefined) throw badField("prompt", `${name} takes none.`);
  if (granularities.length > 0) throw badField("timestamp_granularities", `${name} takes none.`);
  const isLong = length.isKnown && length.heldMs > undividedMs;
  if (isLong && fields["chunking_strategy"] === undefined)
    throw badField("chunking_strategy", `${name} needs it for more than 30 seconds; send auto.`);
}

/** The formats of OpenAI's own speech. */
const speechFormats = ["mp3", "opus", "aac", "flac", "wav", "pcm"];

/** OpenAI's audio API. Source: https://platform.openai.com/docs/api-reference/audio */
export const openaiAudio: SoundDialect = {
  transcribe(request, { route }) {
    const { upstreamModel } = route;
    const { file, task } = request;
    checkModel(upstreamModel, request);
    const asked = askedFormat(request, upstreamModel);
    const keepsTimes = asked === "verbose_json" && request.granularities.length > 0;
    const members = withoutUndefined<Fields>({
      model: upstreamModel,
      ...request.fields,
      language: task === "translate" ? undefined : request.language,
      prompt: request.prompt,
      response_format: asked,
      timestamp_granularities: keepsTimes ? request.granularities : undefined,
      stream: request.stream ? true : undefined,
    });
    return {
      path: task === "translate" ? "/audio/translations" : "/audio/transcriptions",
      body: encodeForm([
        ...Object.entries(members).flatMap(([name, value]) => formFieldsOf(name, value)),
        ["file", file],
      ]),
      losses: [
        ...lossesOfFormat(request, asked),
        ...(task === "translate" && request.language !== undefined
          ? [{ field: "language", reason: "translations take none" }]
          : []),
      ],
      read: readTranscript,
    };
  },
  speak(request, { route }): SpeechExchange {
    const { upstreamModel } = route;
    const isOld = upstreamModel.startsWith("tts-1");
    const format = request.format ?? "mp3";
    const isOwn = /^(?:tts-1|gpt-.*tts)/.test(upstreamModel);
    if (isOwn && !speechFormats.includes(format))
      throw badField("response_format", `${upstreamModel} makes ${speechFormats.join(", ")}.`);
    // Models that are billed by token count them in events alone.
    const inEvents = request.asEvents ? !isOld : /^gpt-/.test(upstreamModel);
    const json = withoutUndefined<Fields>({
      ...request.fields,
      model: upstreamModel,
      input: request.input,
      voice: request.isVoiceId ? { id: request.voice } : request.voice || "alloy",
      instructions: isOld ? undefined : request.instructions,
      response_format: request.format,
      speed: request.speed === 1 ? undefined : request.speed,
      stream_format: inEvents ? "sse" : undefined,
    });
    const type = soundTypes[format] ?? "application/octet-stream";
    return {
      path: "/audio/speech",
      body: { parts: encodeJson(json), type: "application/json" },
      losses:
        isOld && request.instructions !== undefined
          ? [{ field: "instructions", reason: `${upstreamModel} does not take them` }]
          : [],
      answer: { form: inEvents ? "events" : "bytes", type },
    };
  },
};

/** Returns the form that a model is asked for, from which the client's own is made here. */
function askedFormat({ format }: TranscriptionRequest, name: string): TranscriptFormat {
  if (tellsSpeakers(name)) return format === "json" || format === "text" ? "json" : "diarized_json";
  if (format === "json" || format === "text" || isJsonOnly(name)) return "json";
  return "verbose_json";
}

/** Names what the form that was asked for lacks. */
function lossesOfFormat({ format }: TranscriptionRequest, asked: TranscriptFormat): Loss[] {
  if (format === "diarized_json" && asked !== "diarized_json")
    return [{ field: "response_format", reason: "the model does not tell who speaks" }];
  const needsTimes = format === "srt" || format === "vtt" || format === "verbose_json";
  return needsTimes && asked === "json"
    ? [{ field: "response_format", reason: "the model tells no times, so there is one segment" }]
    : [];
}

/** Reads an answer in any of OpenAI's JSON forms. */
function readTranscript(body: object): Transcript | undefined {
  const { text, language, duration, segments, words, usage, task: _, ...more } = fieldsOf(body);
  if (typeof text !== "string") return undefined;
  return withoutUndefined<Transcript>({
    text,
    language: typeof language === "string" ? language : undefined,
    seconds: typeof duration === "number" ? duration : undefined,
    segments: listOf(segments)?.map(segmentOf),
    words: listOf(words)?.map((word) => fieldsOf(word) as unknown as Word),
    usage: usage ?? undefined,
    more,
  });
}

function segmentOf(value: unknown): Segment {
  const { start, end, text, speaker, ...more } = fieldsOf(value);
  return {
    start: typeof start === "number" ? start : 0,
    end: typeof end === "number" ? end : 0,
    text: typeof text === "string" ? text : "",
    ...(typeof speaker === "string" && { speaker }),
    more,
  };
}
