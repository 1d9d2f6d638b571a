import type { LlmKeyCaller } from "../account/keys/caller.ts";
import type { RequestLimits, TokenWindow } from "../account/limits/request-limits.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { RateCounters } from "./count-request.ts";

/** Told of all tokens that a request has used, once it is settled. */
export type TokensUsed = (total: number) => void;

/**
 * Counts what a request is going to send against its key's ceiling of tokens a minute (`tpm`), so that
 * requests in parallel see each other, and yields what counts the rest. Keys without a ceiling cost nothing.
 * With windows that processes share it yields a promise.
 */
export function reserveTokens(
  { limiter }: RateCounters,
  {
    caller: { key, parent },
    estimateTokens,
  }: { caller: Pick<LlmKeyCaller, "key" | "parent">; estimateTokens: () => number },
): TokensUsed | undefined | Promise<TokensUsed> {
  if (key.tokensPerMinute === null && (parent === undefined || parent.tokensPerMinute === null))
    return undefined;
  const windows = [key, parent].flatMap((each): TokenWindow[] =>
    each === undefined || each.tokensPerMinute === null
      ? []
      : [{ keyId: each.id, perMinute: each.tokensPerMinute }],
  );
  const estimate = estimateTokens();
  const reserved = limiter.reserveTokens(windows, estimate);
  const used = (full: TokenWindow | undefined): TokensUsed => {
    if (full !== undefined) throw refusal(full);
    return (total) => addTokens(limiter, windows, total - estimate);
  };
  return reserved instanceof Promise ? reserved.then(used) : used(reserved);
}

function addTokens(limiter: RequestLimits, windows: readonly TokenWindow[], tokens: number): void {
  for (const { keyId } of windows) limiter.addTokens(keyId, tokens);
}

const refusal = ({ perMinute }: TokenWindow): GatewayError =>
  new GatewayError(
    "rate_limit_exceeded",
    `This key may use ${perMinute} tokens within 60 seconds (its tpm). Wait, or send less.`,
    {
      retryAfterSeconds: 60,
      metadata: { limit: perMinute, unit: "tokens", window_seconds: 60 },
    },
  );
