import type { LlmKeyCaller } from "../../../../identity/keys/caller.ts";
import type { CallOrigin } from "../../../../inference/pipeline/inference-call.ts";
import type { Clock } from "../../../../platform/kernel/clock.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import { timeOrderedHex } from "../../../../platform/kernel/ids.ts";

/**
 * Returns the origin of what a session does next: that of its handshake, with the caller as it is
 * now and ids of its own. Throws `invalid_api_key` once the key is not valid, unless what is done has
 * been done already (`isOwed`).
 */
export function nextOriginOf(
  origin: CallOrigin,
  {
    clock,
    liveCaller,
    isOwed = false,
  }: { clock: Clock; liveCaller(): LlmKeyCaller | undefined; isOwed?: boolean },
): CallOrigin {
  const caller = liveCaller() ?? (isOwed ? origin.caller : undefined);
  if (caller === undefined) throw revoked();
  const traceId = timeOrderedHex(clock.nowMs());
  return {
    ...origin,
    traceId,
    generationId: `gen_${traceId}`,
    shownId: `resp_${traceId}`,
    caller,
    startedMs: clock.monotonicMs(),
    admission: undefined,
  };
}

/** Returns the error for a key that was revoked within a session. */
export const revoked = (): GatewayError =>
  new GatewayError("invalid_api_key", "The API key is not valid any more.");

/** Close codes that no close frame carries (RFC 6455, 7.4.1). */
const unsendable: ReadonlySet<number> = new Set([1004, 1005, 1006, 1015]);

/** Returns the code with which a client is closed when its provider was. */
export const relayedCode = (code: number): number =>
  code < 1000 || unsendable.has(code) ? 1011 : code;
