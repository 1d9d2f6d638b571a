import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";

/**
 * Every number that a health state depends on, with its reason. The tables of docs/health.md show
 * the same numbers; a test compares them.
 */
export const healthThresholds = {
  /**
   * Fewer requests in an hour than this say nothing: one failure among four would already be a
   * quarter.
   */
  signalRequestsMin: 5,
  /** One request in twenty failing is what callers notice in spite of fallbacks. */
  degradedErrorRate: 0.05,
  /** At one in two a caller rather fails than succeeds. */
  downErrorRate: 0.5,

  /** What happened a half-life ago counts half: as long as the contract's window of outages. */
  halfLifeMs: 30_000,
  /**
   * Attempts that are remembered at most, so that a busy provider is judged by its last moments
   * too.
   */
  weightMax: 50,
  /** Three failures are more than chance and a retry. */
  deprioritizedFailuresMin: 3,
  /** Below three in ten a provider is still worth its price with fallbacks behind it. */
  deprioritizedShare: 0.3,
  /**
   * Clearly below the share at which it began, so that a provider at the edge does not come and go.
   */
  recoveredShare: 0.1,
  /**
   * Less than one attempt is left of the memory: nothing is known any more, and the provider gets
   * its next chance.
   */
  forgottenWeight: 1,
  /** A provider with little traffic is judged by failures in a row; five at once are no chance. */
  deprioritizedInRow: 5,
  /** A row of failures that does not grow is old news after five minutes, as percentiles are. */
  rowForgottenMs: 5 * minuteMs,

  /**
   * Ten failures in a row without one success: the provider is gone, and asking only costs time.
   */
  quarantineInRow: 10,
  /** So long the row has to last, so that a blip at high load quarantines no provider. */
  quarantineRowMs: 10_000,
  /** The first quarantine is as long as the contract's window of outages. */
  quarantineFirstMs: 30_000,
  /**
   * Each failure after a quarantine doubles it, up to this: a provider that comes back is not kept
   * waiting longer.
   */
  quarantineMaxMs: 5 * minuteMs,
  /** Successes in a row after a quarantine until the provider is as good as any. */
  probationSuccesses: 3,
  /**
   * Without any attempt it is asked like any other after a minute, or the gateway would never learn
   * that it is back.
   */
  probationMs: minuteMs,
  /** So long after a quarantine one failure is enough for the next one, twice as long. */
  quarantineRememberedMs: 10 * minuteMs,

  /** A smoke test is repeated once before it counts: a single failure may be chance. */
  smokeTries: 2,
  /** A failed smoke test excludes no provider that served a request this recently. */
  servedLatelyMs: 15 * minuteMs,
  /** A provider whose smoke test failed is tested again so often, until it passes. */
  smokeRepeatMs: hourMs,
  /** Contract: smoke tests are stale when the last run is older than two days. */
  smokeStaleMs: 2 * dayMs,

  /** A job is stale when it has not run for twice its period. */
  jobStalePeriods: 2,

  /** Status changes that the snapshot shows (contract) and that are kept. */
  eventsShown: 50,
  eventsKept: 1_000,
} as const;

/**
 * When smoke tests run: the time of day in UTC, as cron has it. Away from full hours, when most
 * scheduled jobs run.
 */
export const smokeCadence = "17 4 * * *";
