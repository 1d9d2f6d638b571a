import type { Usage } from "../../../platform/kernel/usage.ts";
import { asObject } from "../../dialects/shared/wire-fields.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { Fields } from "../read-fields.ts";

const count = (fields: Fields | undefined, name: string): number => {
  const value = fields?.[name];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;
};

/** The tokens of one side by their kind. */
interface Kinds {
  text: number;
  audio: number;
  image: number;
}

/** Returns the tokens of each kind; what no kind was named for counts as the dearest, sound. */
function kindsOf(details: Fields | undefined, total: number): Kinds {
  const text = count(details, "text_tokens");
  const image = count(details, "image_tokens");
  const audio = count(details, "audio_tokens");
  return { text, image, audio: audio + Math.max(0, total - text - image - audio) };
}

/**
 * Returns the cached tokens of each kind: as the provider says, or else those of text first, since
 * the beginning of a conversation is cached. None exceeds the tokens of its kind.
 */
function cachedOf(details: Fields | undefined, { text, audio, image }: Kinds): Kinds {
  const byKind = asObject(details?.["cached_tokens_details"]);
  if (byKind !== undefined) {
    return {
      text: Math.min(text, count(byKind, "text_tokens")),
      audio: Math.min(audio, count(byKind, "audio_tokens")),
      image: Math.min(image, count(byKind, "image_tokens")),
    };
  }
  let left = count(details, "cached_tokens");
  const take = (most: number): number => {
    const taken = Math.min(most, left);
    left -= taken;
    return taken;
  };
  return { text: take(text), audio: take(audio), image: take(image) };
}

/** Returns the usage without parts that are 0. */
const present = (usage: Usage): Usage =>
  Object.fromEntries(Object.entries(usage).filter(([, tokens]) => tokens > 0));

/** Returns the usage of `response.done` as disjoint parts. */
export function realtimeUsage(usage: Fields): Usage {
  const sent = asObject(usage["input_token_details"]);
  const made = asObject(usage["output_token_details"]);
  const input = kindsOf(sent, count(usage, "input_tokens"));
  const cached = cachedOf(sent, input);
  const output = kindsOf(made, made === undefined ? 0 : count(usage, "output_tokens"));
  if (made === undefined) output.text = count(usage, "output_tokens");
  return present({
    inputTokens: input.text - cached.text,
    inputAudioTokens: input.audio - cached.audio,
    inputImageTokens: input.image - cached.image,
    cacheReadTokens: cached.text,
    cacheReadAudioTokens: cached.audio,
    cacheReadImageTokens: cached.image,
    outputTokens: output.text,
    outputAudioTokens: output.audio,
    outputImageTokens: output.image,
  });
}

/** Bytes of one second of sound, by its format. */
const bytesPerSecond: Readonly<Record<string, number>> = {
  "audio/pcm": 48_000,
  pcm16: 48_000,
  "audio/pcmu": 8_000,
  "audio/pcma": 8_000,
  g711_ulaw: 8_000,
  g711_alaw: 8_000,
};

/** Returns the milliseconds of sound in a format; a rate other than 24 kHz is taken into account. */
export function soundMs(bytes: number, format: unknown): number {
  const fields = asObject(format);
  const type = String(fields?.["type"] ?? (typeof format === "string" ? format : "audio/pcm"));
  const rate = fields?.["rate"];
  const perSecond =
    type === "audio/pcm" && typeof rate === "number" && rate > 0
      ? rate * 2
      : (bytesPerSecond[type] ?? 8_000);
  return (bytes * 1000) / perSecond;
}

/** Tokens of a second of sound that is sent (OpenAI: one for each 100 ms), and of one that is made. */
const inputTokensPerSecond = 10;
const outputTokensPerSecond = 20;

/** Tokens of a second of sound at each kind of provider; the most that Google counts. */
export const soundTokensAt = ({ provider }: Candidate["route"]): number =>
  provider.dialects.realtime === "google-live" ? 32 : inputTokensPerSecond;

/** Returns the tokens of sound that is sent, as the provider counts them. */
export const inputSoundTokens = (ms: number, perSecond = inputTokensPerSecond): number =>
  Math.ceil((ms * perSecond) / 1000);
/** Returns the tokens of sound that is made. */
const outputSoundTokens = (ms: number): number => Math.ceil((ms * outputTokensPerSecond) / 1000);

/** The sound of a response, in milliseconds. */
export interface ResponseSound {
  inputMs: number;
  outputMs: number;
}

/** Returns the milliseconds of sound, where the provider charges by time. */
export function soundUsage({ inputMs, outputMs }: ResponseSound, { route }: Candidate): Usage {
  const base = route.price?.base;
  return {
    ...(base?.inputAudioMs !== undefined && { inputAudioMs: Math.ceil(inputMs) }),
    ...(base?.outputAudioMs !== undefined && { outputAudioMs: Math.ceil(outputMs) }),
  };
}

/** Returns the usage of a response that its provider did not report, by what was delivered. */
export const deliveredUsage = (
  sound: ResponseSound,
  { candidate, inputTokens }: { candidate: Candidate; inputTokens: number },
): Usage => ({
  inputTokens,
  inputAudioTokens: inputSoundTokens(sound.inputMs),
  outputAudioTokens: outputSoundTokens(sound.outputMs),
  ...soundUsage(sound, candidate),
});
