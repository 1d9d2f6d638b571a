import type { JsonObject } from "../canonical/json.ts";
import type { AttemptRecord } from "../../insights/generation-record.ts";

/** How another model than the one asked for came to serve. */
export interface ModelFallback {
  requestedModel: string;
  reason: string;
  attempts: readonly AttemptRecord[];
}

/** The `fallback` block of an answer (contract: "Model fallback on a request"). */
export const fallbackBlock = ({ reason, attempts }: ModelFallback): JsonObject => ({
  used: true,
  reason,
  attempts: attempts.map((attempt) => ({
    model: attempt.model,
    provider: attempt.provider,
    status: attempt.status,
    outcome: attempt.outcome,
    reason: attempt.reason,
  })),
});

/** JSON members that tell a client of a model fallback. */
export const fallbackMembers = (fallback: ModelFallback): [string, string][] => [
  ["requested_model", JSON.stringify(fallback.requestedModel)],
  ["fallback", JSON.stringify(fallbackBlock(fallback))],
];
