import type { LlmKeyCaller } from "../account/keys/caller.ts";
import type { LlmKey } from "../account/keys/llm-key.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { RateCounters } from "./count-request.ts";

/** Told of all tokens that a request has used, once it is settled. */
export type TokensUsed = (total: number) => void;

/**
 * Counts what a request is going to send against its key's ceiling of tokens a minute (`tpm`), so that
 * requests in parallel see each other, and yields what counts the rest. Keys without a ceiling cost nothing.
 */
export function reserveTokens(
  counters: RateCounters,
  { caller: { key, parent }, estimateTokens }: { caller: Pick<LlmKeyCaller, "key" | "parent">; estimateTokens: () => number },
): TokensUsed | undefined {
  const own = reserve(counters, { key, estimateTokens });
  const shared = parent && reserve(counters, { key: parent, estimateTokens });
  if (own === undefined || shared === undefined) return own ?? shared;
  return (total) => {
    own(total);
    shared(total);
  };
}

function reserve(
  counters: RateCounters,
  { key: { id, tokensPerMinute: perMinute }, estimateTokens }: { key: LlmKey; estimateTokens: () => number },
): TokensUsed | undefined {
  if (perMinute === null) return undefined;
  const { tokens } = counters.limiter;
  const estimate = estimateTokens();
  if (tokens.tryReserve(id, { tokens: estimate, perMinute })) {
    return (total) => tokens.add(id, total - estimate);
  }
  throw new GatewayError(
    "rate_limit_exceeded",
    `This key may use ${perMinute} tokens within 60 seconds (its tpm). Wait, or send less.`,
    {
      retryAfterSeconds: 60,
      metadata: { limit: perMinute, unit: "tokens", window_seconds: 60 },
    },
  );
}
