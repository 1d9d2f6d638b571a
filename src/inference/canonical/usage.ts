import { totalOutputTokens, type Usage } from "../../platform/kernel/usage.ts";
import type { Extensions } from "./dialect-id.ts";

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
