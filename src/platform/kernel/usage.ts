/**
 * The consumption of a request, as disjoint counts: no token is in two of them, so that price x
 * count can be summed without correction. Absent means "not reported", 0 means "none".
 */
export interface Usage {
  /** Text input tokens that were neither read from nor written to a cache. */
  inputTokens?: number;
  /** Text input tokens that were read from a cache. */
  cacheReadTokens?: number;
  /** Tokens of sound that were read from a cache. */
  cacheReadAudioTokens?: number;
  /** Tokens of pictures that were read from a cache. */
  cacheReadImageTokens?: number;
  /** Cache writes whose lifetime is five minutes or not stated. */
  cacheWriteTokens?: number;
  /** Cache writes that live for an hour. */
  cacheWriteOneHourTokens?: number;
  /** Tokens of sound and of pictures that were sent, and not read from a cache. */
  inputAudioTokens?: number;
  inputImageTokens?: number;
  /** Visible output tokens, without reasoning, audio and images. */
  outputTokens?: number;
  reasoningTokens?: number;
  outputAudioTokens?: number;
  outputImageTokens?: number;
  /** Searches of the web that the provider ran and charges one by one. */
  searches?: number;
  /** Calls of the provider's other tools that it charges one by one. */
  toolCalls?: number;
  /** Pictures that were made, all of one size and quality (`PictureKind`). */
  outputImages?: number;
  /** Milliseconds of sound that were sent. */
  inputAudioMs?: number;
  /** Milliseconds of sound that were made. */
  outputAudioMs?: number;
  /** Characters of text that were spoken. */
  characters?: number;
  /** Milliseconds of video that were made. */
  outputVideoMs?: number;
}

/** The size and quality of pictures that were made, as far as they are known. */
export interface PictureKind {
  /** Such as `1024x1536`; absent where it is not known. */
  size?: string;
  /** Such as `high`; absent where it is not known. */
  quality?: string;
}

/** A count of a usage vector. */
export type UsagePart = keyof Usage;

/**
 * Returns all tokens that were written to a cache, for any lifetime; undefined where none were
 * reported.
 */
export const totalCacheWrites = ({
  cacheWriteTokens,
  cacheWriteOneHourTokens,
}: Usage): number | undefined =>
  cacheWriteTokens === undefined && cacheWriteOneHourTokens === undefined
    ? undefined
    : (cacheWriteTokens ?? 0) + (cacheWriteOneHourTokens ?? 0);

/** The parts of the input. */
export const inputParts = [
  "inputTokens",
  "cacheReadTokens",
  "cacheReadAudioTokens",
  "cacheReadImageTokens",
  "cacheWriteTokens",
  "cacheWriteOneHourTokens",
  "inputAudioTokens",
  "inputImageTokens",
] as const;
/** The parts of the output. */
export const outputParts = [
  "outputTokens",
  "reasoningTokens",
  "outputAudioTokens",
  "outputImageTokens",
] as const;
/** The parts that count pictures, time and characters in place of tokens. */
export const mediaParts = [
  "outputImages",
  "inputAudioMs",
  "outputAudioMs",
  "characters",
  "outputVideoMs",
] as const;
/** The parts that are no tokens. */
export const countedParts = ["searches", "toolCalls", ...mediaParts] as const;

/** Returns whether a request was metered by pictures, time or characters. */
export const isMedia = (usage: Usage): boolean =>
  mediaParts.some((part) => usage[part] !== undefined);

/** Returns all input tokens, including cached ones: what chat calls `prompt_tokens`. */
export const totalInputTokens = (usage: Usage): number => sumOf(usage, inputParts);

/** Returns all output tokens, including reasoning: what chat calls `completion_tokens`. */
export const totalOutputTokens = (usage: Usage): number => sumOf(usage, outputParts);

function sumOf(usage: Usage, parts: readonly UsagePart[]): number {
  let sum = 0;
  for (const part of parts) sum += usage[part] ?? 0;
  return sum;
}
