import type { Extensions } from "./dialect-id.ts";

/**
 * What a request consumed, as disjoint counts: no token stands in two of them, so that
 * price x count can be summed without correction. Absent means "not reported", 0 means "none".
 */
export interface Usage {
  /** Text input tokens that were neither read from nor written to a cache. */
  inputTokens?: number;
  cacheReadTokens?: number;
  /** Cache writes whose lifetime is five minutes or not stated. */
  cacheWriteTokens?: number;
  /** Cache writes that live for an hour. */
  cacheWriteOneHourTokens?: number;
  inputAudioTokens?: number;
  inputImageTokens?: number;
  /** Visible output tokens, without reasoning, audio and images. */
  outputTokens?: number;
  reasoningTokens?: number;
  outputAudioTokens?: number;
  outputImageTokens?: number;
}

/** A usage vector with how far it can be trusted. */
export interface MeteredUsage {
  usage: Usage;
  /** True when the provider sent none and the counts are our estimate. */
  estimated: boolean;
  /** True when the provider's counts were negative, absurd or contradictory and were clamped. */
  clamped: boolean;
  /**
   * The provider's own figure for this request in USD, as it wrote it; absent when it sent none.
   */
  providerCostUsd?: number;
  /** What the provider reports beside tokens, such as the requests of its own tools. */
  extensions?: Extensions;
}

/**
 * All tokens that were written to a cache, for any lifetime; undefined where none were
 * reported.
 */
export const totalCacheWrites = ({
  cacheWriteTokens,
  cacheWriteOneHourTokens,
}: Usage): number | undefined =>
  cacheWriteTokens === undefined && cacheWriteOneHourTokens === undefined
    ? undefined
    : (cacheWriteTokens ?? 0) + (cacheWriteOneHourTokens ?? 0);

const inputParts = [
  "inputTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "cacheWriteOneHourTokens",
  "inputAudioTokens",
  "inputImageTokens",
] as const;
const outputParts = [
  "outputTokens",
  "reasoningTokens",
  "outputAudioTokens",
  "outputImageTokens",
] as const;

/** All tokens that went in, cached ones included: what chat calls `prompt_tokens`. */
export const totalInputTokens = (usage: Usage): number => sumOf(usage, inputParts);

/** All tokens that came out, reasoning included: what chat calls `completion_tokens`. */
export const totalOutputTokens = (usage: Usage): number => sumOf(usage, outputParts);

function sumOf(usage: Usage, parts: readonly (keyof Usage)[]): number {
  let sum = 0;
  for (const part of parts) sum += usage[part] ?? 0;
  return sum;
}

const charactersPerToken = 4;

/**
 * A stand-in for usage that the provider did not send: four characters a token, at least one token
 * where there was any text. Flagged as estimated, so that it is never taken for a provider's count.
 */
export const estimateUsage = (sizes: {
  inputCharacters: number;
  outputCharacters: number;
}): MeteredUsage => ({
  usage: {
    inputTokens: Math.ceil(sizes.inputCharacters / charactersPerToken),
    outputTokens: Math.ceil(sizes.outputCharacters / charactersPerToken),
  },
  estimated: true,
  clamped: false,
});

/**
 * Usage that was reported before the end of a stream: its output is at least what was delivered,
 * since many providers tell none, or that of the start, until the end.
 */
export function coveringDelivered(
  reported: MeteredUsage,
  deliveredCharacters: number,
): MeteredUsage {
  const missing =
    Math.ceil(deliveredCharacters / charactersPerToken) - totalOutputTokens(reported.usage);
  if (missing <= 0) return reported;
  return {
    ...reported,
    usage: { ...reported.usage, outputTokens: (reported.usage.outputTokens ?? 0) + missing },
    estimated: true,
  };
}
