import { dayMs, hourMs, minuteMs } from "../../platform/kernel/clock.ts";

/**
 * Every number that a health state depends on, with its reason. The tables of docs/health.md list
 * the same numbers; a test compares them.
 */
export const healthThresholds = {
  /** Fewer requests per hour say nothing: one failure among four would already be a quarter. */
  signalRequestsMin: 5,
  /** Callers notice one failing request in twenty in spite of fallbacks. */
  degradedErrorRate: 0.05,
  /** At one failing request in two, callers fail more often than they succeed. */
  downErrorRate: 0.5,

  /** Milliseconds after which an event counts half. They equal the contract's outage window. */
  halfLifeMs: 30_000,
  /**
   * The most attempts that are remembered, so that a busy provider is judged by its last moments
   * too.
   */
  weightMax: 50,
  /** Three failures are more than chance and a retry. */
  deprioritizedFailuresMin: 3,
  /** Below three failures in ten a provider is still worth its price, with fallbacks behind it. */
  deprioritizedShare: 0.3,
  /**
   * Clearly below the share at which the state began, so that a borderline provider does not flap.
   */
  recoveredShare: 0.1,
  /**
   * With less than one attempt left in memory nothing is known any more, and the provider gets its
   * next chance.
   */
  forgottenWeight: 1,
  /**
   * A provider with little traffic is judged by consecutive failures. Five at once are not chance.
   */
  deprioritizedInRow: 5,
  /** A run of failures that does not grow expires after five minutes, as percentiles do. */
  rowForgottenMs: 5 * minuteMs,

  /**
   * After ten consecutive failures without a success the provider is down, and trying it only costs
   * time.
   */
  quarantineInRow: 10,
  /**
   * The shortest duration of the run, so that a brief failure at high load quarantines no provider.
   */
  quarantineRowMs: 10_000,
  /** The first quarantine is as long as the contract's outage window. */
  quarantineFirstMs: 30_000,
  /**
   * Each failure after a quarantine doubles the next one, up to this length: a provider that
   * recovers does not wait longer.
   */
  quarantineMaxMs: 5 * minuteMs,
  /** Consecutive successes after a quarantine until the provider counts as any other. */
  probationSuccesses: 3,
  /**
   * Without any attempt, the provider is tried like any other after a minute, since the gateway
   * would otherwise never learn that it is back.
   */
  probationMs: minuteMs,
  /** For this long after a quarantine, one failure is enough for the next one, twice as long. */
  quarantineRememberedMs: 10 * minuteMs,

  /** A smoke test is repeated once before it counts: a single failure may be chance. */
  smokeTries: 2,
  /** A failed smoke test does not exclude a provider that served a request this recently. */
  servedLatelyMs: 15 * minuteMs,
  /** A provider whose smoke test failed is tested again at this interval, until it passes. */
  smokeRepeatMs: hourMs,
  /** Contract: smoke tests are stale when the last run is older than two days. */
  smokeStaleMs: 2 * dayMs,

  /** A job is stale when it has not run for twice its period. */
  jobStalePeriods: 2,

  /** The status changes that the snapshot shows (contract), and those that are kept. */
  eventsShown: 50,
  eventsKept: 1_000,
} as const;

/**
 * The daily time of smoke tests in UTC, as a cron expression. It avoids full hours, when most
 * scheduled jobs run.
 */
export const smokeCadence = "17 4 * * *";
