import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  heldMedia,
  type MediaUse,
  chargeFor,
  type PriceRow,
} from "../../../src/billing/ledger/price.ts";
import { chargedPrice, chargedUsage } from "../../../src/billing/ledger/price-levels.ts";
import { configuredPriceRow } from "../../../src/inference/catalog/fact-model.ts";
import {
  expectedSpeech,
  readSpeechRequest,
  spokenUsage,
} from "../../../src/inference/surfaces/audio/speech-request.ts";
import {
  expectedSound,
  meteredTranscript,
} from "../../../src/inference/surfaces/audio/transcripts/transcript.ts";
import { readTranscriptionRequest } from "../../../src/inference/surfaces/audio/transcripts/transcription-request.ts";
import { meteredPictures } from "../../../src/inference/surfaces/images/image-dialect.ts";
import { readImageRequest } from "../../../src/inference/surfaces/images/image-request.ts";
import { expectedUsage } from "../../../src/inference/surfaces/images/image-usage.ts";
import { inMemory } from "../../../src/inference/surfaces/media/uploads.ts";
import type { MeteredUsage } from "../../../src/inference/canonical/response.ts";
import "../../support/property-seed.ts";

/** Expects that a usage costs no more than was held for it, up to half a nano-USD of rounding. */
function expectHeld(row: PriceRow, { use, metered }: { use: MediaUse; metered: MeteredUsage }) {
  const usage = chargedUsage(row, { usage: metered.usage, asked: undefined });
  const { picture } = metered;
  const price = chargedPrice(row, { asked: undefined, served: undefined, usage, picture });
  const held = heldMedia(row, { vector: row.base, use }) + (row.base.request ?? 0n);
  expect(chargeFor(price, usage) * 1_000n).toBeLessThanOrEqual(held + 500n);
}

const usd = fc.integer({ min: 0, max: 50_000 }).map((price) => String(price / 1_000));
const text = fc.oneof(
  fc.string({ minLength: 1, maxLength: 200 }),
  fc.string({ minLength: 1, maxLength: 200, unit: "grapheme" }),
);
const open = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
/** A share of what was asked for that a provider makes of it. */
const share = fc.double({ min: 0, max: 1, noNaN: true });

const table = fc.dictionary(
  fc.constantFrom("512x512", "1024x1024", "default"),
  fc.dictionary(fc.constantFrom("low", "high", "standard", "default"), usd, { minKeys: 1 }),
  { minKeys: 1 },
);
const imagePricing = fc.oneof(
  table.map((image) => ({ image })),
  usd.map((image) => ({ image })),
  fc.record({ prompt: usd, image_input: usd, image_output: usd }),
);

test("pictures cost no more than was held", () => {
  fc.assert(
    fc.property(
      imagePricing,
      text.filter((prompt) => prompt.trim() !== ""),
      fc.record({
        size: open(fc.constantFrom("512x512", "1024x1024", "2048x1024", "auto", "2K")),
        quality: open(fc.constantFrom("auto", "low", "medium", "high", "standard", "max")),
        n: fc.integer({ min: 1, max: 10 }),
        image_url: open(fc.constant("https://example.com/a.png")),
      }),
      fc.record({ made: share, used: share, counts: fc.boolean() }),
      (pricing, prompt, { image_url: url, ...members }, { made, used, counts }) => {
        const request = readImageRequest(
          { model: "m", prompt, ...members, ...(url !== undefined && { images: [url] }) },
          { operation: "generations" },
        );
        const row = configuredPriceRow("v", pricing, "images");
        const { size, quality } = request;
        const use = {
          usage: expectedUsage(request),
          picture: { ...(size && { size }), ...(quality && { quality }) },
        };
        const count = Math.ceil(made * request.count);
        const { outputImages: _, ...most } = expectedUsage(request, count);
        const counted = Object.fromEntries(
          Object.entries(most).map(([part, tokens]) => [part, Math.floor(tokens * used)]),
        );
        const metered = meteredPictures(
          {
            pictures: Array.from({ length: count }, () => ({ base64: "" })),
            tokens: counts ? { usage: counted, clamped: false } : undefined,
            kind: {},
          },
          { request, byPiece: row.base.outputImages !== undefined },
        );
        expectHeld(row, { use, metered });
      },
    ),
  );
});

const speechPricing = fc.oneof(
  usd.map((characters) => ({ characters })),
  usd.map((price) => ({ audio_output_minute: price })),
  fc.record({ prompt: usd, audio_output: usd }),
);

test("speech costs no more than was held", () => {
  fc.assert(
    fc.property(
      speechPricing,
      text,
      open(text),
      fc.constantFrom(0.25, 1, 4),
      fc.record({ spoken: open(share), tokens: open(share) }),
      (pricing, input, instructions, speed, { spoken, tokens }) => {
        fc.pre(input.trim() !== "");
        const request = readSpeechRequest({ model: "m", input, instructions, speed });
        const row = configuredPriceRow("v", pricing, "speech");
        const most = expectedSpeech(request);
        const of = (part: number | undefined, part01: number): number =>
          Math.floor((part ?? 0) * part01);
        const usage = spokenUsage(request, {
          outputAudioMs: spoken === undefined ? undefined : of(most.outputAudioMs, spoken),
          tokens:
            tokens === undefined
              ? undefined
              : {
                  input: of(most.inputTokens, tokens),
                  output: of(most.outputAudioTokens, tokens),
                },
        });
        const metered = { usage, estimated: false, clamped: false };
        expectHeld(row, { use: { usage: most }, metered });
      },
    ),
  );
});

const soundPricing = fc.oneof(
  fc.record({ audio_input_minute: usd, minimum_ms: fc.constantFrom(0, 10_000) }),
  fc.record({ prompt: usd, completion: usd, audio_input: usd }),
);

test("transcripts cost no more than was held", () => {
  fc.assert(
    fc.property(
      soundPricing,
      fc.integer({ min: 1, max: 3_600_000 }),
      open(text),
      fc.record({ told: open(share), tokens: open(share) }),
      (pricing, heldMs, prompt, { told, tokens }) => {
        const file = {
          field: "file",
          filename: "a.mp3",
          type: undefined,
          content: inMemory(new Uint8Array(1)),
        };
        const request = readTranscriptionRequest(
          { model: "m", prompt },
          { task: "transcribe", file, length: { heldMs, mostMs: heldMs * 10 }, isJson: false },
        );
        const row = configuredPriceRow("v", pricing, "transcriptions");
        const most = expectedSound(request);
        const { inputTokens = 0, inputAudioTokens = 0, outputTokens = 0 } = most;
        const input = (part: number): number =>
          Math.floor(inputTokens * part) + Math.floor(inputAudioTokens * part);
        const written =
          tokens === undefined
            ? undefined
            : {
                type: "tokens",
                input_tokens: input(tokens),
                output_tokens: Math.floor(outputTokens * tokens),
                input_token_details: { text_tokens: Math.floor(inputTokens * tokens) },
              };
        const metered = meteredTranscript(
          {
            text: "",
            ...(told !== undefined && { seconds: Math.floor(heldMs * told) / 1_000 }),
            usage: written,
          },
          { request, byTime: row.base.inputAudioMs !== undefined },
        );
        expectHeld(row, { use: { usage: most }, metered });
      },
    ),
  );
});

test.each([
  // A minute of each is spoken at 4 syllables, 15 letters or 3 digits in a second.
  ["一".repeat(240), 60],
  ["a".repeat(900), 60],
  ["7".repeat(120), 60],
])("the time that a text takes is held", (input, seconds) => {
  const { outputAudioMs = 0 } = expectedSpeech(readSpeechRequest({ model: "m", input }));
  expect(outputAudioMs).toBeGreaterThanOrEqual(seconds * 1_000);
});
