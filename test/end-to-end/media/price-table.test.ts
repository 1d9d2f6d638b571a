import { expect, test } from "bun:test";
import { heldMedia, chargeFor, type PriceRow } from "../../../src/billing/ledger/price.ts";
import { chargedPrice, chargedUsage } from "../../../src/billing/ledger/price-levels.ts";
import { buildCatalog } from "../../../src/inference/catalog/build-catalog.ts";
import type { Usage } from "../../../src/platform/kernel/usage.ts";

const { models } = buildCatalog({ environment: {}, configuredProviders: [], nowMs: 0 });

function priceOf(id: string): PriceRow {
  const price = models.get(id)?.routes[0]?.price;
  if (price === undefined) throw new Error(`${id} has no price`);
  return price;
}

const image = (
  inputTokens: number,
  inputImageTokens: number,
  outputImageTokens: number,
): Usage => ({
  inputTokens,
  inputImageTokens,
  outputImageTokens,
  outputImages: 1,
});
const heard = (inputTokens: number, inputAudioTokens: number, outputTokens: number): Usage => ({
  inputTokens,
  inputAudioTokens,
  outputTokens,
});
const spoken = (inputTokens: number, outputAudioTokens: number): Usage => ({
  inputTokens,
  outputAudioTokens,
});

/**
 * A model, a usage, and the charge in micro-USD, computed by hand from the vendor's price page: USD
 * per million tokens are micro-USD per token.
 */
const rows: readonly (readonly [model: string, usage: Usage, microUsd: number])[] = [
  ["openai/gpt-image-2", image(0, 0, 1_000), 30_000],
  ["openai/gpt-image-2", image(100, 0, 1_000), 30_500],
  ["openai/gpt-image-2", image(100, 1_000, 1_000), 38_500],
  ["openai/gpt-image-2", image(50, 0, 272), 8_410],
  ["openai/gpt-image-2", image(50, 0, 1_056), 31_930],
  ["openai/gpt-image-2", image(50, 0, 4_160), 125_050],
  ["openai/gpt-image-2", image(50, 0, 6_240), 187_450],
  ["openai/gpt-image-2", { ...image(50, 0, 8_320), outputImages: 2 }, 249_850],
  ["openai/gpt-image-2", { ...image(100, 0, 1_000), cacheReadTokens: 400 }, 31_000],
  ["openai/gpt-image-2", { ...image(0, 100, 1_000), cacheReadImageTokens: 500 }, 31_800],
  ["openai/gpt-image-2.5-sunburst", image(50, 0, 1_056), 31_930],
  ["openai/gpt-image-2.6-flare", image(50, 0, 4_160), 125_050],
  ["openai/chatgpt-image-latest", image(100, 500, 1_000), 36_500],
  ["openai/gpt-image-1.5", image(100, 0, 1_000), 32_500],
  ["openai/gpt-image-1.5", image(100, 500, 1_000), 36_500],
  ["openai/gpt-image-1.5", { ...image(0, 0, 1_000), outputTokens: 100 }, 33_000],
  ["openai/gpt-image-1-mini", image(100, 0, 1_000), 8_200],
  ["openai/gpt-image-1-mini", image(100, 400, 272), 3_376],
  ["x-ai/grok-imagine-image", { outputImages: 1 }, 20_000],
  ["x-ai/grok-imagine-image", { outputImages: 10 }, 200_000],
  ["x-ai/grok-imagine-image-2.0", { outputImages: 2 }, 120_000],
  ["x-ai/grok-imagine-image-2.0", { outputImages: 1 }, 60_000],
  ["openai/gpt-transcribe", { inputAudioMs: 60_000 }, 4_500],
  ["openai/gpt-transcribe", { inputAudioMs: 1_000 }, 75],
  ["elevenlabs/scribe_v2", { inputAudioMs: 60_000 }, 3_666],
  ["deepgram/nova-3-medical", { inputAudioMs: 600_000 }, 52_000],
  ["elevenlabs/eleven_v3", { characters: 1_000 }, 80_000],
  ["elevenlabs/eleven_flash_v2.5", { characters: 25 }, 1_000],
  ["canopylabs/orpheus-v1-english", { characters: 100 }, 2_200],
  ["openai/whisper-1", { inputAudioMs: 60_000 }, 6_000],
  ["openai/whisper-1", { inputAudioMs: 1_000 }, 100],
  ["openai/whisper-1", { inputAudioMs: 1 }, 0.1],
  ["openai/whisper-1", { inputAudioMs: 3_600_000 }, 360_000],
  ["openai/whisper-1", { inputAudioMs: 0 }, 0],
  ["openai/gpt-4o-transcribe", heard(0, 600, 150), 3_000],
  ["openai/gpt-4o-transcribe", heard(20, 600, 150), 3_050],
  ["openai/gpt-4o-transcribe", heard(0, 1, 0), 2.5],
  ["openai/gpt-4o-mini-transcribe", heard(0, 600, 150), 1_500],
  ["openai/gpt-4o-mini-transcribe", heard(100, 0, 0), 125],
  ["openai/gpt-4o-transcribe-diarize", heard(0, 600, 200), 3_500],
  ["groq/whisper-large-v3", { inputAudioMs: 3_600_000 }, 111_000],
  ["groq/whisper-large-v3", { inputAudioMs: 1_000 }, 308.333],
  ["groq/whisper-large-v3", { inputAudioMs: 10_000 }, 308.333],
  ["groq/whisper-large-v3-turbo", { inputAudioMs: 3_600_000 }, 40_000],
  ["groq/whisper-large-v3-turbo", { inputAudioMs: 500 }, 111.111],
  ["deepgram/nova-3", { inputAudioMs: 60_000 }, 4_300],
  ["deepgram/nova-3", { inputAudioMs: 600_000 }, 43_000],
  ["deepgram/nova-3", { inputAudioMs: 36_000_000 }, 2_580_000],
  ["deepgram/nova-3", { inputAudioMs: 1_000 }, 71.667],
  ["deepgram/nova-2", { inputAudioMs: 90_000 }, 6_450],
  ["openai/tts-1", { characters: 1_000 }, 15_000],
  ["openai/tts-1", { characters: 1 }, 15],
  ["openai/tts-1", { characters: 4_096, outputAudioMs: 270_000 }, 61_440],
  ["openai/tts-1-hd", { characters: 1_000 }, 30_000],
  ["openai/tts-1-hd", { characters: 11 }, 330],
  ["openai/gpt-4o-mini-tts", spoken(0, 1_000), 12_000],
  ["openai/gpt-4o-mini-tts", spoken(100, 1_000), 12_060],
  ["openai/gpt-4o-mini-tts", spoken(10, 20), 246],
  ["google/gemini-3.8-flash-tts", spoken(100, 1_000), 9_050],
  ["google/gemini-3.8-flash-tts", spoken(4, 50), 452],
  ["google/gemini-3.8-flash-lite-tts", spoken(100, 1_000), 6_050],
  ["google/gemini-3.8-flash-lite-tts", spoken(1, 1), 6.5],
  ["deepgram/aura-2-thalia-en", { characters: 1_000 }, 30_000],
  ["deepgram/aura-2-thalia-en", { characters: 7 }, 210],
];

test.each(rows.map((row) => [...row] as const))(
  "%s with %j costs %d micro-USD",
  (id, usage, microUsd) => {
    const row = priceOf(id);
    const charged = chargedUsage(row, { usage, asked: undefined });
    const price = chargedPrice(row, {
      asked: undefined,
      served: undefined,
      usage: charged,
    });
    const nano = chargeFor(price, charged);
    expect(Number(nano) / 1_000).toBeCloseTo(microUsd, 6);
    // A provider that keeps to what it was asked never costs more than was held.
    const held = heldMedia(row, { vector: row.base, use: { usage: charged } });
    expect(nano * 1_000n).toBeLessThanOrEqual(held + 500n);
  },
);
