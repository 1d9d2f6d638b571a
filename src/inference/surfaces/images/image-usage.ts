import { totalInputTokens, totalOutputTokens, type Usage } from "../../../platform/kernel/usage.ts";
import { withoutUndefined, CountReader } from "../../dialects/shared/wire-fields.ts";
import type { Fields } from "../read-fields.ts";
import { pixelsOf, type ImageRequest } from "./image-request.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** A provider's count of tokens for pictures. */
export interface CountedTokens {
  usage: Usage;
  clamped: boolean;
  /** The provider's own figure in USD; absent where it names none. */
  costUsd?: number;
}

/**
 * Reads the usage of OpenAI's Images API, or of chat where a provider reports it so. Output without
 * details is pictures: text rates for them are a third of the price. Undefined where there is none.
 * Source: npm openai 7.55, `ImagesResponse.Usage`.
 */
export function readImageUsage(
  written: unknown,
  { hasPictures }: { hasPictures: boolean },
): CountedTokens | undefined {
  const fields = fieldsOf(written);
  const counts = new CountReader();
  const input = counts.read(fields["input_tokens"] ?? fields["prompt_tokens"]);
  const output = counts.read(fields["output_tokens"] ?? fields["completion_tokens"]);
  if (input === undefined && output === undefined) return undefined;
  const usage: Usage = {};
  readInput(usage, { fields, counts, total: input ?? 0, hasPictures });
  readOutput(usage, { fields, counts, total: output ?? 0 });
  const { cost } = fields;
  return {
    usage,
    clamped: counts.clamped,
    ...(typeof cost === "number" && { costUsd: cost }),
  };
}

interface Side {
  fields: ReturnType<typeof fieldsOf>;
  counts: CountReader;
  total: number;
}

function readInput(
  usage: Usage,
  { fields, counts, total, hasPictures }: Side & { hasPictures: boolean },
): void {
  const details = fieldsOf(fields["input_tokens_details"] ?? fields["prompt_tokens_details"]);
  const cachedDetails = fieldsOf(details["cached_tokens_details"]);
  let left = total;
  const take = (value: unknown): number | undefined => {
    const count = counts.read(value);
    if (count === undefined) return undefined;
    const taken = counts.within(count, left);
    left -= taken;
    return taken;
  };
  const cachedPictures = take(cachedDetails["image_tokens"]);
  const cachedText = take(
    cachedDetails["text_tokens"] ?? (cachedPictures === undefined ? details["cached_tokens"] : 0),
  );
  const pictureTotal = counts.read(details["image_tokens"]);
  const pictures =
    pictureTotal === undefined
      ? undefined
      : take(Math.max(0, Math.min(pictureTotal - (cachedPictures ?? 0), left)));
  if (cachedPictures) usage.cacheReadImageTokens = cachedPictures;
  if (cachedText) usage.cacheReadTokens = cachedText;
  if (pictures !== undefined) usage.inputImageTokens = pictures;
  else if (hasPictures && details["text_tokens"] !== undefined) {
    const text = take(details["text_tokens"]) ?? 0;
    usage.inputImageTokens = left;
    left = text;
  }
  usage.inputTokens = left;
}

function readOutput(usage: Usage, { fields, counts, total }: Side): void {
  const details = fieldsOf(fields["output_tokens_details"] ?? fields["completion_tokens_details"]);
  const text = counts.read(details["text_tokens"]);
  const reasoning = counts.read(details["reasoning_tokens"]);
  const pictures = counts.read(details["image_tokens"]);
  let left = total;
  if (reasoning) left -= usage.reasoningTokens = counts.within(reasoning, left);
  if (text !== undefined) left -= usage.outputTokens = counts.within(text, left);
  else if (pictures !== undefined) {
    const within = counts.within(pictures, left);
    if (left > within) usage.outputTokens = left - within;
    left = within;
  }
  usage.outputImageTokens = left;
}

/** The tokens of a model that writes an SVG, which are counted apart from those of the picture. */
export interface AuthoredTokens {
  input: number;
  output: number;
}

/** Reads `svg_usage` (npm openai 7.59, `ImagesResponse.SvgUsage`); undefined where there is none. */
export function readAuthored(written: unknown): AuthoredTokens | undefined {
  const { input_tokens: input, output_tokens: output } = fieldsOf(written);
  const counts = new CountReader();
  const [read, made] = [counts.read(input), counts.read(output)];
  return read === undefined && made === undefined
    ? undefined
    : { input: read ?? 0, output: made ?? 0 };
}

/**
 * Returns usage with the tokens of an SVG's author. They are charged as text that was read and as
 * pictures that were made, since the price of that model is not named; a negative share takes them
 * out again.
 */
export const withAuthored = (usage: Usage, { input, output }: AuthoredTokens): Usage => ({
  ...usage,
  inputTokens: Math.max(0, (usage.inputTokens ?? 0) + input),
  outputImageTokens: Math.max(0, (usage.outputImageTokens ?? 0) + output),
});

/** The most tokens that the author of an SVG is held for, and the frames of a GIF if none are named. */
const authoredMost: AuthoredTokens = { input: 8_000, output: 32_000 };
const usualFrames = 9;

/** Tokens of a picture of a square megapixel by quality (OpenAI's guide of image generation). */
const squareTokens: Readonly<Record<string, number>> = {
  low: 272,
  medium: 1_056,
  high: 4_160,
  xhigh: 8_320,
  max: 16_640,
};
const squarePixels = 1_024 * 1_024;
/** The pixels of a picture whose size is left to the model. */
const openPixels = 1_536 * 1_024;
/** Tokens of a picture that a request brings, at high fidelity, and of a partial picture. */
const inputTokensEach = 6_400;
const partialTokens = 100;

const tierPixels: Readonly<Record<string, number>> = {
  "0.5k": 512 * 512,
  "1k": squarePixels,
  "2k": 4 * squarePixels,
  "4k": 16 * squarePixels,
};

/** Returns the tokens of one picture at the size and quality that were asked for. */
function tokensEach({ size, quality }: Pick<ImageRequest, "size" | "quality">): number {
  const [width, height] = pixelsOf(size) ?? [];
  const pixels =
    width !== undefined && height !== undefined
      ? width * height
      : (tierPixels[size?.toLowerCase() ?? ""] ?? openPixels);
  const square = squareTokens[quality ?? "high"] ?? squareTokens["high"] ?? 0;
  return Math.ceil((square * Math.max(pixels, squarePixels / 4)) / squarePixels);
}

/**
 * Returns what pictures use, for holds and for providers that count nothing. `made` is the
 * number of pictures that came, or that were asked for.
 */
export function expectedUsage(request: ImageRequest, made = request.count): Usage {
  const { partials, pictures, mask, markup, stream, prompt, outputFormat, fields } = request;
  const frames = outputFormat === "gif" ? Number(fields["frame_count"] ?? usualFrames) : 1;
  const overlays = [mask, markup].filter((picture) => picture !== undefined);
  const inputs = pictures.length + overlays.length;
  return withoutUndefined<Usage>({
    // Bytes, since a character of other scripts is about a token.
    inputTokens: Math.ceil(Buffer.byteLength(prompt) / 4) + 16,
    inputImageTokens: inputs === 0 ? undefined : inputs * inputTokensEach,
    outputImages: made,
    outputImageTokens:
      made * (frames * tokensEach(request) + (stream ? partials * partialTokens : 0)),
  });
}

/** Returns what a request for pictures uses at most, with the author of an SVG. */
export function heldPictures(request: ImageRequest): Usage {
  const expected = expectedUsage(request);
  return request.outputFormat === "svg" ? withAuthored(expected, authoredMost) : expected;
}

/** Returns usage in the form of OpenRouter's `POST /images` (npm @openrouter/sdk 1.3.19). */
export const openrouterUsage = (usage: Usage, costUsd: number): Fields => ({
  prompt_tokens: totalInputTokens(usage),
  completion_tokens: totalOutputTokens(usage),
  total_tokens: totalInputTokens(usage) + totalOutputTokens(usage),
  completion_tokens_details: { image_tokens: usage.outputImageTokens ?? 0 },
  cost: costUsd,
});

/** Returns usage in the form of OpenAI's Images API, with what it cost. */
export function shownUsage(usage: Usage, costUsd: number | undefined): Fields {
  const { inputImageTokens = 0, cacheReadImageTokens = 0 } = usage;
  const input = totalInputTokens(usage);
  const output = totalOutputTokens(usage);
  const pictures = inputImageTokens + cacheReadImageTokens;
  return withoutUndefined<Fields>({
    input_tokens: input,
    input_tokens_details: { text_tokens: input - pictures, image_tokens: pictures },
    output_tokens: output,
    output_tokens_details: {
      text_tokens: output - (usage.outputImageTokens ?? 0),
      image_tokens: usage.outputImageTokens ?? 0,
    },
    total_tokens: input + output,
    cost: costUsd,
  });
}
