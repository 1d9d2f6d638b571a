import type { AttemptRecord } from "../insights/generation-record.ts";

/** How another model than the one asked for came to serve. */
export interface ModelFallback {
  requestedModel: string;
  reason: string;
  attempts: readonly AttemptRecord[];
}

/** JSON members that tell a chat client of a model fallback (contract: "Model fallback on a request"). */
export const fallbackMembers = (fallback: ModelFallback): [string, string][] => [
  ["requested_model", JSON.stringify(fallback.requestedModel)],
  ["fallback", JSON.stringify({
    used: true,
    reason: fallback.reason,
    attempts: fallback.attempts.map((attempt) => ({
      model: attempt.model, provider: attempt.provider, status: attempt.status, outcome: attempt.outcome, reason: attempt.reason,
    })),
  })],
];
