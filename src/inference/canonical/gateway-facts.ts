import type { JsonObject } from "./json.ts";

/** What the gateway adds of its own to an answer, known once the charge is committed. */
export interface GatewayFacts {
  /** Charged for this request in USD; shown as `usage.cost`. */
  costUsd?: number;
  /** The provider's own figure in USD; shown as `usage.cost_details.upstream_inference_cost`. */
  upstreamCostUsd?: number;
  /** The caller's own provider key was used; shown as `usage.is_byok` where the dialect has it. */
  isByok?: boolean;
  /** Canonical id of the model that was asked for, when another one served. */
  requestedModel?: string;
  /** The `fallback` block: used, reason, attempts. */
  fallback?: JsonObject;
  /** The metadata object: timings, creditsCharged, balanceAfterDebit. */
  metadata?: JsonObject;
}
