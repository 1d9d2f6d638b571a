import { healthThresholds as limits } from "./thresholds.ts";

/** Why routing treats a provider otherwise than others (contract, "Health and routing states"). */
export type RoutingState =
  /** Tried after all others. */
  | "deprioritized"
  /** Not tried: its smoke test failed. */
  | "excluded"
  /** Not tried for a while: it failed again and again. */
  | "quarantined"
  /** Not tried before the next day: the operator's budget for it is spent. */
  | "budget_exhausted";

/** What is remembered of a provider; never changed in place. Times are wall times in milliseconds. */
export interface ProviderHealth {
  /** Recent attempts and failures; both halve with every half-life. */
  attempts: number;
  failures: number;
  weighedAtMs: number;
  failuresInRow: number;
  rowStartedMs: number;
  lastFailureMs: number;
  successesInRow: number;
  lastSuccessMs: number | undefined;
  deprioritized: boolean;
  /** Kept for a while after its time, so that the next one is longer; gone once the provider has shown itself well. */
  quarantine: { untilMs: number; lengthMs: number } | undefined;
  excluded: boolean;
  budgetExhausted: boolean;
}

/** A provider of which nothing is known. */
export const unknownHealth: ProviderHealth = {
  attempts: 0, failures: 0, weighedAtMs: 0, failuresInRow: 0, rowStartedMs: 0, lastFailureMs: 0, successesInRow: 0,
  lastSuccessMs: undefined, deprioritized: false, quarantine: undefined, excluded: false, budgetExhausted: false,
};

/** Something that bears on a provider's health. */
export type HealthSignal = "served" | "outage" | "rationed" | "smoke-passed" | "smoke-failed" | "budget-spent" | "budget-free" | "cleared";

/** The health after a signal at a wall time. */
export function nextHealth(before: ProviderHealth, signal: HealthSignal, nowMs: number): ProviderHealth {
  const health = settled(before, nowMs);
  switch (signal) {
    case "served": return afterSuccess(weighed(health, { nowMs, failed: 0 }), nowMs);
    case "outage": return afterOutage(weighed(health, { nowMs, failed: 1 }), nowMs);
    case "rationed": return settled(weighed(health, { nowMs, failed: 1 }), nowMs);
    case "smoke-passed": return { ...health, excluded: false };
    case "smoke-failed": return { ...health, excluded: !servedLately(health, nowMs) };
    case "budget-spent": return { ...health, budgetExhausted: true };
    case "budget-free": return { ...health, budgetExhausted: false };
    // An operator says that all is well: what failed before counts no more. Money that is spent stays spent.
    case "cleared": return { ...unknownHealth, lastSuccessMs: health.lastSuccessMs, budgetExhausted: health.budgetExhausted };
  }
}

/** The health at a later time, when nothing happened but time passed; the same object where that changes nothing. */
export const settledHealth = (health: ProviderHealth, nowMs: number): ProviderHealth => settled(health, nowMs);

/** Whether nothing is remembered that could be a state: what planning a request finds of most providers, without reckoning. */
export const isUntroubled = ({ deprioritized, failuresInRow, failures, quarantine, excluded, budgetExhausted }: ProviderHealth): boolean =>
  !deprioritized && failuresInRow === 0 && failures < limits.deprioritizedFailuresMin && quarantine === undefined && !excluded
  && !budgetExhausted;

/** Every state that a provider is in, the gravest first; empty for a healthy one. */
export function statesOf(health: ProviderHealth, nowMs: number): RoutingState[] {
  const states: RoutingState[] = [];
  if (health.budgetExhausted) states.push("budget_exhausted");
  if (health.excluded) states.push("excluded");
  if (isQuarantined(health, nowMs)) states.push("quarantined");
  else if (isDeprioritized(health, nowMs)) states.push("deprioritized");
  return states;
}

const isQuarantined = ({ quarantine }: ProviderHealth, nowMs: number): boolean => quarantine !== undefined && nowMs < quarantine.untilMs;

/** Whether a provider's quarantine is over and nobody knows yet whether it is well: it is asked last for a while. */
export const isOnProbation = ({ quarantine }: ProviderHealth, nowMs: number): boolean =>
  quarantine !== undefined && nowMs >= quarantine.untilMs && nowMs < quarantine.untilMs + limits.probationMs;

const isDeprioritized = (health: ProviderHealth, nowMs: number): boolean =>
  settled(health, nowMs).deprioritized || isOnProbation(health, nowMs);

const decay = (sinceMs: number): number => 2 ** (-Math.max(0, sinceMs) / limits.halfLifeMs);

function weighed(health: ProviderHealth, { nowMs, failed }: { nowMs: number; failed: 0 | 1 }): ProviderHealth {
  const factor = decay(nowMs - health.weighedAtMs);
  const attempts = health.attempts * factor + 1;
  const scale = attempts > limits.weightMax ? limits.weightMax / attempts : 1;
  return { ...health, attempts: attempts * scale, failures: (health.failures * factor + failed) * scale, weighedAtMs: nowMs };
}

function afterSuccess(health: ProviderHealth, nowMs: number): ProviderHealth {
  const successesInRow = health.successesInRow + 1;
  // Whoever serves is not gone: a success within the quarantine, of a request that was under way, ends it.
  const isForgiven = health.quarantine !== undefined && successesInRow >= limits.probationSuccesses;
  const quarantine = health.quarantine === undefined || isForgiven
    ? undefined
    : { ...health.quarantine, untilMs: Math.min(health.quarantine.untilMs, nowMs) };
  const failures = isForgiven ? 0 : health.failures;
  return settled({ ...health, failures, successesInRow, quarantine, failuresInRow: 0, lastSuccessMs: nowMs, excluded: false }, nowMs);
}

function afterOutage(health: ProviderHealth, nowMs: number): ProviderHealth {
  const continues = health.failuresInRow > 0 && nowMs - health.lastFailureMs < limits.rowForgottenMs;
  const row = {
    failuresInRow: continues ? health.failuresInRow + 1 : 1,
    rowStartedMs: continues ? health.rowStartedMs : nowMs,
    lastFailureMs: nowMs,
    successesInRow: 0,
  };
  const next = { ...health, ...row };
  return settled({ ...next, quarantine: quarantineAfter(next, nowMs) }, nowMs);
}

function quarantineAfter(health: ProviderHealth, nowMs: number): ProviderHealth["quarantine"] {
  const { quarantine } = health;
  if (quarantine === undefined || nowMs >= quarantine.untilMs + limits.quarantineRememberedMs) {
    const lasts = health.failuresInRow >= limits.quarantineInRow && nowMs - health.rowStartedMs >= limits.quarantineRowMs;
    return lasts ? { untilMs: nowMs + limits.quarantineFirstMs, lengthMs: limits.quarantineFirstMs } : undefined;
  }
  // Failures of requests that were under way when it began say nothing new.
  if (nowMs < quarantine.untilMs) return quarantine;
  const lengthMs = Math.min(quarantine.lengthMs * 2, limits.quarantineMaxMs);
  return { untilMs: nowMs + lengthMs, lengthMs };
}

function settled(health: ProviderHealth, nowMs: number): ProviderHealth {
  const deprioritized = shouldBeLast(health, nowMs);
  return deprioritized === health.deprioritized ? health : { ...health, deprioritized };
}

function shouldBeLast(health: ProviderHealth, nowMs: number): boolean {
  // A row that led to a quarantine has had its consequence.
  const rowStands = health.quarantine === undefined
    && health.failuresInRow >= limits.deprioritizedInRow && nowMs - health.lastFailureMs < limits.rowForgottenMs;
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
