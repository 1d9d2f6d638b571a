import { badField, GatewayError } from "../../../../platform/kernel/errors.ts";
import {
  gatewayMembers,
  listOf,
  requireFields,
  type Fields,
  flagIn,
  isAbsent,
  textIn,
} from "../../read-fields.ts";
import { inMemory, type Upload } from "../../media/uploads.ts";
import type { SoundLength } from "../sound-length.ts";
import { fieldsOf } from "../../../../platform/kernel/json/json-members.ts";

/** The forms of a transcript. */
export const transcriptFormats = [
  "json",
  "text",
  "srt",
  "verbose_json",
  "vtt",
  "diarized_json",
] as const;
export type TranscriptFormat = (typeof transcriptFormats)[number];

/** A request to write down what a sound says, read and checked. */
export interface TranscriptionRequest {
  /** In the language that is spoken, or in English. */
  task: "transcribe" | "translate";
  /** The form of the answer's usage: OpenAI's, or that of OpenRouter's JSON. */
  form: "openai" | "openrouter";
  model: string;
  file: Upload;
  length: SoundLength;
  format: TranscriptFormat;
  language: string | undefined;
  prompt: string | undefined;
  granularities: readonly string[];
  stream: boolean;
  /** Other members, as they were sent. */
  fields: Fields;
}

/** Returns the texts of a list, which forms also write as one text. */
function texts(body: Fields, name: string): readonly string[] {
  const value = body[name];
  if (isAbsent(value)) return [];
  const list = listOf(value) ?? [value];
  if (list.every((entry) => typeof entry === "string")) return list as readonly string[];
  throw badField(name, "must be a list of strings.");
}

/** Members that the gateway reads itself. OpenAI's audio API names no end users. */
const ownMembers: ReadonlySet<string> = new Set([
  ...gatewayMembers,
  "file",
  "input_audio",
  "language",
  "prompt",
  "response_format",
  "safety_identifier",
  "stream",
  "timestamp_granularities",
  "user",
]);

/**
 * Returns the sound of a request: the file of a form, or base64 in OpenRouter's JSON. Throws
 * `GatewayError` for an empty or missing one.
 */
export function soundOf(body: Fields, uploads: readonly Upload[]): Upload {
  const [upload, ...others] = uploads;
  if (upload !== undefined && upload.field !== "file")
    throw badField(upload.field, "is no file of this request; it takes file.");
  if (others.length > 0) throw badField("file", "may be sent once; send a request for each.");
  const written = fieldsOf(body["input_audio"]);
  const { data, format } = written;
  const found =
    upload ??
    (typeof data === "string"
      ? {
          field: "file",
          filename: `audio.${typeof format === "string" ? format : "wav"}`,
          type: `audio/${typeof format === "string" ? format : "wav"}`,
          content: inMemory(Buffer.from(data.replace(/^data:[^,]*,/, ""), "base64")),
        }
      : undefined);
  if (found === undefined) {
    const hint = isAbsent(body["url"]) ? "" : " An address is not taken: its length is not known.";
    throw new GatewayError("missing_required_fields", `The body must have file.${hint}`, {
      param: "file",
      metadata: { missing_fields: ["file"] },
    });
  }
  if (found.content.size === 0) throw badField("file", "is empty; send a file with sound.");
  return found;
}

/** Reads and checks a request, whose sound was measured. Throws `GatewayError`. */
export function readTranscriptionRequest(
  body: Fields,
  {
    task,
    file,
    length,
    isJson,
  }: {
    task: TranscriptionRequest["task"];
    file: Upload;
    length: SoundLength;
    isJson: boolean;
  },
): TranscriptionRequest {
  requireFields(body, ["model"]);
  const format = formatOf(body, task);
  const granularities = texts(body, "timestamp_granularities");
  for (const each of granularities) {
    if (each !== "word" && each !== "segment")
      throw badField("timestamp_granularities", "may hold word and segment.");
  }
  if (granularities.length > 0 && format !== "verbose_json")
    throw badField("timestamp_granularities", "needs response_format verbose_json.");
  const stream = flagIn(body, "stream");
  if (stream && task === "translate") throw badField("stream", "translations are not streamed.");
  const written = body["temperature"] ?? 0;
  // Forms write numbers as text.
  const temperature = typeof written === "string" ? Number(written) : written;
  if (!(typeof temperature === "number" && temperature >= 0 && temperature <= 1))
    throw badField("temperature", "must be a number from 0 to 1.");
  checkSpeakers(body);
  checkChunking(body["chunking_strategy"]);
  for (const each of texts(body, "include")) {
    if (each !== "logprobs") throw badField("include", "may hold logprobs.");
    if (format !== "json") throw badField("include", "logprobs needs response_format json.");
  }
  return {
    task,
    form: isJson ? "openrouter" : "openai",
    model: textIn(body, "model") ?? "",
    file,
    length,
    format,
    language: textIn(body, "language"),
    prompt: textIn(body, "prompt"),
    granularities,
    stream,
    fields: Object.fromEntries(
      Object.entries(body).filter(([name, value]) => !ownMembers.has(name) && !isAbsent(value)),
    ),
  };
}

/** The most speakers whose voices are known (npm openai 7.59, `known_speaker_names`). */
const speakersMax = 4;

function checkSpeakers(body: Fields): void {
  const names = texts(body, "known_speaker_names");
  const references = texts(body, "known_speaker_references");
  if (names.length > speakersMax)
    throw badField("known_speaker_names", `may name at most ${speakersMax} speakers.`);
  if (references.length > 0 && references.length !== names.length)
    throw badField(
      "known_speaker_references",
      "must have one sample for each known_speaker_names.",
    );
  if (references.some((sample) => !sample.startsWith("data:")))
    throw badField("known_speaker_references", "must be data URLs of sound.");
}

/** The numbers of a voice activity detection, which forms write as text. */
const detectionMost: Readonly<Record<string, number>> = {
  prefix_padding_ms: Number.MAX_SAFE_INTEGER,
  silence_duration_ms: Number.MAX_SAFE_INTEGER,
  threshold: 1,
};

/** Returns an object that a form writes as text of JSON. */
function ofText(value: unknown): unknown {
  if (typeof value !== "string" || !value.startsWith("{")) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Throws unless a sound is to be cut by `auto` or by an object of `server_vad`. */
function checkChunking(value: unknown): void {
  if (isAbsent(value) || value === "auto") return;
  const { type, ...numbers } = fieldsOf(ofText(value));
  if (type !== "server_vad")
    throw badField("chunking_strategy", "must be auto, or an object whose type is server_vad.");
  for (const [name, written] of Object.entries(numbers)) {
    const most = detectionMost[name];
    const number = typeof written === "string" ? Number(written) : written;
    if (most !== undefined && !(typeof number === "number" && number >= 0 && number <= most))
      throw badField(`chunking_strategy.${name}`, `must be a number from 0 to ${most}.`);
  }
}

function formatOf(body: Fields, task: TranscriptionRequest["task"]): TranscriptFormat {
  const written = textIn(body, "response_format") ?? "json";
  const format = transcriptFormats.find((known) => known === written);
  if (format === undefined || (task === "translate" && format === "diarized_json"))
    throw badField("response_format", `must be one of ${transcriptFormats.join(", ")}.`);
  return format;
}
