import { healthThresholds as limits } from "./thresholds.ts";

/**
 * A treatment of a provider by routing that differs from others' (contract, "Health and routing
 * states").
 */
export type RoutingState =
  /** Tried after all others. */
  | "deprioritized"
  /** Not tried: its smoke test failed. */
  | "excluded"
  /** Not tried for a while: it failed repeatedly. */
  | "quarantined"
  /** Not tried before the next day: the operator's budget for it is used up. */
  | "budget_exhausted";

/**
 * The remembered health of a provider. It is never changed in place. Times are wall times in
 * milliseconds.
 */
export interface ProviderHealth {
  /** Recent attempts and failures. Both halve with every half-life. */
  attempts: number;
  failures: number;
  weighedAtMs: number;
  failuresInRow: number;
  rowStartedMs: number;
  lastFailureMs: number;
  successesInRow: number;
  lastSuccessMs: number | undefined;
  deprioritized: boolean;
  /**
   * Kept for a while after its end, so that the next one is longer; removed once the provider has
   * served reliably.
   */
  quarantine: { untilMs: number; lengthMs: number } | undefined;
  excluded: boolean;
  budgetExhausted: boolean;
}

/** The health of a provider of which nothing is known. */
export const unknownHealth: ProviderHealth = {
  attempts: 0,
  failures: 0,
  weighedAtMs: 0,
  failuresInRow: 0,
  rowStartedMs: 0,
  lastFailureMs: 0,
  successesInRow: 0,
  lastSuccessMs: undefined,
  deprioritized: false,
  quarantine: undefined,
  excluded: false,
  budgetExhausted: false,
};

/** An event that affects a provider's health. */
export type HealthSignal =
  | "served"
  | "outage"
  | "rationed"
  | "smoke-passed"
  | "smoke-failed"
  | "budget-spent"
  | "budget-free"
  | "cleared";

/** Returns the health after a signal at a wall time. */
export function nextHealth(
  before: ProviderHealth,
  signal: HealthSignal,
  nowMs: number,
): ProviderHealth {
  const health = copyOf(before);
  settle(health, nowMs);
  switch (signal) {
    case "served":
      takeSuccess(health, nowMs);
      break;
    case "outage":
      takeOutage(health, nowMs);
      break;
    case "rationed":
      weigh(health, { nowMs, failed: 1 });
      break;
    case "smoke-passed":
      health.excluded = false;
      break;
    case "smoke-failed":
      health.excluded = !servedLately(health, nowMs);
      break;
    case "budget-spent":
      health.budgetExhausted = true;
      break;
    case "budget-free":
      health.budgetExhausted = false;
      break;
    // An operator declared the provider healthy: earlier failures no longer count, but money that
    // was spent stays spent.
    case "cleared":
      return {
        ...unknownHealth,
        lastSuccessMs: health.lastSuccessMs,
        budgetExhausted: health.budgetExhausted,
      };
  }
  settle(health, nowMs);
  return health;
}

/**
 * Copies health member by member: every request brings a signal, and copying an object of this size
 * by spread costs more than the rest.
 */
const copyOf = (health: ProviderHealth): ProviderHealth => ({
  attempts: health.attempts,
  failures: health.failures,
  weighedAtMs: health.weighedAtMs,
  failuresInRow: health.failuresInRow,
  rowStartedMs: health.rowStartedMs,
  lastFailureMs: health.lastFailureMs,
  successesInRow: health.successesInRow,
  lastSuccessMs: health.lastSuccessMs,
  deprioritized: health.deprioritized,
  quarantine: health.quarantine,
  excluded: health.excluded,
  budgetExhausted: health.budgetExhausted,
});

/** Returns every state that a provider is in, most severe first; empty for a healthy one. */
export function statesOf(health: ProviderHealth, nowMs: number): RoutingState[] {
  const states: RoutingState[] = [];
  if (health.budgetExhausted) states.push("budget_exhausted");
  if (health.excluded) states.push("excluded");
  if (isQuarantined(health, nowMs)) states.push("quarantined");
  else if (isDeprioritized(health, nowMs)) states.push("deprioritized");
  return states;
}

const isQuarantined = ({ quarantine }: ProviderHealth, nowMs: number): boolean =>
  quarantine !== undefined && nowMs < quarantine.untilMs;

/**
 * Returns whether a provider's quarantine is over and it has not served reliably yet: it is tried
 * last for a while.
 */
export const isOnProbation = ({ quarantine }: ProviderHealth, nowMs: number): boolean =>
  quarantine !== undefined &&
  nowMs >= quarantine.untilMs &&
  nowMs < quarantine.untilMs + limits.probationMs;

const isDeprioritized = (health: ProviderHealth, nowMs: number): boolean =>
  shouldBeLast(health, nowMs) || isOnProbation(health, nowMs);

const decay = (sinceMs: number): number => 2 ** (-Math.max(0, sinceMs) / limits.halfLifeMs);

function weigh(health: ProviderHealth, { nowMs, failed }: { nowMs: number; failed: 0 | 1 }): void {
  const factor = decay(nowMs - health.weighedAtMs);
  const attempts = health.attempts * factor + 1;
  const scale = attempts > limits.weightMax ? limits.weightMax / attempts : 1;
  health.attempts = attempts * scale;
  health.failures = (health.failures * factor + failed) * scale;
  health.weighedAtMs = nowMs;
}

function takeSuccess(health: ProviderHealth, nowMs: number): void {
  weigh(health, { nowMs, failed: 0 });
  health.successesInRow += 1;
  health.failuresInRow = 0;
  health.lastSuccessMs = nowMs;
  health.excluded = false;
  const { quarantine } = health;
  if (quarantine === undefined) return;
  // A provider that serves is back: a success within the quarantine, of a request that was already
  // in flight, ends it.
  const isForgiven = health.successesInRow >= limits.probationSuccesses;
  health.quarantine = isForgiven
    ? undefined
    : { ...quarantine, untilMs: Math.min(quarantine.untilMs, nowMs) };
  if (isForgiven) health.failures = 0;
}

function takeOutage(health: ProviderHealth, nowMs: number): void {
  weigh(health, { nowMs, failed: 1 });
  const continues =
    health.failuresInRow > 0 && nowMs - health.lastFailureMs < limits.rowForgottenMs;
  health.failuresInRow = continues ? health.failuresInRow + 1 : 1;
  if (!continues) health.rowStartedMs = nowMs;
  health.lastFailureMs = nowMs;
  health.successesInRow = 0;
  health.quarantine = quarantineAfter(health, nowMs);
}

function quarantineAfter(health: ProviderHealth, nowMs: number): ProviderHealth["quarantine"] {
  const { quarantine } = health;
  if (quarantine === undefined || nowMs >= quarantine.untilMs + limits.quarantineRememberedMs) {
    const lasts =
      health.failuresInRow >= limits.quarantineInRow &&
      nowMs - health.rowStartedMs >= limits.quarantineRowMs;
    return lasts
      ? { untilMs: nowMs + limits.quarantineFirstMs, lengthMs: limits.quarantineFirstMs }
      : undefined;
  }
  // Failures of requests that were already in flight when the quarantine began are no new
  // information.
  if (nowMs < quarantine.untilMs) return quarantine;
  const lengthMs = Math.min(quarantine.lengthMs * 2, limits.quarantineMaxMs);
  return { untilMs: nowMs + lengthMs, lengthMs };
}

function settle(health: ProviderHealth, nowMs: number): void {
  health.deprioritized = shouldBeLast(health, nowMs);
}

/** Returns whether a provider is asked after all others, by its failures in a row and their share. */
export function shouldBeLast(health: ProviderHealth, nowMs: number): boolean {
  // A run of failures that led to a quarantine has had its effect.
  const rowStands =
    health.quarantine === undefined &&
    health.failuresInRow >= limits.deprioritizedInRow &&
    nowMs - health.lastFailureMs < limits.rowForgottenMs;
  if (rowStands) return true;
  const factor = decay(nowMs - health.weighedAtMs);
  const [attempts, failures] = [health.attempts * factor, health.failures * factor];
  if (attempts < limits.forgottenWeight) return false;
  const share = failures / attempts;
  if (health.deprioritized) return share >= limits.recoveredShare;
  return failures >= limits.deprioritizedFailuresMin && share >= limits.deprioritizedShare;
}

const servedLately = ({ lastSuccessMs }: ProviderHealth, nowMs: number): boolean =>
  lastSuccessMs !== undefined && nowMs - lastSuccessMs <= limits.servedLatelyMs;

/** The status of an upstream in events (contract, "Health and routing states"). */
export type UpstreamStatus = "healthy" | "degraded" | "down" | "unknown";

/** A change of a provider's status. */
export interface StatusChange {
  upstreamId: string;
  from: UpstreamStatus;
  to: UpstreamStatus;
  /** The reason, for people; undefined where the status says it all. */
  message: string | undefined;
}
