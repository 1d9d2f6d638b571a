import { badRequest, withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { encodeForm, formFieldsOf } from "../media/uploads.ts";
import { lossesOf, soundTypes, type SoundDialect, type SpeechAnswer } from "./sound-dialect.ts";
import type { Segment, Transcript, Word } from "./transcripts/transcript.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** ElevenLabs' names of OpenAI's formats. */
const outputs: Readonly<Record<string, string>> = {
  mp3: "mp3_44100_128",
  opus: "opus_48000_128",
  wav: "pcm_24000",
  pcm: "pcm_24000",
  mulaw: "ulaw_8000",
};

/** ElevenLabs. Source: https://elevenlabs.io/docs/api-reference */
export const elevenlabs: SoundDialect = {
  transcribe(request, { route }) {
    if (request.task === "translate")
      throw badRequest("model", "does not translate; call /audio/transcriptions.");
    const known = ["num_speakers", "tag_audio_events"];
    const members = withoutUndefined<Fields>({
      model_id: route.upstreamModel,
      language_code: request.language,
      diarize: request.format === "diarized_json" ? true : undefined,
      timestamps_granularity: "word",
      ...Object.fromEntries(
        Object.entries(request.fields).filter(([name]) => known.includes(name)),
      ),
    });
    return {
      path: "/speech-to-text",
      body: encodeForm([
        ...Object.entries(members).flatMap(([name, value]) => formFieldsOf(name, value)),
        ["file", request.file],
      ]),
      losses: [
        ...lossesOf(request.fields, { known, vendor: "ElevenLabs" }),
        ...(request.prompt === undefined
          ? []
          : [{ field: "prompt", reason: "ElevenLabs has no such field" }]),
      ],
      read: readSpeechToText,
    };
  },
  speak(request, { route }) {
    const format = request.format ?? "mp3";
    const output = outputs[format];
    if (output === undefined)
      throw badRequest("response_format", `must be one of ${Object.keys(outputs).join(", ")}.`);
    if (request.voice === "") throw badRequest("voice", "is required: the id of a voice.");
    const json = withoutUndefined<Fields>({
      text: request.input,
      model_id: route.upstreamModel,
      voice_settings: request.speed === 1 ? undefined : { speed: request.speed },
    });
    const answer: SpeechAnswer =
      output === "pcm_24000"
        ? { form: "pcm", wrap: format === "wav" }
        : { form: "bytes", type: soundTypes[format] ?? "application/octet-stream" };
    return {
      path: `/text-to-speech/${encodeURIComponent(request.voice)}/stream?output_format=${output}`,
      body: { parts: [JSON.stringify(json)], type: "application/json" },
      losses: [
        ...lossesOf(request.fields, { known: [], vendor: "ElevenLabs" }),
        ...(request.instructions === undefined
          ? []
          : [{ field: "instructions", reason: "ElevenLabs has no such field" }]),
      ],
      answer,
    };
  },
};

interface Heard extends Word {
  speaker: string | undefined;
  /** Whether it is a word, as opposed to the space between two. */
  isWord: boolean;
}

function wordOf(value: unknown): Heard {
  const { text, start, end, type, speaker_id: speaker } = fieldsOf(value);
  const number = (time: unknown): number => (typeof time === "number" ? time : 0);
  return {
    word: String(text ?? ""),
    start: number(start),
    end: number(end),
    speaker: typeof speaker === "string" ? speaker : undefined,
    isWord: type === undefined || type === "word",
  };
}

/** Seconds of silence, and words, after which a new segment begins. */
const pauseSeconds = 0.8;
const segmentWordsMax = 24;

/** Groups words to segments: at pauses, at another speaker, and before they become long. */
function segmentsOf(words: readonly Heard[]): Segment[] {
  const segments: (Segment & { count: number })[] = [];
  for (const { word, start, end, speaker } of words) {
    const last = segments.at(-1);
    const joins =
      last !== undefined &&
      last.speaker === speaker &&
      start - last.end < pauseSeconds &&
      last.count < segmentWordsMax;
    if (joins) {
      last.text += ` ${word}`;
      last.end = end;
      last.count += 1;
    } else
      segments.push({
        start,
        end,
        text: word,
        count: 1,
        ...(speaker !== undefined && { speaker }),
      });
  }
  return segments.map(({ count: _, ...segment }) => segment);
}

/** Reads an answer of `/speech-to-text`. */
function readSpeechToText(body: object): Transcript | undefined {
  const { text, language_code: language, words, audio_duration_secs: seconds } = fieldsOf(body);
  if (typeof text !== "string") return undefined;
  const heard = (listOf(words) ?? []).map(wordOf).filter(({ isWord }) => isWord);
  return {
    text,
    ...(typeof language === "string" && { language }),
    ...(typeof seconds === "number" && { seconds }),
    segments: segmentsOf(heard),
    words: heard.map(({ word, start, end }) => ({ word, start, end })),
  };
}
