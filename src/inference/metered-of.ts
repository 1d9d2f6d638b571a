import { estimateUsage, type MeteredUsage } from "./canonical/usage.ts";
import { boundUsage } from "./interpret/bound-usage.ts";
import type { WholeAnswer } from "./interpret/interpretation.ts";

/** The usage to settle with: the provider's as far as it can be true, or an estimate from the texts. */
export const meteredOf = (
  answer: WholeAnswer,
  { inputTokens, windowTokens }: { inputTokens: number; windowTokens: number },
): MeteredUsage =>
  answer.metered === undefined
    ? estimateUsage({ inputCharacters: inputTokens * 4, outputCharacters: answer.outputCharacters })
    : boundUsage(answer.metered, windowTokens);
