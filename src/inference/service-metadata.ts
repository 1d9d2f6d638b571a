import type { AttemptRecord } from "../insights/generation-record.ts";
import { usdFromNano, usdSixDecimals } from "../platform/lib/money.ts";
import type { Loss } from "./canonical/loss.ts";
import type { InferenceCall } from "./inference-call.ts";
import type { RequestTiming } from "./observer.ts";
import type { Candidate } from "./routing/candidate.ts";
import { timingsOf } from "./server-timing.ts";
import type { Settled } from "./settle.ts";

/** JSON text of the metadata object on a stream's final frame (contract: `service_metadata` fields). */
export function metadataText(served: {
  call: InferenceCall;
  candidate: Candidate;
  settled: Settled;
  attempts: readonly AttemptRecord[];
  timing: RequestTiming;
  /** What the client's dialect could not carry of the answer; the headers of a stream are gone by then. */
  answerLosses?: readonly Loss[] | undefined;
}): string {
  const { call, candidate, settled, attempts, timing, answerLosses = [] } = served;
  const { provider } = candidate.route;
  return JSON.stringify({
    requestId: call.traceId,
    model: candidate.model.id,
    upstream: {
      provider: provider.name,
      backend: provider.id,
      latencyMs: Math.round(timing.upstreamEndMs - timing.firstSendMs),
    },
    timings: timingsOf({ ...timing, endMs: timing.settledMs, attempts }),
    ...(answerLosses.length > 0 && { translationLoss: answerLosses.map(({ field }) => field) }),
    // As with the headers of whole answers: a free request was not charged, so there is nothing to tell.
    ...(call.wantsBalance && !settled.free
      ? {
          creditsCharged: usdFromNano(settled.chargedNano),
          balanceAfterDebit: usdSixDecimals(settled.balanceAfterNano),
        }
      : {}),
  });
}
