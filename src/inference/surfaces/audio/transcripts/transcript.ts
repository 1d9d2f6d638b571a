import {
  totalInputTokens,
  totalOutputTokens,
  type Usage,
} from "../../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";
import { CountReader, withoutUndefined } from "../../../dialects/shared/wire-fields.ts";
import type { Fields } from "../../read-fields.ts";
import type { TranscriptionRequest } from "./transcription-request.ts";
import { fieldsOf } from "../../../../platform/kernel/json/json-members.ts";

/** A piece of a transcript with its time in seconds. */
export interface Segment {
  start: number;
  end: number;
  text: string;
  speaker?: string;
  /** Other members, as the provider wrote them. */
  more?: Fields;
}

/** A word with its time in seconds. */
export interface Word {
  word: string;
  start: number;
  end: number;
}

/** What a provider heard. */
export interface Transcript {
  text: string;
  language?: string;
  /** Seconds, as the provider measured them. */
  seconds?: number;
  segments?: readonly Segment[];
  words?: readonly Word[];
  /** The provider's usage, as it wrote it. */
  usage?: unknown;
  /** Other members of its answer that its client is shown. */
  more?: Fields;
}

/** Tokens of a second of sound at OpenAI, for prices by token where none were counted. */
const tokensPerSecond = 10;

/** How a transcript is metered at a route. */
export interface SoundMetering {
  /** Whether the route has a price of time, so that no tokens are estimated. */
  byTime: boolean;
}

/**
 * Returns the usage that a transcript is charged by: the provider's tokens or time, bounded by what
 * the file can hold, or else the file's own length.
 */
export function meteredTranscript(
  { text, seconds, usage: written }: Pick<Transcript, "text" | "seconds" | "usage">,
  { request, byTime }: { request: Pick<TranscriptionRequest, "length"> } & SoundMetering,
): MeteredUsage {
  // Mistral counts the seconds under another name (docs.mistral.ai/api, audio.transcriptions).
  const { type, prompt_audio_seconds: heard, seconds: counted = heard } = fieldsOf(written);
  const reportedSeconds = type === "duration" || counted !== undefined ? counted : seconds;
  const reportedMs =
    typeof reportedSeconds === "number" && reportedSeconds >= 0
      ? Math.round(reportedSeconds * 1_000)
      : undefined;
  const { heldMs, mostMs } = request.length;
  const inputAudioMs = Math.min(reportedMs ?? heldMs, mostMs);
  const isBeyond = reportedMs !== undefined && reportedMs > mostMs;
  const tokens = readTokens(written);
  if (tokens !== undefined)
    return { usage: { ...tokens.usage, inputAudioMs }, estimated: false, clamped: tokens.clamped };
  if (byTime)
    return { usage: { inputAudioMs }, estimated: reportedMs === undefined, clamped: isBeyond };
  return {
    usage: {
      inputAudioMs,
      inputAudioTokens: Math.ceil((inputAudioMs * tokensPerSecond) / 1_000),
      outputTokens: Math.ceil(text.length / 4),
    },
    estimated: true,
    clamped: isBeyond,
  };
}

/** Reads tokens of OpenAI's transcriptions; without details, the input is sound. */
function readTokens(written: unknown): { usage: Usage; clamped: boolean } | undefined {
  const { prompt_tokens, completion_tokens, ...rest } = fieldsOf(written);
  const { input_tokens: input = prompt_tokens, output_tokens: output = completion_tokens } = rest;
  const counts = new CountReader();
  const inputTotal = counts.read(input);
  const outputTotal = counts.read(output);
  if (inputTotal === undefined && outputTotal === undefined) return undefined;
  const details = fieldsOf(rest["input_token_details"]);
  const textTokens = counts.within(counts.read(details["text_tokens"]) ?? 0, inputTotal ?? 0);
  return {
    usage: {
      inputTokens: textTokens,
      inputAudioTokens: (inputTotal ?? 0) - textTokens,
      outputTokens: outputTotal ?? 0,
    },
    clamped: counts.clamped,
  };
}

/** Returns what a transcription may use at most, for its hold. */
export function expectedSound({ length, prompt = "" }: TranscriptionRequest): Usage {
  const seconds = Math.ceil(length.heldMs / 1_000);
  return {
    inputAudioMs: length.heldMs,
    // Google counts 32 tokens for a second, OpenAI 10.
    inputAudioTokens: seconds * 32,
    inputTokens: Math.ceil(Buffer.byteLength(prompt) / 4) + 128,
    outputTokens: seconds * 10 + 64,
  };
}

/** Returns a segment that tells who speaks, with the id that the provider gave it. */
export const spokenSegment = (
  { start, end, text, speaker = "A", more }: Segment,
  index: number,
): Fields => ({
  id: typeof more?.["id"] === "string" ? more["id"] : `seg_${index}`,
  type: "transcript.text.segment",
  start,
  end,
  speaker,
  text,
});

/** Returns usage as OpenAI's transcriptions show it, or in the form of OpenRouter's. */
export function transcriptUsage(
  usage: Usage,
  { costUsd, form }: { costUsd: number | undefined; form: TranscriptionRequest["form"] },
): Fields {
  const seconds = (usage.inputAudioMs ?? 0) / 1_000;
  const input = totalInputTokens(usage);
  const output = totalOutputTokens(usage);
  const tokens = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  if (form === "openrouter")
    return withoutUndefined<Fields>({ seconds, ...tokens, cost: costUsd ?? 0 });
  if (input + output === 0)
    return withoutUndefined<Fields>({ type: "duration", seconds, cost: costUsd });
  return withoutUndefined<Fields>({
    type: "tokens",
    ...tokens,
    input_token_details: {
      text_tokens: usage.inputTokens ?? 0,
      audio_tokens: usage.inputAudioTokens ?? 0,
    },
    cost: costUsd,
  });
}
