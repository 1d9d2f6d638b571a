import type { FactMedia, FactPrices, FactRow } from "../catalog-facts.ts";

/** A model of pictures or sound, as its vendor's pages describe it. */
type MediaModel = Omit<FactRow, "id">;

type Surface = "images" | "transcriptions" | "speech";

/** What a row adds to its surface: prices of tokens, and of pictures and sound. */
interface Priced {
  prices?: FactPrices;
  media?: FactMedia;
}

const capabilities: Readonly<Record<Surface, readonly string[]>> = {
  images: ["image-generation"],
  transcriptions: ["transcription"],
  speech: ["speech"],
};

const model = (
  provider: string,
  surface: Surface,
  [upstream, name, priced, more = []]: readonly [string, string, Priced, (readonly string[])?],
): MediaModel => ({
  provider,
  upstream,
  name,
  surface,
  // Facts without token prices have zeros there, since other parts are what is charged.
  ...((priced.prices ?? priced.media) && { prices: priced.prices ?? { input: "0", output: "0" } }),
  ...(priced.media && { media: priced.media }),
  capabilities: [...capabilities[surface], ...more],
});

const edits = ["image-editing"];

/** What a model costs that is billed by the token, in USD per million. */
const pictureTokens = (
  input: string,
  {
    pictures: [image_input, image_output],
    cached: [cache_read, image_cache_read],
    text = image_output,
  }: {
    pictures: readonly [input: string, output: string];
    cached: readonly [text: string, pictures: string];
    /** Text that the model writes beside its pictures. */
    text?: string;
  },
): Priced => ({
  prices: { input, output: text, image_input, image_output, cache_read, image_cache_read },
});

const each = (usd: string): Priced => ({ media: { pictures: { default: { default: usd } } } });
const minute = (usd: string, minimum_ms?: number): Priced => ({
  media: { audio_input_minute: usd, ...(minimum_ms !== undefined && { minimum_ms }) },
});
const characters = (usd: string): Priced => ({ media: { characters: usd } });
const spoken = (input: string, output_audio: string): Priced => ({
  prices: { input, output: output_audio, output_audio },
});
const heard = (input: string, [input_audio, output]: readonly [string, string]): Priced => ({
  prices: { input, output, input_audio },
});

/** What GPT Image 2 and its successors cost. */
const image2 = pictureTokens("5", { pictures: ["8", "30"], cached: ["1.25", "2"] });
/** What GPT Image 1.5 costs, which alone charges text that it writes. */
const image15 = pictureTokens("5", { pictures: ["8", "32"], cached: ["1.25", "2"], text: "10" });
const imageMini = pictureTokens("2", { pictures: ["2.5", "8"], cached: ["0.2", "0.25"] });

/**
 * OpenAI. Source: https://developers.openai.com/api/docs/pricing, by the price list of npm's
 * and PyPI's litellm 1.110.2, read 2026-11-28. DALL-E 2 and 3 are retired there and have no row.
 */
const openai: readonly MediaModel[] = [
  model("openai", "images", ["gpt-image-2.6-sunburst", "GPT Image 2.6 Sunburst", image2, edits]),
  model("openai", "images", ["gpt-image-2.6-flare", "GPT Image 2.6 Flare", image2, edits]),
  model("openai", "images", ["gpt-image-2.5-sunburst", "GPT Image 2.5 Sunburst", image2, edits]),
  model("openai", "images", ["gpt-image-2.5-flare", "GPT Image 2.5 Flare", image2, edits]),
  model("openai", "images", ["gpt-image-2", "GPT Image 2", image2, edits]),
  model("openai", "images", ["gpt-image-1.5", "GPT Image 1.5", image15, edits]),
  model("openai", "images", ["chatgpt-image-latest", "ChatGPT Image", image15, edits]),
  model("openai", "images", ["gpt-image-1-mini", "GPT Image 1 Mini", imageMini, edits]),
  model("openai", "transcriptions", ["whisper-1", "Whisper", minute("0.006"), ["translation"]]),
  model("openai", "transcriptions", ["gpt-transcribe", "GPT Transcribe", minute("0.0045")]),
  model("openai", "transcriptions", [
    "gpt-4o-transcribe",
    "GPT-4o Transcribe",
    heard("2.5", ["2.5", "10"]),
  ]),
  model("openai", "transcriptions", [
    "gpt-4o-mini-transcribe",
    "GPT-4o Mini Transcribe",
    heard("1.25", ["1.25", "5"]),
  ]),
  model("openai", "transcriptions", [
    "gpt-4o-transcribe-diarize",
    "GPT-4o Transcribe Diarize",
    heard("2.5", ["2.5", "10"]),
  ]),
  model("openai", "speech", ["tts-1", "TTS-1", characters("15")]),
  model("openai", "speech", ["tts-1-hd", "TTS-1 HD", characters("30")]),
  model("openai", "speech", ["gpt-4o-mini-tts", "GPT-4o Mini TTS", spoken("0.6", "12")]),
];

/**
 * Google. Source: https://ai.google.dev/gemini-api/docs/pricing, by the same list, read 2026-11-28.
 * That list has Imagen 4 no more, so that it has no row here.
 */
const google: readonly MediaModel[] = [
  model("google", "speech", ["gemini-3.8-flash-tts", "Gemini 3.8 Flash TTS", spoken("0.5", "9")]),
  model("google", "speech", [
    "gemini-3.8-flash-lite-tts",
    "Gemini 3.8 Flash-Lite TTS",
    spoken("0.5", "6"),
  ]),
];

/**
 * Groq, which bills at least ten seconds of each request. Source: https://groq.com/pricing, USD an
 * hour, by the same list, read 2026-11-28.
 */
const groq: readonly MediaModel[] = [
  model("groq", "transcriptions", [
    "whisper-large-v3",
    "Whisper Large v3",
    minute("0.00185", 10_000),
    ["translation"],
  ]),
  model("groq", "transcriptions", [
    "whisper-large-v3-turbo",
    "Whisper Large v3 Turbo",
    minute("0.000666666667", 10_000),
  ]),
  model("groq", "speech", ["canopylabs/orpheus-v1-english", "Orpheus English", characters("22")]),
  model("groq", "speech", ["canopylabs/orpheus-arabic-saudi", "Orpheus Arabic", characters("40")]),
];

/**
 * ElevenLabs, at the price of its API without a plan. Source: https://elevenlabs.io/pricing/api, by
 * the same list, read 2026-11-28.
 */
const elevenlabs: readonly MediaModel[] = [
  model("elevenlabs", "transcriptions", ["scribe_v2", "Scribe v2", minute("0.003666")]),
  model("elevenlabs", "transcriptions", ["scribe_v1", "Scribe v1", minute("0.003666")]),
  model("elevenlabs", "speech", ["eleven_v4", "Eleven v4", characters("80")]),
  model("elevenlabs", "speech", ["eleven_v3", "Eleven v3", characters("80")]),
  model("elevenlabs", "speech", [
    "eleven_multilingual_v2",
    "Eleven Multilingual v2",
    characters("80"),
  ]),
  model("elevenlabs", "speech", ["eleven_flash_v2_5", "Eleven Flash v2.5", characters("40")]),
  model("elevenlabs", "speech", ["eleven_turbo_v2_5", "Eleven Turbo v2.5", characters("40")]),
];

/** Every model of pictures and sound that the source of the facts lacks. */
export const mediaModels: readonly MediaModel[] = [
  ...openai,
  ...google,
  ...groq,
  ...elevenlabs,
  // https://docs.x.ai/docs/models, by the same list, read 2026-11-28
  model("xai", "images", ["grok-imagine-image", "Grok Imagine Image", each("0.02"), edits]),
  model("xai", "images", [
    "grok-imagine-image-2.0",
    "Grok Imagine Image 2.0",
    { media: { pictures: { "1K": { default: "0.04" }, default: { default: "0.06" } } } },
    edits,
  ]),
  // https://deepgram.com/pricing, by the same list, read 2026-11-28
  model("deepgram", "transcriptions", ["nova-3", "Nova 3", minute("0.0043")]),
  model("deepgram", "transcriptions", ["nova-3-medical", "Nova 3 Medical", minute("0.0052")]),
  model("deepgram", "transcriptions", ["nova-2", "Nova 2", minute("0.0043")]),
  model("deepgram", "speech", ["aura-2-thalia-en", "Aura 2 Thalia", characters("30")]),
];
