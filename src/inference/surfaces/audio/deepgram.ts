import { badRequest, withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { lossesOf, soundTypes, type SoundDialect } from "./sound-dialect.ts";
import type { Segment, Transcript, Word } from "./transcripts/transcript.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

const query = (values: Fields): string =>
  new URLSearchParams(
    Object.entries(withoutUndefined<Fields>(values)).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]),
  ).toString();

/** Deepgram's names of OpenAI's formats, as encoding, container and rate. */
const encodings: Readonly<Record<string, Fields>> = {
  mp3: { encoding: "mp3" },
  opus: { encoding: "opus", container: "ogg" },
  aac: { encoding: "aac" },
  flac: { encoding: "flac" },
  wav: { encoding: "linear16", container: "wav", sample_rate: 24_000 },
  pcm: { encoding: "linear16", container: "none", sample_rate: 24_000 },
  mulaw: { encoding: "mulaw", container: "none" },
};

/** Deepgram. Source: https://developers.deepgram.com/reference */
export const deepgram: SoundDialect = {
  transcribe(request, { route }) {
    if (request.task === "translate")
      throw badRequest("model", "does not translate; call /audio/transcriptions.");
    const wantsSpeakers = request.format === "diarized_json";
    const path = query({
      model: route.upstreamModel,
      smart_format: true,
      utterances: true,
      diarize: wantsSpeakers ? true : undefined,
      language: request.language,
      detect_language: request.language === undefined ? true : undefined,
    });
    const { type } = request.file;
    return {
      path: `/listen?${path}`,
      body: { parts: [request.file.content], type: type ?? "application/octet-stream" },
      losses: [
        ...lossesOf(request.fields, { known: [], vendor: "Deepgram" }),
        ...(request.prompt === undefined
          ? []
          : [{ field: "prompt", reason: "Deepgram has no such field" }]),
      ],
      read: readListen,
    };
  },
  speak(request, { route }) {
    const format = request.format ?? "mp3";
    const encoding = encodings[format];
    if (encoding === undefined)
      throw badRequest("response_format", `must be one of ${Object.keys(encodings).join(", ")}.`);
    // A voice is a model at Deepgram, such as aura-2-thalia-en.
    const model = request.voice.startsWith("aura") ? request.voice : route.upstreamModel;
    return {
      path: `/speak?${query({ model, ...encoding })}`,
      body: { parts: [JSON.stringify({ text: request.input })], type: "application/json" },
      losses: [
        ...lossesOf(request.fields, { known: [], vendor: "Deepgram" }),
        ...(request.instructions === undefined
          ? []
          : [{ field: "instructions", reason: "Deepgram has no such field" }]),
        ...(request.speed === 1 ? [] : [{ field: "speed", reason: "Deepgram has no such field" }]),
        ...(request.voice === "" || model === request.voice
          ? []
          : [{ field: "voice", reason: "Deepgram's voices are its models" }]),
      ],
      answer: { form: "bytes", type: soundTypes[format] ?? "application/octet-stream" },
    };
  },
};

const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0);

/** Reads an answer of `/listen`: the first alternative of the first channel. */
function readListen(body: object): Transcript | undefined {
  const { metadata, results } = fieldsOf(body);
  const { channels, utterances } = fieldsOf(results);
  const [channel] = listOf(channels) ?? [];
  const { alternatives, detected_language: language } = fieldsOf(channel);
  const [best] = listOf(alternatives) ?? [];
  const { transcript, words } = fieldsOf(best);
  if (typeof transcript !== "string") return undefined;
  const { duration } = fieldsOf(metadata);
  return withoutUndefined<Transcript>({
    text: transcript,
    language: typeof language === "string" ? language : undefined,
    seconds: typeof duration === "number" ? duration : undefined,
    segments: listOf(utterances)?.map((value): Segment => {
      const { start, end, transcript: said, speaker } = fieldsOf(value);
      return {
        start: numberOf(start),
        end: numberOf(end),
        text: String(said ?? ""),
        ...(speaker !== undefined && { speaker: String(speaker) }),
      };
    }),
    words: listOf(words)?.map((value): Word => {
      const { word, punctuated_word: written, start, end } = fieldsOf(value);
      return { word: String(written ?? word), start: numberOf(start), end: numberOf(end) };
    }),
  });
}
