import { readUsage } from "../../dialects/google-generate/usage.ts";
import { badRequest, withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { googleModelName } from "../../providers/endpoint.ts";
import { totalInputTokens, totalOutputTokens } from "../../../platform/kernel/usage.ts";
import { listOf, type Fields } from "../read-fields.ts";
import { encodeJson } from "../media/uploads.ts";
import { InlineFile } from "../media/inline-file.ts";
import { lossesOf, type SoundDialect } from "./sound-dialect.ts";
import type { Transcript } from "./transcripts/transcript.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

const pathOf = (name: string): string => `/${googleModelName(name)}:generateContent`;

/** Types of sound by the ends of file names (ai.google.dev/gemini-api/docs/audio). */
const typeOfName = (filename: string): string => {
  const end = /\.(\w+)$/.exec(filename)?.[1]?.toLowerCase() ?? "";
  return (
    { mp3: "audio/mp3", m4a: "audio/aac", mpga: "audio/mp3", mpeg: "audio/mp3" }[end] ??
    `audio/${end || "wav"}`
  );
};

/** Gemini: sound as a part of a prompt, and sound as the answer. */
export const googleAudio: SoundDialect = {
  transcribe(request, { route }) {
    const { file, task, language, prompt } = request;
    const spoken = language === undefined ? "" : ` The language is ${language}.`;
    const context = prompt === undefined ? "" : ` Context that may help with names: ${prompt}`;
    const ask =
      task === "translate"
        ? "Translate what is said in this audio into English."
        : "Transcribe this audio word by word, in the language that is spoken.";
    const temperature = request.fields["temperature"];
    const json = {
      // Forms write numbers as text.
      ...(temperature !== undefined && {
        generationConfig: { temperature: Number(temperature) },
      }),
      contents: [
        {
          role: "user",
          parts: [
            { text: `${ask} Answer with the text alone.${spoken}${context}` },
            {
              inlineData: {
                mimeType: /^audio\//.test(file.type ?? "") ? file.type : typeOfName(file.filename),
                data: new InlineFile(file.content),
              },
            },
          ],
        },
      ],
    };
    const needsTimes = request.format !== "json" && request.format !== "text";
    return {
      path: pathOf(route.upstreamModel),
      body: { parts: encodeJson(json), type: "application/json" },
      losses: [
        ...lossesOf(request.fields, { known: ["temperature"], vendor: "Gemini" }),
        ...(needsTimes
          ? [{ field: "response_format", reason: "Gemini tells no times, so there is one segment" }]
          : []),
      ],
      read: readGenerated,
    };
  },
  speak(request, { route }) {
    const { format, voice, instructions } = request;
    const text = instructions === undefined ? request.input : `${instructions}: ${request.input}`;
    if (format !== undefined && format !== "wav" && format !== "pcm" && format !== "mp3")
      throw badRequest("response_format", "must be wav or pcm for this provider.");
    const speechConfig = { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice || "Kore" } } };
    const json = {
      contents: [{ role: "user", parts: [{ text }] }],
      generationConfig: { responseModalities: ["AUDIO"], speechConfig },
    };
    return {
      path: pathOf(route.upstreamModel),
      body: { parts: [JSON.stringify(json)], type: "application/json" },
      losses: [
        ...lossesOf(request.fields, { known: [], vendor: "Gemini" }),
        ...(request.speed === 1 ? [] : [{ field: "speed", reason: "Gemini has no such field" }]),
        ...(format === "mp3"
          ? [{ field: "response_format", reason: "Gemini makes samples, sent as WAV" }]
          : []),
      ],
      answer: { form: "gemini", wrap: format !== "pcm" },
    };
  },
};

/** Reads a transcript that a Gemini model wrote. */
function readGenerated(body: object): Transcript | undefined {
  const { candidates, usageMetadata } = fieldsOf(body);
  const [candidate] = listOf(candidates) ?? [];
  if (candidate === undefined) return undefined;
  const parts = listOf(fieldsOf(fieldsOf(candidate)["content"])["parts"]) ?? [];
  const text = parts
    .map(fieldsOf)
    .filter(({ thought }) => thought !== true)
    .map(({ text: piece }) => (typeof piece === "string" ? piece : ""))
    .join("")
    .trim();
  return withoutUndefined<Transcript>({ text, usage: tokensOf(usageMetadata) });
}

/** Returns Gemini's usage in the form of OpenAI's transcriptions. */
function tokensOf(written: unknown): Fields | undefined {
  const usage = readUsage(written)?.usage;
  if (usage === undefined) return undefined;
  const input = totalInputTokens(usage);
  const audio = usage.inputAudioTokens ?? 0;
  return {
    input_tokens: input,
    output_tokens: totalOutputTokens(usage),
    input_token_details: { audio_tokens: audio, text_tokens: input - audio },
  };
}

/** Returns the samples of an answer, and its usage; undefined where there are none. */
export function spokenByGemini(
  body: unknown,
): { pcm: Buffer; tokens: { input: number; output: number } | undefined } | undefined {
  const { candidates, usageMetadata } = fieldsOf(body);
  const [candidate] = listOf(candidates) ?? [];
  const parts = listOf(fieldsOf(fieldsOf(candidate)["content"])["parts"]) ?? [];
  const pieces = parts.flatMap((part) => {
    const { data } = fieldsOf(fieldsOf(part)["inlineData"]);
    return typeof data === "string" ? [Buffer.from(data, "base64")] : [];
  });
  if (pieces.length === 0) return undefined;
  const usage = readUsage(usageMetadata)?.usage;
  return {
    pcm: Buffer.concat(pieces),
    tokens: usage && { input: totalInputTokens(usage), output: totalOutputTokens(usage) },
  };
}
