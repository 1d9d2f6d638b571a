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

/** USD per million tokens of text, pictures in, and pictures out. */
const pictureTokens = (
  input: string,
  [image_input, image_output, output]: readonly [string, string, string?],
): Priced => ({ prices: { input, output: output ?? image_output, image_input, image_output } });

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

/** OpenAI. Source: https://platform.openai.com/docs/pricing (2026-11). */
const openai: readonly MediaModel[] = [
  model("openai", "images", ["gpt-image-2", "GPT Image 2", pictureTokens("5", ["8", "30"]), edits]),
  model("openai", "images", [
    "gpt-image-1.5",
    "GPT Image 1.5",
    pictureTokens("5", ["8", "32", "10"]),
    edits,
  ]),
  model("openai", "images", [
    "gpt-image-1-mini",
    "GPT Image 1 Mini",
    pictureTokens("2", ["2.5", "8"]),
    edits,
  ]),
  model("openai", "transcriptions", ["whisper-1", "Whisper", minute("0.006"), ["translation"]]),
  model("openai", "transcriptions", [
    "gpt-4o-transcribe",
    "GPT-4o Transcribe",
    heard("2.5", ["6", "10"]),
  ]),
  model("openai", "transcriptions", [
    "gpt-4o-mini-transcribe",
    "GPT-4o Mini Transcribe",
    heard("1.25", ["3", "5"]),
  ]),
  model("openai", "transcriptions", [
    "gpt-4o-transcribe-diarize",
    "GPT-4o Transcribe Diarize",
    heard("2.5", ["6", "10"]),
  ]),
  model("openai", "speech", ["tts-1", "TTS-1", characters("15")]),
  model("openai", "speech", ["tts-1-hd", "TTS-1 HD", characters("30")]),
  model("openai", "speech", ["gpt-4o-mini-tts", "GPT-4o Mini TTS", spoken("0.6", "12")]),
];

/** Google. Source: https://ai.google.dev/gemini-api/docs/pricing (2026-11). */
const google: readonly MediaModel[] = [
  model("google", "images", ["imagen-4.0-generate-001", "Imagen 4", each("0.04")]),
  model("google", "images", ["imagen-4.0-fast-generate-001", "Imagen 4 Fast", each("0.02")]),
  model("google", "images", ["imagen-4.0-ultra-generate-001", "Imagen 4 Ultra", each("0.06")]),
  model("google", "speech", [
    "gemini-2.5-flash-preview-tts",
    "Gemini 2.5 Flash TTS",
    spoken("0.5", "10"),
  ]),
  model("google", "speech", [
    "gemini-2.5-pro-preview-tts",
    "Gemini 2.5 Pro TTS",
    spoken("1", "20"),
  ]),
];

/**
 * Every model of pictures and sound that the source of the facts lacks. Models without a price serve
 * callers with their own keys, others once the operator sets one.
 */
export const mediaModels: readonly MediaModel[] = [
  ...openai,
  ...google,
  // https://docs.x.ai/docs/models (2026-11)
  model("xai", "images", ["grok-imagine-image", "Grok Imagine Image", each("0.02"), edits]),
  // https://groq.com/pricing (2026-11): at least ten seconds of each request are billed.
  model("groq", "transcriptions", [
    "whisper-large-v3",
    "Whisper Large v3",
    minute("0.00185", 10_000),
    ["translation"],
  ]),
  model("groq", "transcriptions", [
    "whisper-large-v3-turbo",
    "Whisper Large v3 Turbo",
    minute("0.000666667", 10_000),
  ]),
  // https://deepgram.com/pricing (2026-11)
  model("deepgram", "transcriptions", ["nova-3", "Nova 3", minute("0.0043")]),
  model("deepgram", "speech", ["aura-2-thalia-en", "Aura 2 Thalia", characters("30")]),
  // Prices of ElevenLabs depend on the plan.
  model("elevenlabs", "transcriptions", ["scribe_v1", "Scribe v1", {}]),
  model("elevenlabs", "speech", ["eleven_v3", "Eleven v3", {}]),
  model("elevenlabs", "speech", ["eleven_multilingual_v2", "Eleven Multilingual v2", {}]),
];
